//! Every language plays every scenario of `tests/golden` and prints what the Rust API gives, byte for byte.

use std::path::{Path, PathBuf};

use crate::languages::Language;
use crate::programs::empty_scratch;
use crate::support::player::{masked, play};
use crate::support::scenario;

/// A script and the lines that it makes a runner print.
struct Script {
    name: String,
    file: PathBuf,
    expected: String,
}

/// All scripts, written into `folder`.
fn scripts(folder: &Path) -> Vec<Script> {
    let scenarios = scenario::all();
    let compiled = scenarios
        .iter()
        .map(|(name, scenario)| (name.clone(), scenario.script()));
    let mut scripts = Vec::new();
    for (name, text) in compiled.chain([("long_lines".to_owned(), long_lines())]) {
        let file = folder.join(format!("{name}.script"));
        std::fs::write(&file, &text).unwrap();
        let printed: Vec<String> = play(&text).concat();
        let expected: String = printed.iter().map(|line| format!("{line}\n")).collect();
        // For whoever looks for what went wrong.
        std::fs::write(folder.join(format!("{name}.expected")), &expected).unwrap();
        scripts.push(Script {
            name,
            file,
            expected,
        });
    }
    scripts
}

/// Lines longer than the buffers that readers of lines have, and lines that are to be passed over.
fn long_lines() -> String {
    let text = "long \u{1f600} ".repeat(30_000);
    format!(
        "# a remark\n\n\
         runtime {{\"testing\":{{\"clock\":\"2026-01-01T00:00:00Z\",\"ids\":\"sequential\",\"workers\":0}}}}\n\
         thread {{\"thread_id\":\"long\"}}\n\
         #update {{}}\n\
         update {{\"values\":{{\"messages\":[\"{text}\"],\"title\":\"{text}\"}}}}\n\
         state\n\
         state \n\
         state {{}}\n\
         reduce artifacts\n\
         describe\n\
         stats"
    )
}

fn plays_every_script(language: Language, source: &str) {
    if !language.is_ready() {
        return;
    }
    let runner = language.build(source);
    let scripts = scripts(&empty_scratch(&format!("scripts_{}", language.folder())));
    assert!(scripts.len() > 40, "only {}", scripts.len());
    let files = scripts.iter().map(|script| script.file.to_str().unwrap());
    if language.is_checked() {
        // One process for all, since each start takes seconds.
        let files: Vec<&str> = files.collect();
        let expected: String = scripts.iter().map(|script| &*script.expected).collect();
        let printed = masked(&runner.run(&files));
        assert!(
            printed == expected,
            "{}",
            first_difference(&printed, &expected)
        );
        return;
    }
    let mut wrong = Vec::new();
    for (script, file) in scripts.iter().zip(files) {
        let printed = masked(&runner.run(&[file]));
        if printed != script.expected {
            let difference = first_difference(&printed, &script.expected);
            wrong.push(format!("{}, {difference}", script.name));
        }
    }
    assert!(
        wrong.is_empty(),
        "{language:?} prints something else in {} of {} scripts:\n{}",
        wrong.len(),
        scripts.len(),
        wrong.join("\n")
    );
}

fn first_difference(found: &str, right: &str) -> String {
    let same = found.split('\n').zip(right.split('\n'));
    let at = same.take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.split('\n').nth(at).unwrap_or("(nothing)").to_owned();
    format!(
        "line {}:\n  found:  {}\n  should: {}",
        at + 1,
        line(found),
        line(right)
    )
}

#[test]
fn c_prints_what_the_rust_api_gives() {
    plays_every_script(Language::C, "tests/abi/conformance.c");
}

#[test]
fn cpp_prints_what_the_rust_api_gives() {
    plays_every_script(Language::Cpp, "bindings/cpp/conformance/runner.cpp");
}

#[test]
fn go_prints_what_the_rust_api_gives() {
    plays_every_script(Language::Go, "bindings/go/cmd/conformance");
}

#[test]
fn node_prints_what_the_rust_api_gives() {
    plays_every_script(Language::Node, "bindings/node/conformance/runner.mjs");
}

#[test]
fn handles_are_masked_and_nothing_else() {
    let text = r#"{"handle":123,"kind":"run","runtime":45}],"text":"\"handle\":7","handle":"x"}"#;
    assert_eq!(
        masked(text),
        r#"{"handle":0,"kind":"run","runtime":0}],"text":"\"handle\":7","handle":"x"}"#
    );
}
