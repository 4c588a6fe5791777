//! What becomes of a call of `ask_clarification`: the tool message that puts the question, as text for people and as data
//! for programs.
//!
//! Models write these arguments in many forms, so hardly anything here fails: what cannot be read as a form or as options is left
//! out, and the question remains. Only where nothing remains is there nobody to be asked.
//!
//! Source: DeerFlow `ClarificationMiddleware`, MW-CLA-1 to MW-CLA-6, HIL-2 to HIL-4, HIL-6.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::ask_clarification::{NAME, TYPES};
use super::clarification_form::{self, Field};
use crate::ports::tool::{ToolAnswer, ToolInvocation};
use crate::protocol::hash::hex;
use crate::protocol::json;
use crate::protocol::message::ToolStatus;
use crate::state::python;

/// Where a question stands in the artifact of its tool message.
pub const HUMAN_INPUT: &str = "human_input";

/// The answer to a call: the question, or the word to go on without one where the run's context says that nobody is there
/// to answer (`disable_clarification`).
pub fn answer_call(invocation: &ToolInvocation) -> ToolAnswer {
    if is_disabled(&invocation.run.facts.context) {
        proceed(&invocation.call_id)
    } else {
        ask(&invocation.args, &invocation.call_id)
    }
}

/// Whether questions are switched off for a run (MW-CLA-3).
pub fn is_disabled(context: &Map<String, Value>) -> bool {
    context
        .get("disable_clarification")
        .is_some_and(python::truthy)
}

/// The question; it ends the run. A call that asks nothing is an error of the model's, which goes on with it.
fn ask(args: &Map<String, Value>, call_id: &str) -> ToolAnswer {
    let request = Request::read(args);
    if request.asks_nothing() {
        return ToolAnswer {
            content: "Error: the call has no question. Say in \"question\" what you need to know, or go on without it.".into(),
            status: ToolStatus::Error,
            ..ToolAnswer::default()
        };
    }
    let text = request.text();
    let id = message_id(call_id, &text);
    ToolAnswer {
        artifact: json!({ HUMAN_INPUT: request.payload(call_id, &id) }),
        content: text.into(),
        id: Some(id),
        end_run: true,
        ..ToolAnswer::default()
    }
}

/// The word to go on; the run does so.
fn proceed(call_id: &str) -> ToolAnswer {
    let text = "Nobody is there to answer questions in this run, so do not ask again. Decide as you think best, do what \
                was asked for, and say in your answer what you assumed.";
    ToolAnswer {
        id: Some(message_id(call_id, text)),
        content: text.into(),
        ..ToolAnswer::default()
    }
}

/// The same for the same call, so that a call made again replaces its question.
fn message_id(call_id: &str, text: &str) -> String {
    if !call_id.is_empty() {
        return format!("clarification:{call_id}");
    }
    format!(
        "clarification:{}",
        hex(&Sha256::digest(text.as_bytes())[..8])
    )
}

/// A call's arguments, read.
struct Request {
    question: String,
    clarification_type: String,
    /// Absent and null differ in the payload.
    context: Option<Option<String>>,
    fields: Vec<Field>,
    options: Vec<String>,
}

impl Request {
    fn read(args: &Map<String, Value>) -> Self {
        let text = |name: &str| args.get(name).filter(|value| python::truthy(value));
        Request {
            question: text("question").map(python::str_of).unwrap_or_default(),
            clarification_type: args
                .get("clarification_type")
                .map_or_else(|| TYPES[0].0.to_owned(), python::str_of),
            context: args
                .get("context")
                .map(|value| (!value.is_null()).then(|| python::str_of(value))),
            fields: clarification_form::fields(args.get("fields")),
            options: options(args.get("options")),
        }
    }

    /// Whether there is nothing in it that a person could answer.
    fn asks_nothing(&self) -> bool {
        let context = self.context.as_ref().and_then(Option::as_deref);
        self.question.trim().is_empty()
            && context.is_none_or(|context| context.trim().is_empty())
            && self.fields.is_empty()
            && self.options.is_empty()
    }

    fn payload(&self, call_id: &str, id: &str) -> Value {
        // A reader of version 1 must not take a form for something that it knows.
        let (version, input_mode) = if !self.fields.is_empty() {
            (2, "form")
        } else if !self.options.is_empty() {
            (1, "choice_with_other")
        } else {
            (1, "free_text")
        };
        let mut payload = Map::new();
        payload.insert("version".into(), version.into());
        payload.insert("kind".into(), "human_input_request".into());
        payload.insert("source".into(), NAME.into());
        payload.insert("request_id".into(), id.into());
        payload.insert(
            "clarification_type".into(),
            self.clarification_type.as_str().into(),
        );
        payload.insert("question".into(), self.question.as_str().into());
        payload.insert("input_mode".into(), input_mode.into());
        if !call_id.is_empty() {
            payload.insert("tool_call_id".into(), call_id.into());
        }
        if let Some(context) = &self.context {
            payload.insert("context".into(), context.as_deref().into());
        }
        if !self.fields.is_empty() {
            let fields = self.fields.iter().map(Field::to_value);
            payload.insert("fields".into(), fields.collect());
        } else if !self.options.is_empty() {
            payload.insert("options".into(), numbered("option", &self.options));
        }
        Value::Object(payload)
    }

