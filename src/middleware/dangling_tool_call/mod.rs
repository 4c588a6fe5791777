//! Repairs the transcript before it goes to a model, so that no call and no result stands alone.
//!
//! Every call of an ai message is followed by exactly one result: the stored one, moved behind its call where needed, or one
//! that says why there is none. Where several turns have a call of the same id, a result is the newest's before it. Results
//! that answer no call are left out, and so are ai messages that say and call nothing, which endpoints refuse. Blank ids and
//! names are replaced. The stored state is not touched, a sound transcript passes as it is, and repairing twice changes
//! nothing.
//!
//! Source: DeerFlow `DanglingToolCallMiddleware`, MW-DNG-1 to 10.

mod calls;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use self::calls::{CallFacts, Cause, SoundCalls, are_sound, is_blank, sound_calls};
use super::{Hooks, Middleware, ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::message::{Fields, Kind, Message, ToolCall, ToolStatus};

/// Most characters of what a parser said about arguments.
const MAX_DETAIL_CHARS: usize = 500;
/// The tool whose arguments are long, so that sending them again would fail the same way.
const WRITE_FILE: &str = "write_file";

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
    let mut turns = turns(messages);
    pair(messages, &mut turns);
    let mut out = Vec::with_capacity(messages.len());
    let mut turns = turns.into_iter().peekable();
    for (place, message) in messages.iter().enumerate() {
        match turns.next_if(|turn| turn.place == place) {
            Some(turn) => turn.write_to(&mut out),
            None if message.kind() == Kind::Tool || says_nothing(message) => {}
            None => out.push(message.clone()),
        }
    }
    Some(out)
}

/// An ai message that calls tools, and the results of its calls.
struct Turn {
    /// Where it stands.
    place: usize,
    message: Message,
    facts: Vec<CallFacts>,
    /// By the order of the calls.
    results: Vec<Option<Message>>,
    /// Results after it that name no call.
    blank_results: usize,
}

impl Turn {
    fn calls(&self) -> &[ToolCall] {
        &self.message.fields().tool_calls
    }

    /// The call that a result without an id is claimed for (MW-DNG-3): it had the same id, and no other name.
    fn claimed_by(&self, result: &Fields) -> Option<usize> {
        let name = result.name.as_deref().unwrap_or_default().trim();
        let fits = |place: &usize| {
            let facts = &self.facts[*place];
            let of_call = &self.calls()[*place].name;
            self.results[*place].is_none()
                && facts.stored_id.as_deref() == Some(&result.tool_call_id)
                && (name.is_empty() || facts.cause == Cause::Nameless || name == of_call)
        };
        let mut open = (0..self.facts.len()).filter(fits);
        let first = open.next()?;
        let relabelled = self
            .facts
            .iter()
            .filter_map(|facts| facts.stored_id.as_deref());
        let relabelled = relabelled.filter(|id| is_blank(id));
        let is_told = open.next().is_none() || self.blank_results == relabelled.count();
        is_told.then_some(first)
    }

    /// Takes a result for a call, which gives it the id, and a name where neither had one (MW-DNG-8).
    fn take(&mut self, place: usize, result: &Message) {
        let call = &self.calls()[place];
        let fields = result.fields();
        let id = call.id.as_deref().unwrap_or_default();
        let is_nameless = self.facts[place].cause == Cause::Nameless
            && is_blank(fields.name.as_deref().unwrap_or_default());
        let result = match fields.tool_call_id == id && !is_nameless {
            true => result.clone(),
            false => {
                let mut fields = fields.clone();
                fields.tool_call_id = id.to_owned();
                if is_nameless {
                    fields.name = Some(call.name.clone());
                }
                Message::new(fields)
            }
        };
        self.results[place] = Some(result);
    }

    fn write_to(self, out: &mut Vec<Message>) {
        out.push(self.message.clone());
        let calls = self.calls().iter().zip(&self.facts);
        let missing: Vec<Message> = calls.map(|(call, facts)| no_result(call, facts)).collect();
        let results = self.results.into_iter().zip(missing);
        out.extend(results.map(|(stored, missing)| stored.unwrap_or(missing)));
    }
}

