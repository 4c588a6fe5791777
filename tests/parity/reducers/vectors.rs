//! Every recorded answer of the reference's reducers, through the reducer and through a channel.
//!
//! No case is skipped, those that hang on the reference's dynamic typing included.

use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::json::parse;
use fawn::state::channels::Channel;
use fawn::state::reducers::reduce;
use fawn::state::update::Write;
use fawn::state::values::{ChannelOverlay, ChannelValues};
use serde_json::{Value, json};

struct Case {
    id: String,
    existing: Value,
    update: Value,
    expected: Result<Value, (String, String)>,
}

/// Reads a file of cases; `count` guards against a file that was cut short.
fn cases(text: &str, op: &str, count: usize) -> Vec<Case> {
    let cases: Vec<Case> = text
        .lines()
        .map(|line| {
            let mut case = parse(line).unwrap();
            assert_eq!(case["op"], op);
            let expected = match case.get_mut("output").map(Value::take) {
                Some(output) => Ok(output),
                None => Err((
                    case["error"]["type"].as_str().unwrap().to_owned(),
                    case["error"]["message"].as_str().unwrap().to_owned(),
                )),
            };
            Case {
                id: case["id"].as_str().unwrap().to_owned(),
                existing: case["input"]["existing"].take(),
                update: case["input"]["new"].take(),
                expected,
            }
        })
        .collect();
    assert_eq!(cases.len(), count, "{op}");
    cases
}

/// The code that the table of the reducers' module gives for an exception of the reference.
fn code_of(exception: &str) -> ErrorCode {
    match exception {
        "ValueError" => ErrorCode::SandboxConflict,
        "KeyError" => ErrorCode::EntryMember,
        "TypeError" | "AttributeError" => ErrorCode::EntryType,
        other => panic!("no code for {other}"),
    }
}

/// Whether two values are one text: the order of members counts, and `1` is not `1.0`.
fn same_text(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.to_string(), b.to_string());
    a == b
}

/// Whether the reducer's answer is the recorded one.
fn difference(case: &Case, got: &Result<Value, Error>) -> Option<String> {
    match (&case.expected, got) {
        (Ok(expected), Ok(got)) if same_text(expected, got) => None,
        (Err((exception, message)), Err(error)) if error.code == code_of(exception) => {
            // The text of a missing key is the key in quotes; ours names it too.
            let member = message.trim_matches('\'');
            let named = error.message.contains(&format!("{member:?}"));
            (exception == "KeyError" && !named)
                .then(|| format!("{}: {member} is not named: {}", case.id, error.message))
        }
        (expected, got) => Some(format!("{}: {expected:?} expected, got {got:?}", case.id)),
    }
}

fn read(values: &ChannelValues, overlay: &ChannelOverlay) -> String {
    let state: Vec<_> = values
        .iter(overlay)
        .map(|(channel, value)| json!([channel.name(), value]))
        .collect();
    serde_json::to_string(&state).unwrap()
}

/// The same case as a write to a channel that holds `existing`.
fn through_a_channel(channel: Channel, case: &Case) -> Option<String> {
    let mut values = ChannelValues::restore(vec![
        (channel, case.existing.clone()),
        (Channel::JumpTo, json!("model")),
        (Channel::Title, json!("before")),
    ]);
    let mut overlay = ChannelOverlay::default();
    let before = read(&values, &overlay);
    let (title, write) = (
        Write::Value(json!("after")),
        Write::Value(case.update.clone()),
    );
    let step = [
        (Channel::Title, &title, Some("hook")),
        (channel, &write, Some("call")),
    ];
    let staged = values.stage(&mut overlay, &step);

    let got = match staged {
        Ok(()) => {
            let read_back = values.get(&overlay, channel).unwrap().clone();
            let changes = values.changes(&overlay);
            let changed = changes.iter().find(|(other, _)| *other == channel);
            let same = same_text(&case.existing, &read_back);
            assert_eq!(changed.is_none(), same, "{}", case.id);
            values.commit(overlay);
            let committed = values.get(&ChannelOverlay::default(), channel).cloned();
            assert_eq!(committed.as_ref(), Some(&read_back), "{}", case.id);
            Ok(read_back)
        }
        Err(error) => {
            assert_eq!(before, read(&values, &overlay), "{}", case.id);
            assert!(overlay.is_empty(), "{}", case.id);
            let path = error.path.as_deref().unwrap();
            let head = format!("/{}", channel.name());
            assert!(
                path == head || path.starts_with(&format!("{head}/")),
                "{path}"
            );
            Err(error)
        }
    };
    difference(case, &got)
}

fn check(channel: Channel, text: &str, op: &str, count: usize) {
    let mut differences = Vec::new();
    for case in cases(text, op, count) {
        let got = reduce(channel, case.existing.clone(), case.update.clone());
        differences.extend(difference(&case, &got));
        differences.extend(through_a_channel(channel, &case));
    }
    assert!(
        differences.is_empty(),
        "{} differences, among them\n{}",
        differences.len(),
        differences[..differences.len().min(20)].join("\n")
    );
}

macro_rules! vectors {
    ($($op:ident, $channel:ident, $count:literal;)+) => {
        $(#[test]
        fn $op() {
            let text = include_str!(concat!("../vectors/", stringify!($op), ".jsonl"));
            check(Channel::$channel, text, stringify!($op), $count);
        })+
    };
}

vectors! {
    merge_sandbox, Sandbox, 614;
    merge_artifacts, Artifacts, 1516;
    merge_viewed_images, ViewedImages, 1189;
    merge_todos, Todos, 582;
    merge_goal, Goal, 618;
    merge_promoted, Promoted, 1844;
    merge_delegations, Delegations, 2835;
    merge_skill_context, SkillContext, 1960;
}
