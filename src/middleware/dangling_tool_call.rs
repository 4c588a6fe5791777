//! Repairs the transcript before it goes to a model, so that no call and no result stands alone.
//!
//! Every call of an ai message is followed by exactly one result: the stored one, moved behind its call where needed, or one
//! that says that there is none. A result pairs inside its own turn only. Results that answer no call are left out. Blank
//! ids and names are replaced. The stored state is not touched, a sound transcript passes as it is, and repairing twice
//! changes nothing.
//!
//! Source: DeerFlow `DanglingToolCallMiddleware`, MW-DNG-2 and 4 to 10. Not there yet: the raw calls in
//! `additional_kwargs` (MW-DNG-1) and the claims of results with malformed ids (MW-DNG-3); both pass unrepaired here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Hooks, Middleware, ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::message::{Fields, Kind, Message, ToolCall, ToolStatus};

/// The name a call without one gets.
const UNKNOWN_TOOL: &str = "unknown_tool";

/// It has no settings.
pub fn new() -> Arc<dyn Middleware> {
    Arc::new(DanglingToolCall)
}

struct DanglingToolCall;

impl Middleware for DanglingToolCall {
    fn name(&self) -> &str {
        "dangling_tool_call"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_model_call: true,
            ..Hooks::default()
        }
    }

    fn wrap_model_call<'a>(
        &'a self,
        mut request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let known = request.messages.sound_prefix();
        match sound_turns(&request.messages[known..]) {
            Some(turns) => request.messages.note_sound(known + turns),
            None => {
                if let Some(repaired) = repair(&request.messages) {
                    request.messages = Arc::new(repaired.into());
                }
            }
        }
        next.run(request)
    }
}

/// The repaired transcript; `None` when nothing needs repair.
pub(crate) fn repair(messages: &[Message]) -> Option<Vec<Message>> {
    if is_sound(messages) {
        return None;
    }
    let mut out = Vec::with_capacity(messages.len());
    let mut place = 0;
    while place < messages.len() {
        let message = &messages[place];
        place += 1;
        match message.kind() {
            Kind::Tool => {} // it was not taken by the turn before it, so it answers nothing
            Kind::Ai => {
                let ai = sound_calls(message, place - 1);
                let turn = messages[place..]
                    .iter()
                    .take_while(|later| later.kind() != Kind::Ai)
                    .filter(|later| later.kind() == Kind::Tool);
                let mut results: HashMap<&str, VecDeque<&Message>> = HashMap::new();
                for result in turn {
                    results
                        .entry(result.fields().tool_call_id.as_str())
                        .or_default()
                        .push_back(result);
                }
                out.push(ai.clone());
                let fields = ai.fields();
                for call in &fields.tool_calls {
                    let id = call.id.as_deref().unwrap_or_default();
                    let stored = results.get_mut(id).and_then(VecDeque::pop_front);
                    out.push(match stored {
                        Some(result) => result.clone(),
                        None if call.name == UNKNOWN_TOOL => no_result(
                            call,
                            "The call named no tool. Use one of the tools on offer.",
                        ),
                        None => no_result(call, "The call was interrupted; there is no result."),
                    });
                }
            }
            _ => out.push(message.clone()),
        }
    }
    Some(out)
}

/// Whether every call is followed by its result, in order, and every result follows its call.
fn is_sound(messages: &[Message]) -> bool {
    sound_turns(messages).is_some()
}

/// How many of the first messages are whole turns that nothing after them can change; `None` when something needs repair.
fn sound_turns(messages: &[Message]) -> Option<usize> {
    let mut expected: VecDeque<&str> = VecDeque::new();
    let mut whole = 0;
    for (place, message) in messages.iter().enumerate() {
        match message.kind() {
            Kind::Tool => {
                if expected.pop_front() != Some(message.fields().tool_call_id.as_str()) {
                    return None;
                }
            }
            kind => {
                if !expected.is_empty() {
                    return None;
                }
                // What came before is complete: results of it would have had to stand there.
                whole = place;
                if kind == Kind::Ai {
                    let fields = message.fields();
                    if !fields.invalid_tool_calls.is_empty() {
                        return None;
                    }
                    for call in &fields.tool_calls {
                        match call.id.as_deref() {
                            Some(id) if !id.trim().is_empty() && !call.name.trim().is_empty() => {
                                expected.push_back(id);
                            }
                            _ => return None,
                        }
                    }
                }
            }
        }
    }
    expected.is_empty().then_some(whole)
}

/// The ai message with an id and a name for each of its calls, invalid ones among them with empty arguments.
fn sound_calls(message: &Message, index: usize) -> Message {
    let fields = message.fields();
    let is_blank = |text: Option<&str>| text.is_none_or(|text| text.trim().is_empty());
    let sound = fields.invalid_tool_calls.is_empty()
        && fields
            .tool_calls
            .iter()
            .all(|call| !is_blank(call.id.as_deref()) && !is_blank(Some(&call.name)));
    if sound {
        return message.clone();
    }
    let mut fields: Fields = fields.clone();
    for (position, call) in fields.tool_calls.iter_mut().enumerate() {
        if is_blank(call.id.as_deref()) {
            call.id = Some(synthetic_id(index, "call", position));
        }
        call.name = sound_name(&call.name);
    }
    for (position, call) in std::mem::take(&mut fields.invalid_tool_calls)
        .into_iter()
        .enumerate()
    {
        fields.tool_calls.push(ToolCall {
            name: sound_name(call.name.as_deref().unwrap_or_default()),
            args: Map::new(),
            id: match call.id {
                Some(id) if !id.trim().is_empty() => Some(id),
                _ => Some(synthetic_id(index, "invalid", position)),
            },
        });
    }
    Message::new(fields)
}