/// The turns of a transcript, in order.
fn turns(messages: &[Message]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    // Results after an ai message without calls are no later turn's, and no earlier one's either.
    let mut is_in_turn = false;
    for (place, message) in messages.iter().enumerate() {
        match message.kind() {
            Kind::Ai => {
                let SoundCalls { message, facts } = sound_calls(message, place);
                is_in_turn = !facts.is_empty();
                if is_in_turn {
                    turns.push(Turn {
                        place,
                        message,
                        results: vec![None; facts.len()],
                        facts,
                        blank_results: 0,
                    });
                }
            }
            Kind::Tool if is_in_turn && is_blank(&message.fields().tool_call_id) => {
                if let Some(turn) = turns.last_mut() {
                    turn.blank_results += 1;
                }
            }
            _ => {}
        }
    }
    turns
}

/// Gives each call its result, in the order of the results (MW-DNG-3 to 5).
fn pair(messages: &[Message], turns: &mut [Turn]) {
    // By id the turns that call something by it, in order, and their calls that have no result yet.
    let mut by_id: HashMap<String, Vec<(usize, VecDeque<usize>)>> = HashMap::new();
    for (number, turn) in turns.iter().enumerate() {
        for (place, (call, facts)) in turn.calls().iter().zip(&turn.facts).enumerate() {
            let id = facts.stored_id.as_ref().or(call.id.as_ref());
            let known = by_id.entry(id.cloned().unwrap_or_default()).or_default();
            match known.last_mut() {
                Some((turn, open)) if *turn == number => open.push_back(place),
                _ => known.push((number, VecDeque::from([place]))),
            }
        }
    }
    let mut begun = 0;
    let mut is_in_turn = false;
    for (place, message) in messages.iter().enumerate() {
        match message.kind() {
            Kind::Ai => {
                is_in_turn = turns.get(begun).is_some_and(|turn| turn.place == place);
                begun += usize::from(is_in_turn);
            }
            Kind::Tool => {
                let result = message.fields();
                let id = &result.tool_call_id;
                let found = match is_blank(id) {
                    true => begun
                        .checked_sub(1)
                        .filter(|_| is_in_turn)
                        .and_then(|turn| Some((turn, turns[turn].claimed_by(result)?))),
                    false => by_id.get_mut(id).and_then(|known| {
                        let before = known.partition_point(|(turn, _)| *turn < begun);
                        // A result may have come before its call only if no earlier call has its id.
                        let (turn, open) = &mut known[before.saturating_sub(1)];
                        Some((*turn, open.pop_front()?))
                    }),
                };
                if let Some((turn, call)) = found {
                    turns[turn].take(call, message);
                }
            }
            _ => {}
        }
    }
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
                    if !are_sound(fields) || says_nothing(message) {
                        return None;
                    }
                    let ids = fields
                        .tool_calls
                        .iter()
                        .filter_map(|call| call.id.as_deref());
                    expected.extend(ids);
                }
            }
        }
    }
    expected.is_empty().then_some(whole)
}

/// Whether an ai message has nothing that could go to a model: no call, and no content but blank text.
fn says_nothing(message: &Message) -> bool {
    let fields = message.fields();
    let is_blank_block = |block: &Value| match block {
        Value::String(text) => is_blank(text),
        Value::Object(block) => {
            let text = block.get("text").and_then(Value::as_str);
            block.get("type").and_then(Value::as_str) == Some("text") && text.is_none_or(is_blank)
        }
        _ => false,
    };
    message.kind() == Kind::Ai
        && fields.tool_calls.is_empty()
        && fields.invalid_tool_calls.is_empty()
        && match &fields.content {
            Value::Null => true,
            Value::String(text) => is_blank(text),
            Value::Array(blocks) => blocks.iter().all(is_blank_block),
            _ => false,
        }
        && are_sound(fields)
}

