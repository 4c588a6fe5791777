//! What a set of tool calls is about, as one short hash: how loops are told.
//!
//! Source: DeerFlow `LoopDetectionMiddleware`, MW-LOOP-2 to 4.

use md5::{Digest, Md5};
use serde_json::{Map, Value};

use crate::protocol::hash::hex;
use crate::protocol::message::ToolCall;
use crate::state::python;

/// Lines of a file that count as one place.
const BUCKET_LINES: i128 = 200;
/// The arguments that say what a call is about, where there are any of them.
const SALIENT: [&str; 7] = ["path", "url", "query", "command", "pattern", "glob", "cmd"];
/// Hexadecimal digits of a hash.
const HASH_CHARS: usize = 12;

/// Hash of the set of calls of a reply, whatever their order: the first 12 hexadecimal digits of the MD5 of the sorted list
/// of `name:key` as Python's `json.dumps` writes it (MW-LOOP-4).
pub(crate) fn call_set_hash(calls: &[ToolCall]) -> String {
    let mut keys: Vec<String> = calls
        .iter()
        .map(|call| format!("{}:{}", call.name, call_key(&call.name, &call.args)))
        .collect();
    // By code point, as UTF-8 sorts.
    keys.sort_unstable();
    let list = python::dumps(&Value::from(keys));
    let mut hash = hex(&Md5::digest(list.as_bytes()));
    hash.truncate(HASH_CHARS);
    hash
}

/// What a call is about, so that calls which differ in small things are the same: a stretch of a file for `read_file`, all
/// arguments where the content matters, else the arguments that name an object (MW-LOOP-3). Arguments are an object by the
/// time they get here; in any other form (MW-LOOP-2) they are no call that could be run.
fn call_key(name: &str, args: &Map<String, Value>) -> String {
    match name {
        "read_file" => {
            let path = python::truthy_member(args, "path").map_or_else(String::new, python::str_of);
            let first = args.get("start_line").and_then(whole).unwrap_or(1);
            let last = args.get("end_line").and_then(whole).unwrap_or(first);
            let bucket = |line: i128| (line.max(1) - 1) / BUCKET_LINES;
            let (from, to) = (bucket(first.min(last)), bucket(first.max(last)));
            format!("{path}:{from}-{to}")
        }
        "write_file" | "str_replace" => sorted_dumps(args.clone()),
        _ => {
            let salient: Map<String, Value> = SALIENT
                .into_iter()
                .filter_map(|name| {
                    let value = args.get(name).filter(|value| !value.is_null())?;
                    Some((name.to_owned(), value.clone()))
                })
                .collect();
            sorted_dumps(if salient.is_empty() {
                args.clone()
            } else {
                salient
            })
        }
    }
}

/// `json.dumps(…, sort_keys=True)`.
fn sorted_dumps(members: Map<String, Value>) -> String {
    let mut value = Value::Object(members);
    value.sort_all_objects();
    python::dumps(&value)
}

