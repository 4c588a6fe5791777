//! Golden cases of messages, through the Rust API.

use fawn::protocol::error::Error;
use fawn::protocol::message::Message;
use fawn::state::channels::Channel;
use fawn::state::coerce;
use fawn::state::delta::StoredState;
use fawn::state::ids::{IdSource, SequentialIds};
use fawn::state::messages::{add_messages, fold_messages, merge_message_writes};
use fawn::state::python;
use fawn::state::reduce::{convert_document, reduce_document};
use fawn::state::thread::{Overlay, Selection, ThreadState};
use fawn::state::update::{StateUpdate, Write};
use serde_json::{Value, json};

use crate::cases::{Case, SKIPPED, load};

/// Runs all cases of an operation and reports every one that differs.
pub fn check(op: &str, run: impl Fn(&Case) -> Result<Value, Error>) {
    let mut wrong = Vec::new();
    let cases = load(op);
    for case in &cases {
        if SKIPPED.iter().any(|(id, _)| *id == case.id) {
            continue;
        }
        if let Some(difference) = differs(case, &run(case)) {
            wrong.push(format!("{}: {difference}", case.id));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases of {op} differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong
            .iter()
            .take(40)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// What is different, if anything: the outcome, the value with the order of its keys, the code, a named text, the members.
pub fn differs(case: &Case, answer: &Result<Value, Error>) -> Option<String> {
    match (&case.expected, answer) {
        (Ok(expected), Ok(answer)) => {
            // As texts: the order of keys counts.
            let (answer, expected) = (answer.to_string(), expected.to_string());
            (answer != expected).then(|| format!("{answer} is not {expected}"))
        }
        (Ok(expected), Err(error)) => Some(format!("{error} ({:?}), not {expected}", error.path)),
        (Err(expected), Ok(answer)) => Some(format!("{answer}, not {}", expected.message)),
        (Err(expected), Err(error)) => {
            if error.code != expected.code(&case.id) {
                return Some(format!(
                    "{error} ({:?}), not {}",
                    error.code, expected.message
                ));
            }
            if expected.text_is_named() && error.message != expected.message {
                return Some(format!("{:?} is not {:?}", error.message, expected.message));
            }
            let causes = error
                .cause
                .iter()
                .map(|cause| cause.split(": ").next().unwrap_or_default());
            let members: Vec<&str> = error.path.as_deref().into_iter().chain(causes).collect();
            let expected = expected.pointers();
            let alike = expected.is_empty()
                || (members.len() == expected.len()
                    && expected.iter().zip(&members).all(|(expected, member)| {
                        let moved = expected
                            .replace("/args", "/function/arguments")
                            .replace("/name", "/function/name");
                        member.ends_with(expected.as_str())
                            || member.ends_with(&moved)
                            || expected
                                .strip_prefix("/content")
                                .is_some_and(|rest| member.ends_with(&format!("/1{rest}")))
                            || (expected.starts_with("/tool_calls")
                                && member.ends_with("/additional_kwargs/tool_calls"))
                    }));
            (!alike).then(|| format!("members {members:?} are not {expected:?}"))
        }
    }
}

pub fn list(messages: &[Message]) -> Value {
    let parsed = messages
        .iter()
        .map(|message| serde_json::from_str(message.json()).unwrap());
    Value::Array(parsed.collect())
}

/// Messages given as constructed objects: a list, or one alone.
fn typed(value: &Value) -> Result<Vec<Message>, Error> {
    let items = match value {
        Value::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    let build = |item| Ok(coerce::typed(item)?.into_message()?);
    items.into_iter().map(build).collect()
}

#[test]
fn add_messages_equals_the_reference() {
    check("add_messages", |case| {
        let mut ids = SequentialIds::default();
        add_messages(&case.input["left"], &case.input["right"], &mut ids)
            .map(|messages| list(&messages))
    });
}

/// Writes as the reference walks over them, when they are not a list.
fn writes(input: &Value) -> Vec<Value> {
    match input {
        Value::Array(writes) => writes.clone(),
        Value::String(text) => text.chars().map(|char| char.to_string().into()).collect(),
        falsy => {
            assert!(!python::truthy(falsy));
            Vec::new()
        }
    }
}

#[test]
fn merge_message_writes_equals_the_reference() {
    check("merge_message_writes", |case| {
        let mut ids = SequentialIds::default();
        merge_message_writes(
            &case.input["state"],
            &writes(&case.input["writes"]),
            &mut ids,
        )
    });
}

fn parse(answer: Result<String, Error>) -> Result<Value, Error> {
    answer.map(|text| serde_json::from_str(&text).unwrap())
}

#[test]
fn add_messages_as_a_document_equals_the_reference() {
    check("add_messages", |case| {
        // A null state is the one difference between the two operations (spec 9).
        if case.input["left"].is_null() {
            return add_messages(
                &Value::Null,
                &case.input["right"],
                &mut SequentialIds::default(),
            )
            .map(|_| Value::Null);
        }
        let document = json!({"existing": case.input["left"], "updates": [case.input["right"]], "ids": "sequential"});
        parse(reduce_document("messages", &document.to_string()))
    });
}

#[test]
fn merge_message_writes_as_a_document_equals_the_reference() {
    check("merge_message_writes", |case| {
        let document = json!({
            "ids": {"sequential_from": 1},
            "existing": case.input["state"],
            "updates": writes(&case.input["writes"]),
        });
        parse(reduce_document("messages", &document.to_string()))
    });
}

#[test]
fn convert_to_messages_as_a_document_equals_the_reference() {
    check("convert_to_messages", |case| {
        parse(convert_document(
            &json!({"messages": case.input["messages"]}).to_string(),
        ))
    });
}

/// Constructed messages have no form in the updates of a document; as the state they have the canonical one.
#[test]
fn a_canonical_state_is_taken_as_it_is_and_given_its_ids() {
    check("add_messages_typed", |case| {
        let left = typed(&case.input["left"])?;
        let right = typed(&case.input["right"])?;
        let document = json!({"existing": list(&left), "updates": [[]], "form": "canonical", "ids": "sequential"});
        let state = parse(reduce_document("messages", &document.to_string()))?;
        let folded = fold_messages(
            left.clone(),
            vec![Some(vec![])],
            &mut SequentialIds::default(),
        )?;
        assert_eq!(state.to_string(), list(&folded).to_string(), "{}", case.id);
        Ok(list(&fold_messages(
            left,
            vec![Some(right)],
            &mut SequentialIds::default(),
        )?))
    });
}

#[test]
fn add_messages_on_constructed_messages_equals_the_reference() {
    check("add_messages_typed", |case| {
        let left = typed(&case.input["left"])?;
        let right = typed(&case.input["right"])?;
        let mut ids = SequentialIds::default();
        Ok(list(&fold_messages(left, vec![Some(right)], &mut ids)?))
    });
}

#[test]
fn merge_message_writes_on_constructed_messages_equals_the_reference() {
    check("merge_message_writes_typed", |case| {
        let writes = case.input["writes"].as_array().unwrap();
        if writes.is_empty() {
            // No writes leave the state as it is, chunks included.
            let state = case.input["state"].as_array().unwrap().iter();
            let built: Result<Vec<Value>, Error> = state
                .map(|message| Ok(coerce::typed(message.clone())?.canonical()))
                .collect();
            return Ok(Value::Array(built?));
        }
        let state = typed(&case.input["state"])?;
        let writes: Result<Vec<_>, Error> = writes
            .iter()
            .map(|write| {
                if write.is_null() {
                    Ok(None)
                } else {
                    typed(write).map(Some)
                }
            })
            .collect();
        let mut ids = SequentialIds::default();
        Ok(list(&fold_messages(state, writes?, &mut ids)?))
    });
}

#[test]
fn convert_to_messages_equals_the_reference() {
    check("convert_to_messages", |case| {
        coerce::convert(&case.input["messages"]).map(|messages| list(&messages))
    });
}

#[test]
fn the_three_wire_formats_equal_those_of_the_reference() {
    for case in load("message_formats") {
        let message = coerce::typed(case.input["message"].clone()).unwrap();
        let formats = json!({
            "model_dump": message.canonical(),
            "message_to_dict": coerce::to_dict(&message),
            "dumpd": coerce::to_serialised(&message),
        });
        let Ok(expected) = case.expected else {
            panic!("{} fails", case.id)
        };
        assert_eq!(formats, expected, "{}", case.id);
        // The canonical text of a whole message is the same thing.
        if !message.class.chunk {
            let text = message.into_message().unwrap().json().to_owned();
            assert_eq!(text, expected["model_dump"].to_string(), "{}", case.id);
        }
    }
}

#[test]
fn messages_from_dict_equals_the_reference() {
    check("messages_from_dict", |case| {
        let items = case.input["messages"].as_array().unwrap().iter().cloned();
        let built: Result<Vec<Value>, Error> = items
            .map(|item| Ok(coerce::from_dict(item)?.canonical()))
            .collect();
        built.map(Value::Array)
    });
}

/// A thread that holds something, with an id source that has given some ids.
fn resident() -> (ThreadState, Overlay, SequentialIds) {
    let state = ThreadState::restore(StoredState {
        messages: vec![(
            0,
            Message::from_canonical_text(r#"{"content":"kept","type":"human","id":"kept"}"#)
                .unwrap(),
        )],
        channels: Vec::new(),
        next_seq: 1,
    });
    let mut overlay = Overlay::new();
    let mut ids = SequentialIds::starting_at(500);
    let pending = StateUpdate::set(
        Channel::Messages,
        json!(["pending", {"role": "user", "content": "kept", "id": "kept"}]),
    );
    state.stage(&mut overlay, &[pending], &mut ids).unwrap();
    (state, overlay, ids)
}

fn read(state: &ThreadState, overlay: &Overlay) -> String {
    let mut out = String::new();
    state
        .view(overlay)
        .write_json(&mut out, &Selection::default());
    out
}

#[test]
fn a_resident_thread_equals_the_reference() {
    let run = |case: &Case, state: &Value, writes: &[Value]| {
        let (thread, mut overlay, _) = resident();
        let mut ids = SequentialIds::default();
        // The state is given as a whole, so that copies and removals in it are state.
        let given = StateUpdate::overwrite(Channel::Messages, state.clone());
        if let Err(error) = thread.stage(&mut overlay, &[given], &mut ids) {
            return Some((case.id.clone(), Err(error)));
        }
        let before = (
            read(&thread, &overlay),
            ids.mark(),
            format!("{:?}", thread.delta(&overlay)),
        );
        let step: Vec<StateUpdate> = writes
            .iter()
            .map(|write| StateUpdate::set(Channel::Messages, write.clone()))
            .collect();
        let staged = thread.stage(&mut overlay, &step, &mut ids);
        if staged.is_err() {
            let after = (
                read(&thread, &overlay),
                ids.mark(),
                format!("{:?}", thread.delta(&overlay)),
            );
            assert_eq!(before, after, "{}", case.id);
        }
        let messages: Vec<Message> = thread.view(&overlay).messages().cloned().collect();
        Some((case.id.clone(), staged.map(|()| list(&messages))))
    };
    for op in ["add_messages", "merge_message_writes"] {
        let mut checked = 0;
        for case in load(op) {
            let (state, writes) = match op {
                "add_messages" => (&case.input["left"], vec![case.input["right"].clone()]),
                _ => (
                    &case.input["state"],
                    case.input["writes"].as_array().cloned().unwrap_or_default(),
                ),
            };
            // An overwrite with null empties the channel, and no writes are no step: those have no such form here.
            if state.is_null() || writes.is_empty() || writes[0].is_null() {
                continue;
            }
            let (id, answer) = run(&case, state, &writes).unwrap();
            let difference = differs(&case, &answer);
            assert!(difference.is_none(), "{id}: {difference:?}");
            checked += 1;
        }
        assert!(checked > 1_500, "{op}: {checked}");
    }
}

#[test]
fn a_failed_write_changes_nothing_on_a_resident_thread() {
    let mut failed = 0;
    for op in [
        "add_messages",
        "merge_message_writes",
        "convert_to_messages",
    ] {
        for case in load(op) {
            let Err(expected) = &case.expected else {
                continue;
            };
            let (thread, mut overlay, mut ids) = resident();
            let before = (
                read(&thread, &overlay),
                ids.mark(),
                format!("{:?}", thread.delta(&overlay)),
            );
            // Good writes to two channels come first; then what fails.
            let mut step = vec![StateUpdate::set(Channel::Title, "new title").and(
                Channel::Messages,
                Write::Value(json!(["a", {"role": "remove", "content": "", "id": "kept"}])),
            )];
            let writes = match op {
                "add_messages" => vec![case.input["left"].clone(), case.input["right"].clone()],
                "merge_message_writes" => {
                    case.input["writes"].as_array().cloned().unwrap_or_default()
                }
                _ => vec![case.input["messages"].clone()],
            };
            step.extend(
                writes
                    .into_iter()
                    .map(|write| StateUpdate::set(Channel::Messages, write)),
            );
            match thread.stage(&mut overlay, &step, &mut ids) {
                Ok(()) => continue,
                Err(error) => {
                    failed += 1;
                    let path = error.path.clone().unwrap_or_default();
                    let place = path
                        .split('/')
                        .nth(1)
                        .and_then(|place| place.parse::<usize>().ok());
                    assert!(
                        place.is_some_and(|place| (1..step.len()).contains(&place)),
                        "{}: {path}",
                        case.id
                    );
                    assert_eq!(
                        path.split('/').nth(2),
                        Some("messages"),
                        "{}: {path}",
                        case.id
                    );
                    if op == "convert_to_messages" && !case.id.contains("/container/") {
                        assert_eq!(error.code, expected.code(&case.id), "{}", case.id);
                    }
                }
            }
            let after = (
                read(&thread, &overlay),
                ids.mark(),
                format!("{:?}", thread.delta(&overlay)),
            );
            assert_eq!(before, after, "{}", case.id);
        }
    }
    assert!(failed > 700, "{failed}");
}