/// The result of a call that has none (MW-DNG-7). Nothing that the model wrote comes back in it but the tool's name.
fn no_result(call: &ToolCall, facts: &CallFacts) -> Message {
    let text = match &facts.cause {
        Cause::Nameless => {
            "The call named no tool, so it could not be run. Use one of the tools on offer.".to_owned()
        }
        Cause::InvalidArguments(_) if call.name == WRITE_FILE => {
            "Nothing was written: the arguments of the call were not valid JSON, most likely because they were cut off. Do not \
             send the same large content again. Answer in text, or write the file in several smaller parts."
                .to_owned()
        }
        Cause::InvalidArguments(detail) => {
            let detail: String = detail.iter().flat_map(|it| it.chars()).take(MAX_DETAIL_CHARS).collect();
            let detail = match detail.trim() {
                "" => String::new(),
                detail => format!(" ({detail})"),
            };
            format!("The call could not be run: its arguments were not a valid JSON object{detail}. Call the tool again with arguments that are.")
        }
        Cause::Interrupted => "The call was interrupted; there is no result.".to_owned(),
    };
    let mut fields = Fields::new(Kind::Tool, Value::String(text));
    fields.name = Some(call.name.clone());
    fields.tool_call_id = call.id.clone().unwrap_or_default();
    fields.status = ToolStatus::Error;
    Message::new(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::{InvalidToolCall, UNKNOWN_TOOL};
    use serde_json::{Map, json};

    fn ai(calls: &[(&str, Option<&str>)]) -> Message {
        let mut fields = Fields::new(Kind::Ai, if calls.is_empty() { "said" } else { "" });
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

    fn message(members: Value) -> Message {
        let mut whole = json!({
            "content": "", "additional_kwargs": {}, "response_metadata": {}, "type": "ai", "name": null, "id": null,
        });
        whole
            .as_object_mut()
            .expect("an object")
            .extend(members.as_object().expect("an object").clone());
        let is_ai = whole["type"] == "ai";
        for (name, value) in [
            ("tool_calls", json!([])),
            ("invalid_tool_calls", json!([])),
            ("usage_metadata", Value::Null),
        ] {
            if is_ai && whole.get(name).is_none() {
                whole[name] = value;
            }
        }
        Message::from_canonical(whole).expect("a message")
    }

    fn named_tool(id: &str, name: &str, text: &str) -> Message {
        let mut fields = tool(id, text).fields().clone();
        fields.name = Some(name.to_owned());
        Message::new(fields)
    }

    #[test]
    fn dng_1_and_9_raw_calls_count_when_no_others_are_there() {
        let raw = json!([
            {"id": "r1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
            "nonsense",
            {"id": 7, "function": {"name": " ", "arguments": "{"}},
            {"name": "g", "arguments": {"b": 2}},
        ]);
        let calling = message(json!({"additional_kwargs": {"tool_calls": raw}}));
        let repaired = repair(&[calling, tool("r1", "1")]).expect("needs repair");
        let calls = &repaired[0].fields().tool_calls;
        let told: Vec<(&str, &str, Value)> = calls
            .iter()
            .map(|call| {
                (
                    call.id.as_deref().unwrap_or_default(),
                    &*call.name,
                    Value::from(call.args.clone()),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("r1", "f", json!({"a": 1})),
                (
                    "deerflow_synthetic_tool_call_0_raw_2",
                    "unknown_tool",
                    json!({})
                ),
                ("deerflow_synthetic_tool_call_0_raw_3", "g", json!({"b": 2})),
            ]
        );
        assert!(
            !repaired[0]
                .fields()
                .additional_kwargs
                .contains_key("tool_calls")
        );
        assert_eq!(results(&repaired)[0], ("r1".to_owned(), "1".to_owned()));
        assert_eq!(repair(&repaired), None);

        let both = message(json!({
            "additional_kwargs": {"tool_calls": raw},
            "tool_calls": [{"name": "f", "args": {}, "id": "c1", "type": "tool_call"}],
        }));
        assert_eq!(repair(&[both, tool("c1", "1")]), None);
    }

    #[test]
    fn dng_3_a_result_without_an_id_is_claimed_where_it_is_told_whose_it_is() {
        let claimed = |messages: &[Message]| -> Vec<String> {
            let repaired = repair(messages).expect("needs repair");
            assert_eq!(repair(&repaired), None);
            results(&repaired)
                .into_iter()
                .map(|(_, text)| text)
                .collect()
        };
        let missing = "The call was interrupted; there is no result.";
        // One candidate, whatever stands in between.
        let one = [ai(&[("f", Some(""))]), human("x"), tool("", "1")];
        assert_eq!(claimed(&one), ["1"]);
        // Another name contradicts; so does another malformed id.
        let other = [
            ai(&[("f", Some(""))]),
            named_tool("", "g", "1"),
            tool(" ", "2"),
        ];
        assert_eq!(claimed(&other), [missing]);
        // As many as there are calls: in order.
        let two = [
            ai(&[("f", None), ("f", Some(""))]),
            tool("", "1"),
            tool("", "2"),
        ];
        assert_eq!(claimed(&two), ["1", "2"]);
        // Names tell them apart.
        let named = [ai(&[("f", None), ("g", None)]), named_tool("", " g ", "2")];
        assert_eq!(claimed(&named), [missing, "2"]);
        // Fewer, and nothing tells whose they are.
        let vague = [ai(&[("f", None), ("f", None)]), tool("", "1")];
        assert_eq!(claimed(&vague), [missing, missing]);
        // Never an earlier turn's.
        let later = [ai(&[("f", None)]), ai(&[]), tool("", "1")];
        assert_eq!(claimed(&later), [missing]);
    }

    #[test]
    fn dng_6_a_result_comes_back_to_its_call_from_wherever_it_stands() {
        let far = [
            ai(&[("f", Some("c1"))]),
            human("x"),
            ai(&[]),
            tool("c1", "late"),
            tool("c2", "early"),
            ai(&[("f", Some("c2"))]),
        ];
        let repaired = repair(&far).expect("needs repair");
        let kinds: Vec<Kind> = repaired.iter().map(Message::kind).collect();
        use Kind::{Ai, Human, Tool};
        assert_eq!(kinds, [Ai, Tool, Human, Ai, Ai, Tool]);
        assert_eq!(
            results(&repaired),
            [
                ("c1".to_owned(), "late".to_owned()),
                ("c2".to_owned(), "early".to_owned())
            ]
        );
    }

    #[test]
    fn dng_7_a_made_up_result_says_why_and_echoes_no_arguments() {
        let invalid = |name: &str, error: Option<String>| {
            let mut fields = Fields::new(Kind::Ai, "");
            fields.invalid_tool_calls.push(InvalidToolCall {
                id: Some("c".to_owned()),
                name: Some(name.to_owned()),
                args: Some("{\"secret".to_owned()),
                error,
            });
            let repaired = repair(&[Message::new(fields)]).expect("needs repair");
            let result = &repaired[1];
            assert_eq!(result.fields().status, ToolStatus::Error);
            assert!(!result.text().contains("secret"));
            result.text()
        };
        assert!(invalid(" ", None).contains("named no tool"));
        assert!(invalid("write_file", None).contains("Nothing was written"));
        let long = invalid("f", Some("p".repeat(10_000)));
        assert!(long.contains(&"p".repeat(500)) && !long.contains(&"p".repeat(501)));
        let mut whole = Fields::new(Kind::Ai, "");
        whole.invalid_tool_calls.push(InvalidToolCall {
            args: Some("{\"a\": 1}".to_owned()),
            ..InvalidToolCall::default()
        });
        let repaired = repair(&[Message::new(whole)]).expect("needs repair");
        let call = &repaired[0].fields().tool_calls[0];
        assert_eq!(Value::from(call.args.clone()), json!({"a": 1}), "DNG-9");
    }

    #[test]
    fn calls_of_one_reply_have_ids_of_their_own() {
        let twice = [
            ai(&[("f", Some("c")), ("f", Some("c"))]),
            tool("c", "1"),
            tool("c", "2"),
        ];
        let repaired = repair(&twice).expect("needs repair");
        let second = "deerflow_synthetic_tool_call_0_call_1".to_owned();
        assert_eq!(
            results(&repaired),
            [("c".to_owned(), "1".to_owned()), (second, "2".to_owned())]
        );
        assert_eq!(repair(&repaired), None);
    }

    #[test]
    fn dng_8_a_result_of_a_nameless_call_gets_the_name_too() {
        let repaired = repair(&[ai(&[("", Some("c"))]), tool("c", "1")]).expect("needs repair");
        assert_eq!(repaired[1].fields().name.as_deref(), Some("unknown_tool"));
        assert_eq!(repaired[1].text(), "1");
        let trimmed = repair(&[ai(&[(" f ", Some("c"))]), tool("c", "1")]).expect("needs repair");
        assert_eq!(trimmed[0].fields().tool_calls[0].name, "f");
        assert_eq!(trimmed[1].fields().name, None);
    }

    #[test]
    fn ai_messages_that_say_and_call_nothing_are_left_out() {
        for content in [
            json!(""),
            json!(" \n"),
            json!([]),
            json!([{"type": "text", "text": " "}, ""]),
        ] {
            let blank = message(json!({ "content": content }));
            let repaired = repair(&[human("x"), blank, human("y")]).expect("needs repair");
            assert_eq!(repaired.len(), 2, "{content}");
        }
        let thinking =
            message(json!({"content": [{"type": "thinking", "thinking": "t", "signature": "s"}]}));
        assert_eq!(repair(&[thinking]), None);
    }
}