/// `int()` of a value; `None` where it is an error, and for null.
fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(value) => Some(i128::from(*value)),
        Value::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
            .or_else(|| number.as_f64().map(|float| float.trunc() as i128)),
        Value::String(text) => {
            let text = text.trim();
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            let is_grouped = digits
                .split('_')
                .all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()));
            is_grouped
                .then(|| text.replace('_', "").parse().ok())
                .flatten()
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::*;

    /// Sets of calls and their hashes, made with Python's `json`, `int` and `hashlib`:
    /// `md5(json.dumps(sorted(f"{name}:{key}" …)).encode()).hexdigest()[:12]`.
    const GOLDEN: &str = r##"[
  [[], "d75171398898"],
  [[["bash", {"command": "ls -la"}]], "64adf2acde90"],
  [[["bash", {"command": "ls", "description": "noise"}]], "644d05a19cdd"],
  [[["bash", {"command": "ls"}], ["bash", {"command": "ls"}]], "806e4a9c478c"],
  [[["web_search", {"query": "gr\u00f6\u00dfe \ud83d\ude00 \u007f \"q\" \\ \n\t\b\f\r\u0001", "url": null}]], "101257a2b319"],
  [[["read_file", {"path": "/a", "start_line": 1, "end_line": 200}]], "8a705237b54e"],
  [[["read_file", {"path": "/a", "start_line": "201", "end_line": " 1_0 "}]], "e9406e7bc741"],
  [[["read_file", {"path": "/a", "start_line": 401.9, "end_line": true}]], "521823625d19"],
  [[["read_file", {"path": "/a", "start_line": "x", "end_line": []}]], "8a705237b54e"],
  [[["read_file", {"path": null, "start_line": -5, "end_line": 0}]], "19788f79a3c6"],
  [[["read_file", {"path": ["p", {"k": null}], "end_line": "1__0"}]], "98f407a62bc1"],
  [[["read_file", {}]], "19788f79a3c6"],
  [[["write_file", {"path": "/a", "content": "x", "append": false}]], "05d40c566920"],
  [[["str_replace", {"path": "/a", "new_str": "b", "old_str": "a", "replace_all": true}]], "4493a679809b"],
  [[["f", {"z": 1, "a": [1.0, 1e+16, 1e-05, 0.1, -0.0, 1e+22, 1.2345678901234568e+17, 1.5e+300, true, null, {"b": 1, "a": 2}]}]], "3212841cee10"],
  [[["f", {}]], "02f89589ab44"],
  [[["f", {"path": "", "glob": "*", "cmd": 0}]], "9df68b033aa0"],
  [[["b", {"x": 1}], ["a", {"y": 2}], ["\u00e4", {"z": 3}], ["\ud83d\ude00", {}], ["\uffff", {}]], "a325aeb65d3a"],
  [[["f", {"\ud83d\ude00": 1, "\uffff": 2, "z": 3, "Z": 4}]], "9e0613f10563"]
]"##;

    fn calls(list: &Value) -> Vec<ToolCall> {
        let calls = list.as_array().unwrap().iter().map(|call| ToolCall {
            name: call[0].as_str().unwrap().to_owned(),
            args: call[1].as_object().unwrap().clone(),
            id: None,
        });
        calls.collect()
    }

    #[test]
    fn loop_4_hashes_are_those_of_the_reference() {
        let golden: Vec<(Value, String)> = serde_json::from_str(GOLDEN).unwrap();
        for (list, expected) in golden {
            let mut calls = calls(&list);
            assert_eq!(call_set_hash(&calls), expected, "{list}");
            calls.reverse();
            assert_eq!(
                call_set_hash(&calls),
                expected,
                "the order does not matter: {list}"
            );
        }
    }

    #[test]
    fn loop_3_what_counts_in_the_arguments_depends_on_the_tool() {
        let key = |name: &str, args: Value| call_key(name, args.as_object().unwrap());
        assert_eq!(
            key("bash", json!({"command": "ls", "description": "x"})),
            r#"{"command": "ls"}"#
        );
        assert_eq!(
            key("f", json!({"url": null, "b": 1, "a": 2})),
            r#"{"a": 2, "b": 1, "url": null}"#
        );
        assert_eq!(
            key("f", json!({"url": "u", "path": "p"})),
            r#"{"path": "p", "url": "u"}"#
        );
        assert_eq!(
            key("write_file", json!({"path": "p", "content": "c"})),
            r#"{"content": "c", "path": "p"}"#
        );
        for (args, expected) in [
            (json!({"path": "p"}), "p:0-0"),
            (json!({"path": "p", "start_line": 200}), "p:0-0"),
            (json!({"path": "p", "start_line": 201}), "p:1-1"),
            (
                json!({"path": "p", "start_line": 500, "end_line": 1}),
                "p:0-2",
            ),
            (
                json!({"path": "p", "start_line": "-3", "end_line": "+401"}),
                "p:0-2",
            ),
            (
                json!({"path": "p", "start_line": {}, "end_line": "4 0 1"}),
                "p:0-0",
            ),
            (
                json!({"path": 7, "start_line": 1e300}),
                "7:850705917302346158658436518579420528-850705917302346158658436518579420528",
            ),
        ] {
            assert_eq!(key("read_file", args), expected);
        }
    }

    #[test]
    fn loop_4_how_often_a_call_is_made_counts() {
        let once = calls(&json!([["f", {}]]));
        let twice = calls(&json!([["f", {}], ["f", {}]]));
        assert_ne!(call_set_hash(&once), call_set_hash(&twice));
    }
}
