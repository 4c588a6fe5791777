//! Golden cases: one JSON object per line, as the reference answered.

use std::path::Path;

use fawn::protocol::error::ErrorCode;
use serde_json::Value;

/// One golden case.
pub struct Case {
    pub id: String,
    pub input: Value,
    pub expected: Result<Value, Failure>,
}

/// How the reference failed.
pub struct Failure {
    pub exception: String,
    pub message: String,
    /// Of a validation error: type and location of every wrong member.
    pub members: Vec<(String, Vec<Value>)>,
}

/// Cases that are left out, each with the reason.
pub const SKIPPED: &[(&str, &str)] = &[(
    "merge_message_writes/container/0005",
    "python-quirk: an object for the list of writes is indexed with 0; here the list is a list",
)];

/// The cases of one operation.
pub fn load(op: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/vectors");
    let text = std::fs::read_to_string(folder.join(format!("{op}.jsonl"))).unwrap();
    let cases: Vec<Case> = text.lines().map(parse).collect();
    assert!(!cases.is_empty());
    cases
}

fn parse(line: &str) -> Case {
    let mut case: Value = serde_json::from_str(line).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let expected = match case.get("error") {
        None => Ok(case["output"].take()),
        Some(error) => {
            let members = error["errors"].as_array().into_iter().flatten();
            let members = members.map(|entry| {
                (
                    text(&entry["type"]),
                    entry["loc"].as_array().unwrap().clone(),
                )
            });
            Err(Failure {
                exception: text(&error["type"]),
                message: text(&error["message"]),
                members: members.collect(),
            })
        }
    };
    Case {
        id: text(&case["id"]),
        input: case["input"].take(),
        expected,
    }
}

impl Failure {
    /// The code that the failure maps to, by the table of `state::coerce`.
    pub fn code(&self, case: &str) -> ErrorCode {
        let says = |part: &str| self.message.contains(part);
        match self.exception.as_str() {
            "JSONDecodeError" => ErrorCode::ArgumentsSyntax,
            "KeyError" => ErrorCode::MessageMember,
            "NotImplementedError" => ErrorCode::NotAMessage,
            "AttributeError" => ErrorCode::MessageInvalid,
            "ValidationError" if self.members[0].0 == "missing" => ErrorCode::MessageMember,
            "ValidationError" => ErrorCode::MessageInvalid,
            "ValueError" if says("Must specify non-null") => ErrorCode::NullWrite,
            "ValueError" if says("Attempting to delete") => ErrorCode::UnknownMessageId,
            "ValueError" if says("Message dict must contain") => ErrorCode::MessageIncomplete,
            "ValueError" if says("nexpected message type") => ErrorCode::UnknownRole,
            "ValueError" => ErrorCode::MessageInvalid,
            "TypeError" if says("unhashable type") => ErrorCode::UnknownRole,
            "TypeError" if case.contains("/container/") || case.contains("/nowrites/") => {
                ErrorCode::WrongType
            }
            "TypeError" if says("missing") => ErrorCode::MessageMember,
            "TypeError" if says("unexpected keyword") => ErrorCode::MessageExtra,
            "TypeError" if says("multiple values") => ErrorCode::MessageExtra,
            "TypeError" => ErrorCode::MessageInvalid,
            other => panic!("no mapping for {other}"),
        }
    }

    /// Whether the contract names the text of the failure.
    pub fn text_is_named(&self) -> bool {
        let named = ["Must specify non-null", "Attempting to delete"];
        named.iter().any(|start| self.message.starts_with(start))
    }

    /// The wrong members as JSON pointers, one for each member: the branches of a union are one.
    pub fn pointers(&self) -> Vec<String> {
        let mut pointers: Vec<String> = Vec::new();
        for (_, location) in &self.members {
            let mut pointer = String::new();
            for part in location {
                let part = part
                    .as_str()
                    .map_or_else(|| part.to_string(), str::to_owned);
                if !(part == "str" || part.starts_with("list[") || part.starts_with("dict[")) {
                    pointer.push('/');
                    pointer.push_str(&part);
                }
            }
            if pointers.last() != Some(&pointer) {
                pointers.push(pointer);
            }
        }
        // Of a list with wrong items the union also reports the list itself.
        let has_items = pointers
            .iter()
            .any(|pointer| pointer.starts_with("/content/"));
        pointers.retain(|pointer| !(has_items && pointer == "/content"));
        pointers
    }
}