    /// The question for people, and for hosts that know nothing of the payload.
    fn text(&self) -> String {
        let known = TYPES
            .iter()
            .find(|(name, _)| *name == self.clarification_type);
        let (_, sign) = known.unwrap_or(&TYPES[0]);
        let mut text = match self.context.as_ref().and_then(Option::as_deref) {
            Some(context) if !context.is_empty() => {
                format!("{sign} {context}\n\n{}", self.question)
            }
            _ => format!("{sign} {}", self.question),
        };
        let lines: Vec<String> = if self.fields.is_empty() {
            self.options.clone()
        } else {
            self.fields.iter().map(Field::line).collect()
        };
        if !lines.is_empty() {
            text.push('\n');
        }
        for (place, line) in lines.iter().enumerate() {
            let _ = write!(text, "\n  {}. {line}", place + 1);
        }
        if !self.fields.is_empty() {
            text.push_str("\n\nAnswer with one value for each of these.");
        }
        text
    }
}

/// `[{"id": "<prefix>-N", "label": …, "value": …}, …]`, counting from 1.
pub(super) fn numbered(prefix: &str, options: &[String]) -> Value {
    options
        .iter()
        .enumerate()
        .map(|(place, option)| {
            json!({"id": format!("{prefix}-{}", place + 1), "label": option, "value": option})
        })
        .collect()
}

/// Options as a model may write them: a list, a JSON text of one, an object whose leaves they are, or a single value. Each
/// becomes text without what looks like XML tags; blank and repeated ones are dropped (MW-CLA-4).
pub(super) fn options(raw: Option<&Value>) -> Vec<String> {
    let parsed = match raw {
        Some(Value::String(text)) => json::parse(text).ok(),
        _ => None,
    };
    let items: Vec<&Value> = match parsed.as_ref().or(raw) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.iter().collect(),
        Some(object @ Value::Object(_)) => {
            let mut leaves = Vec::new();
            scalar_leaves(object, &mut leaves);
            leaves
        }
        Some(single) => vec![single],
    };
    let mut seen = HashSet::new();
    let mut options = Vec::with_capacity(items.len());
    for item in items {
        let text = python::str_of(item);
        let text = match text.contains('<') {
            true => XML_TAG.replace_all(&text, ""),
            false => text.into(),
        };
        let text = text.trim_matches(python::is_space);
        if !text.is_empty() && seen.insert(text.to_owned()) {
            options.push(text.to_owned());
        }
    }
    options
}

/// Texts, numbers and booleans below a value, in order. The value's depth is bounded by the parser.
fn scalar_leaves<'a>(value: &'a Value, leaves: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) => members
            .values()
            .for_each(|value| scalar_leaves(value, leaves)),
        Value::Array(items) => items.iter().for_each(|value| scalar_leaves(value, leaves)),
        Value::Null => {}
        scalar => leaves.push(scalar),
    }
}

/// What models that think in XML leave around an option.
static XML_TAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"</?[A-Za-z_][\w:.-]*(?:\s[^<>]*?)?\s*/?>").expect("a sound pattern")
});

#[cfg(test)]
mod tests {
    use super::*;

