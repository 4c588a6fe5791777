//! What every request to a model must be, whatever came before it: endpoints refuse anything else.
//!
//! No call without its result and no result without its call, no empty id or name, arguments that are an object, no blank
//! message of the assistant, system text only in front.

use std::collections::BTreeSet;

use serde_json::Value;

/// One message, whatever its wire format.
#[derive(Default)]
struct Turn {
    role: &'static str,
    /// Whether there is anything besides calls and results.
    says: bool,
    /// Id, name, whether the arguments are an object.
    calls: Vec<(String, String, bool)>,
    results: Vec<String>,
}

/// What is wrong with the body of a chat completions request.
pub fn openai(body: &Value) -> Vec<String> {
    let turn = |message: &Value| {
        let mut turn = Turn {
            role: match message["role"].as_str() {
                Some("system" | "developer") => "system",
                Some("user") => "user",
                Some("assistant") => "assistant",
                Some("tool") => "tool",
                _ => "unknown",
            },
            says: says(&message["content"]),
            ..Turn::default()
        };
        for call in list(&message["tool_calls"]) {
            let args = call["function"]["arguments"].as_str().unwrap_or_default();
            let args = serde_json::from_str(args).unwrap_or(Value::Null);
            turn.calls.push((
                text(&call["id"]),
                text(&call["function"]["name"]),
                args.is_object(),
            ));
        }
        if turn.role == "tool" {
            turn.results.push(text(&message["tool_call_id"]));
        }
        turn
    };
    wrong(list(&body["messages"]).iter().map(turn).collect())
}

/// What is wrong with the body of a messages request.
pub fn anthropic(body: &Value) -> Vec<String> {
    let mut wrong_blocks = Vec::new();
    let mut turns = Vec::new();
    let mut ids = BTreeSet::new();
    for message in list(&body["messages"]) {
        let mut turn = Turn {
            role: match message["role"].as_str() {
                Some("user") => "user",
                Some("assistant") => "assistant",
                _ => "unknown",
            },
            says: message["content"].is_string() && says(&message["content"]),
            ..Turn::default()
        };
        for block in list(&message["content"]) {
            match block["type"].as_str() {
                Some("tool_use") => {
                    if !ids.insert(text(&block["id"])) {
                        wrong_blocks.push(format!("two calls have the id {}", block["id"]));
                    }
                    turn.calls.push((
                        text(&block["id"]),
                        text(&block["name"]),
                        block["input"].is_object(),
                    ));
                }
                Some("tool_result") => {
                    if turn.says {
                        wrong_blocks.push("a result stands behind text".to_owned());
                    }
                    turn.results.push(text(&block["tool_use_id"]));
                }
                Some("text") if !says(&block["text"]) => {
                    wrong_blocks.push("a text block is blank".to_owned());
                }
                _ => turn.says = true,
            }
        }
        if turns
            .last()
            .is_some_and(|last: &Turn| last.role == turn.role)
        {
            wrong_blocks.push(format!("two messages of the {} in a row", turn.role));
        }
        turns.push(turn);
    }
    let mut wrong = wrong(turns);
    wrong.extend(wrong_blocks);
    wrong
}

/// What is wrong with the arguments of a host call for a model.
pub fn host(args: &Value) -> Vec<String> {
    let turn = |message: &Value| {
        let mut turn = Turn {
            role: match message["type"].as_str() {
                Some("system") => "system",
                Some("human" | "chat") => "user",
                Some("ai") => "assistant",
                Some("tool") => "tool",
                _ => "unknown",
            },
            says: says(&message["content"]),
            ..Turn::default()
        };
        for call in list(&message["tool_calls"]) {
            turn.calls.push((
                text(&call["id"]),
                text(&call["name"]),
                call["args"].is_object(),
            ));
        }
        if !list(&message["invalid_tool_calls"]).is_empty() {
            turn.calls
                .push((String::new(), "an invalid call".to_owned(), false));
        }
        if turn.role == "tool" {
            turn.results.push(text(&message["tool_call_id"]));
        }
        turn
    };
    wrong(list(&args["messages"]).iter().map(turn).collect())
}

/// Holds a host call for a model to it.
pub fn check_call(data: &Value) {
    if data["kind"] == "model" {
        let wrong = host(&data["args"]);
        assert!(wrong.is_empty(), "no endpoint takes this: {wrong:#?}");
    }
}

fn wrong(turns: Vec<Turn>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut is_past_system = false;
    for (place, turn) in turns.iter().enumerate() {
        let mut say = |what: &str| wrong.push(format!("message {place} ({}): {what}", turn.role));
        match turn.role {
            "unknown" => say("no role that there is"),
            "system" if is_past_system => say("system text behind other messages"),
            _ => {}
        }
        is_past_system |= turn.role != "system";
        for id in &turn.results {
            if !open.remove(id) {
                say(&format!("the result {id:?} answers no call before it"));
            }
        }
        // Results of chat completions are messages of their own, so that more may follow.
        if turn.role != "tool" && !open.is_empty() {
            say(&format!("calls {open:?} have no result"));
            open.clear();
        }
        for (id, name, is_object) in &turn.calls {
            if id.trim().is_empty() {
                say("a call has no id");
            }
            if name.trim().is_empty() {
                say("a call has no name");
            }
            if !is_object {
                say(&format!("the arguments of {name:?} are no object"));
            }
            if !open.insert(id.clone()) {
                say(&format!("two calls have the id {id:?}"));
            }
        }
        if turn.role == "assistant" && !turn.says && turn.calls.is_empty() {
            say("it is blank");
        }
    }
    if !open.is_empty() {
        wrong.push(format!("calls {open:?} at the end have no result"));
    }
    wrong
}

fn says(content: &Value) -> bool {
    match content {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(blocks) => blocks.iter().any(|block| match &block["text"] {
            Value::String(text) => !text.trim().is_empty(),
            _ => match block {
                Value::String(text) => !text.trim().is_empty(),
                _ => true,
            },
        }),
        _ => false,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
