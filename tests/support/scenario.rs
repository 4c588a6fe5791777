//! Scenarios: JSON files that become conformance scripts, which every language runs. `tests/golden/README.md` says what
//! they look like.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json_text::compact;

/// A step: what is called, its input, and what belongs to it. Inputs keep the form that the file gives them.
pub type Step = IndexMap<String, Box<RawValue>>;

/// A scenario as its file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows.
    #[serde(default)]
    pub about: String,
    /// Why the scenario is not played by a runtime with worker threads too; absent: it is.
    #[serde(default)]
    pub driven_only: Option<String>,
    /// Why its answers are not recorded in an expected file; absent: they are.
    #[serde(default)]
    pub unrecorded: Option<String>,
    /// Files in the folder that `$FILES` stands for in the runtime's configuration: text by path.
    #[serde(default)]
    files: IndexMap<String, String>,
    #[serde(skip)]
    name: String,
    #[serde(default)]
    runtime: Option<Value>,
    #[serde(default)]
    assembly: Option<Box<RawValue>>,
    #[serde(default)]
    thread: Option<Box<RawValue>>,
    #[serde(default = "empty_object")]
    queue: Option<Box<RawValue>>,
    /// What is done.
    pub steps: Vec<Step>,
}

fn empty_object() -> Option<Box<RawValue>> {
    RawValue::from_string("{}".to_owned()).ok()
}

/// The folder of the scenarios.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Every scenario by its name.
pub fn all() -> Vec<(String, Scenario)> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("tests/golden")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .filter(|name| !name.ends_with(".expected"))
        .collect();
    names.sort();
    let read = |name: &String| {
        let file = folder().join(format!("{name}.json"));
        let text = std::fs::read_to_string(file).expect("a scenario");
        let read = serde_json::from_str(&text);
        let mut scenario: Scenario = read.unwrap_or_else(|error| panic!("{name}: {error}"));
        scenario.name.clone_from(name);
        scenario
    };
    names
        .into_iter()
        .map(|name| (name.clone(), read(&name)))
        .collect()
}

impl Scenario {
    /// The commands that make the objects, one line each.
    pub fn prelude(&self, workers: u32) -> Vec<String> {
        let Some(mut runtime) = self.runtime.clone() else {
            return Vec::new();
        };
        runtime["testing"]["workers"] = workers.into();
        let mut runtime = runtime.to_string();
        if !self.files.is_empty() {
            let folder = self.write_files();
            let folder = Value::from(folder.to_str().expect("UTF-8")).to_string();
            runtime = runtime.replace("$FILES", folder.trim_matches('"'));
        }
        let mut lines = vec![line("runtime", &runtime)];
        for (verb, input) in [
            ("assembly", &self.assembly),
            ("thread", &self.thread),
            ("queue", &self.queue),
        ] {
            lines.extend(
                input
                    .as_ref()
                    .map(|input| line(verb, &compact(input.get()))),
            );
        }
        lines
    }

    /// Writes the files, unless they stand there as they should: other tests may be reading them.
    fn write_files(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden");
        let folder = folder.join(&self.name);
        for (path, text) in &self.files {
            let path = folder.join(path);
            if std::fs::read_to_string(&path).ok().as_ref() == Some(text) {
                continue;
            }
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            let whole = path.with_extension(format!("{:?}", std::thread::current().id()));
            std::fs::write(&whole, text).expect("a file");
            std::fs::rename(whole, path).expect("a file");
        }
        folder
    }

    /// The script for runners of other languages: a runtime without worker threads, so that each prints the same.
    pub fn script(&self) -> String {
        let mut lines = self.prelude(0);
        lines.extend(self.steps.iter().flat_map(step_lines));
        lines.join("\n") + "\n"
    }
}

/// The lines of a step: one, or those of a run with its answers.
pub fn step_lines(step: &Step) -> Vec<String> {
    let (verb, input) = step.first().expect("a step has a verb");
    for member in step.keys().skip(1) {
        let known = matches!(
            (verb.as_str(), member.as_str()),
            (_, "text") | ("run", "answers") | ("reduce", "channel")
        );
        assert!(known, "a step {verb:?} has no member {member:?}");
    }
    let is_plain = matches!(verb.as_str(), "describe" | "free") || step.contains_key("text");
    let mut text = if is_plain {
        plain(input)
    } else {
        compact(input.get())
    };
    if let Some(channel) = step.get("channel") {
        text = format!("{} {text}", plain(channel));
    }
    match verb.as_str() {
        "descriptor" | "stats" | "shutdown" | "cancel" => vec![verb.clone()],
        "run" => {
            let mut lines = vec![line(verb, &text)];
            let answers = step.get("answers").map_or("[]", |answers| answers.get());
            let answers: Vec<Box<RawValue>> = serde_json::from_str(answers).expect("answers");
            lines.extend(answers.iter().flat_map(|answer| answer_lines(answer)));
            lines.push("end".to_owned());
            lines
        }
        "runtime" | "assembly" | "thread" | "queue" | "describe" | "reduce" | "convert"
        | "update" | "state" | "history" | "submit" | "free" | "emit" | "finish" => {
            vec![line(verb, &text)]
        }
        other => panic!("unknown step {other}"),
    }
}

/// The lines that answer one host call.
fn answer_lines(answer: &RawValue) -> Vec<String> {
    if answer.get() == r#""cancel""# {
        return vec!["cancel".to_owned()];
    }
    let members: Step = serde_json::from_str(answer.get()).unwrap_or_default();
    if let Some(steps) = members.get("steps") {
        let steps: Vec<Step> = serde_json::from_str(steps.get()).expect("steps");
        return steps.iter().flat_map(step_lines).collect();
    }
    let Some(pieces) = members.get("emit") else {
        return vec![line("finish", &compact(answer.get()))];
    };
    let pieces: Vec<Box<RawValue>> = serde_json::from_str(pieces.get()).expect("pieces");
    let emits = pieces
        .iter()
        .map(|piece| line("emit", &compact(piece.get())));
    let finish = line("finish", &compact(members["finish"].get()));
    emits.chain([finish]).collect()
}

fn plain(json: &RawValue) -> String {
    serde_json::from_str(json.get()).expect("plain text is a string")
}

fn line(verb: &str, text: &str) -> String {
    assert!(
        !text.contains('\n'),
        "{verb}: a script has no line breaks in a text"
    );
    format!("{verb} {text}")
}