    fn args(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn a_call_that_asks_nothing_is_the_model_s_mistake() {
        for nothing in [
            json!({}),
            json!({"question": " ", "context": "", "options": [], "fields": "x"}),
            json!({"question": null, "clarification_type": "suggestion"}),
        ] {
            let answer = ask(&args(nothing), "c1");
            assert!(!answer.end_run && answer.artifact.is_null());
            assert_eq!(answer.status, ToolStatus::Error);
        }
        for something in [
            json!({"context": "The manual is in German."}),
            json!({"options": ["a"]}),
            json!({"fields": [{"name": "n"}]}),
        ] {
            assert!(ask(&args(something), "c1").end_run);
        }
    }

    fn asked(value: Value) -> (String, Value) {
        let answer = ask(&args(value), "c1");
        assert!(answer.end_run, "a question ends the run");
        assert_eq!(answer.id.as_deref(), Some("clarification:c1"));
        let text = answer.content.as_str().expect("text").to_owned();
        (text, answer.artifact["human_input"].clone())
    }

    #[test]
    fn mw_cla_1_the_id_is_the_call_s_or_a_hash_of_the_text() {
        assert_eq!(message_id("c1", "text"), "clarification:c1");
        // sha256("abc") = ba7816bf 8f01cfea …
        assert_eq!(message_id("", "abc"), "clarification:ba7816bf8f01cfea");
    }

    #[test]
    fn mw_cla_2_free_text_is_version_1_without_options() {
        let (text, payload) = asked(json!({"question": "Which city?"}));
        assert_eq!(text, "❓ Which city?");
        assert_eq!(
            payload,
            json!({
                "version": 1, "kind": "human_input_request", "source": "ask_clarification",
                "request_id": "clarification:c1", "clarification_type": "missing_info",
                "question": "Which city?", "input_mode": "free_text", "tool_call_id": "c1",
            })
        );
    }

    #[test]
    fn mw_cla_2_context_is_there_when_its_key_is_and_null_stays_null() {
        let (text, payload) = asked(json!({"question": "q", "context": null}));
        assert_eq!((text.as_str(), &payload["context"]), ("❓ q", &Value::Null));
        assert!(
            payload
                .as_object()
                .expect("an object")
                .contains_key("context")
        );
        let (text, payload) = asked(json!({"question": "q", "context": "why"}));
        assert_eq!(
            (text.as_str(), &payload["context"]),
            ("❓ why\n\nq", &json!("why"))
        );
        let (_, payload) = asked(json!({"question": "q"}));
        assert!(
            !payload
                .as_object()
                .expect("an object")
                .contains_key("context")
        );
    }

    #[test]
    fn mw_cla_2_options_make_a_choice_and_fields_win_over_options() {
        let (text, payload) = asked(
            json!({"question": "q", "clarification_type": "approach_choice", "options": ["a", "b"]}),
        );
        assert_eq!(text, "🔀 q\n\n  1. a\n  2. b");
        assert_eq!(payload["input_mode"], "choice_with_other");
        assert_eq!(
            payload["options"],
            json!([
                {"id": "option-1", "label": "a", "value": "a"},
                {"id": "option-2", "label": "b", "value": "b"},
            ])
        );
        let (text, payload) = asked(json!({
            "question": "q", "options": ["a"],
            "fields": [
                {"name": "city", "required": true},
                {"name": "how", "label": "How", "type": "multi_select", "options": ["x", "y"]},
            ],
        }));
        assert_eq!(
            (&payload["version"], &payload["input_mode"]),
            (&json!(2), &json!("form"))
        );
        assert_eq!(payload.get("options"), None);
        assert_eq!(
            text,
            "❓ q\n\n  1. city (required)\n  2. How (any of: x / y)\n\nAnswer with one value for each of these."
        );
    }

    #[test]
    fn mw_cla_3_a_truthy_flag_in_the_context_switches_questions_off() {
        for (context, expected) in [
            (json!({}), false),
            (json!({"disable_clarification": false}), false),
            (json!({"disable_clarification": 0}), false),
            (json!({"disable_clarification": ""}), false),
            (json!({"disable_clarification": true}), true),
            (json!({"disable_clarification": "yes"}), true),
        ] {
            assert_eq!(is_disabled(&args(context.clone())), expected, "{context}");
        }
        let answer = proceed("c1");
        assert!(!answer.end_run);
        assert_eq!(
            (answer.id.as_deref(), answer.artifact),
            (Some("clarification:c1"), Value::Null)
        );
    }

    #[test]
    fn mw_cla_4_options_come_in_many_forms() {
        let read = |value: Value| options(Some(&value));
        for (value, expected) in [
            (json!(null), vec![]),
            (json!([]), vec![]),
            (json!(""), vec![]),
            (json!("null"), vec![]),
            (json!("just this"), vec!["just this"]),
            (json!("[\"a\", \"b\"]"), vec!["a", "b"]),
            (json!("[\"a\", "), vec!["[\"a\","]),
            (json!("\"a\""), vec!["a"]),
            (json!("7"), vec!["7"]),
            (json!(7), vec!["7"]),
            (json!(true), vec!["True"]),
            (
                json!([" a ", "a", "", "  ", 1, null, 1.5]),
                vec!["a", "1", "None", "1.5"],
            ),
            (
                json!({"option": ["a", {"x": "b"}], "n": 3, "none": null, "b": false}),
                vec!["a", "b", "3", "False"],
            ),
            (
                json!(["<item>a</item>", "<br/>", "1 < 2 > 0", "<x y=\"1\">b</x>"]),
                vec!["a", "1 < 2 > 0", "b"],
            ),
            (json!([["x"], {"k": "v"}]), vec!["['x']", "{'k': 'v'}"]),
        ] {
            assert_eq!(read(value.clone()), expected, "{value}");
        }
        assert_eq!(options(None), [""; 0]);
    }

    #[test]
    fn mw_cla_6_each_type_has_its_sign_and_an_unknown_one_the_first() {
        for (name, sign) in TYPES {
            let (text, payload) = asked(json!({"question": "q", "clarification_type": name}));
            assert_eq!(text, format!("{sign} q"));
            assert_eq!(payload["clarification_type"], *name);
        }
        let (text, payload) = asked(json!({"question": null, "clarification_type": []}));
        assert_eq!(
            (text.as_str(), &payload["clarification_type"]),
            ("❓ ", &json!("[]"))
        );
        assert_eq!(payload["question"], "");
    }
}