fn synthetic_id(index: usize, view: &str, position: usize) -> String {
    format!("deerflow_synthetic_tool_call_{index}_{view}_{position}")
}

fn sound_name(name: &str) -> String {
    match name.trim() {
        "" => UNKNOWN_TOOL.to_owned(),
        name => name.to_owned(),
    }
}

fn no_result(call: &ToolCall, text: &str) -> Message {
    let mut fields = Fields::new(Kind::Tool, Value::String(text.to_owned()));
    fields.name = Some(call.name.clone());
    fields.tool_call_id = call.id.clone().unwrap_or_default();
    fields.status = ToolStatus::Error;
    Message::new(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ai(calls: &[(&str, Option<&str>)]) -> Message {
        let mut fields = Fields::new(Kind::Ai, "");
        for (name, id) in calls {
            fields.tool_calls.push(ToolCall {
                name: (*name).to_owned(),
                args: Map::new(),
                id: id.map(str::to_owned),
            });
        }
        Message::new(fields)
    }

    fn tool(id: &str, text: &str) -> Message {
        let mut fields = Fields::new(Kind::Tool, text);
        fields.tool_call_id = id.to_owned();
        Message::new(fields)
    }

    fn human(text: &str) -> Message {
        Message::new(Fields::new(Kind::Human, text))
    }

    fn results(messages: &[Message]) -> Vec<(String, String)> {
        messages
            .iter()
            .filter(|m| m.kind() == Kind::Tool)
            .map(|m| (m.fields().tool_call_id.clone(), m.text()))
            .collect()
    }

    #[test]
    fn a_sound_transcript_passes_as_it_is() {
        let messages = [
            human("x"),
            ai(&[("f", Some("c1")), ("g", Some("c2"))]),
            tool("c1", "1"),
            tool("c2", "2"),
            ai(&[]),
        ];
        assert_eq!(repair(&messages), None);
    }

    #[test]
    fn dng_5_and_6_results_are_moved_behind_their_call_and_made_up_where_missing() {
        let messages = [
            ai(&[("f", Some("c1")), ("g", Some("c2"))]),
            human("x"),
            tool("c2", "2"),
        ];
        let repaired = repair(&messages).expect("needs repair");
        let found = results(&repaired);
        assert_eq!(found[0].0, "c1");
        assert_eq!(found[1], ("c2".to_owned(), "2".to_owned()));
        assert_eq!(repaired[3].kind(), Kind::Human);
        assert_eq!(
            repair(&repaired),
            None,
            "DNG-10: repairing twice changes nothing"
        );
    }

    #[test]
    fn dng_4_orphans_and_surplus_results_are_left_out() {
        let messages = [
            tool("c0", "0"),
            ai(&[("f", Some("c1"))]),
            tool("c1", "1"),
            tool("c1", "again"),
            tool("zz", "z"),
        ];
        let repaired = repair(&messages).expect("needs repair");
        assert_eq!(results(&repaired), [("c1".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn call_ids_repeated_in_later_turns_pair_inside_their_own_turn() {
        let messages = [
            ai(&[("f", Some("c1"))]),
            ai(&[("f", Some("c1"))]),
            tool("c1", "second"),
        ];
        let repaired = repair(&messages).expect("needs repair");
        let found = results(&repaired);
        assert_eq!(found.len(), 2);
        assert_ne!(found[0].1, "second");
        assert_eq!(found[1].1, "second");
    }

    #[test]
    fn dng_2_and_8_blank_ids_and_names_are_replaced() {
        let messages = [ai(&[(" ", None), ("f", Some(" "))])];
        let repaired = repair(&messages).expect("needs repair");
        let calls = &repaired[0].fields().tool_calls;
        assert_eq!(calls[0].name, UNKNOWN_TOOL);
        assert_eq!(
            calls[0].id.as_deref(),
            Some("deerflow_synthetic_tool_call_0_call_0")
        );
        assert_eq!(
            calls[1].id.as_deref(),
            Some("deerflow_synthetic_tool_call_0_call_1")
        );
        assert_eq!(repair(&repaired), None);
    }

    #[test]
    fn checking_from_the_known_prefix_finds_what_checking_all_finds() {
        let mut random: u64 = 7;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..2_000 {
            let mut messages: Vec<Message> = Vec::new();
            let mut known = 0;
            for _ in 0..12 {
                messages.push(match next(5) {
                    0 => human("x"),
                    1 => ai(&[]),
                    2 => ai(&[("f", Some("c1"))]),
                    3 => tool("c1", "1"),
                    _ => tool("c2", "2"),
                });
                let all = sound_turns(&messages);
                let rest = sound_turns(&messages[known..]);
                assert_eq!(
                    rest.map(|turns| known + turns),
                    all,
                    "{messages:?} from {known}"
                );
                known = all.unwrap_or(known);
            }
        }
    }
}
