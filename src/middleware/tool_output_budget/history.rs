//! Keeps what tools once said within bounds when it is sent to a model again, message by message, each looked at once.
//!
//! Results in a thread are cut in place; they are not stored elsewhere any more (MW-TOB-4). And what an agent once wrote to a
//! file is left out of the calls that wrote it when the file was written anew since (MW-TOB-6).

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::limits::{Limits, text_of};
use crate::middleware::agent_path::{WRITE_FILE, normalized};
use crate::middleware::tool_contents::with_content;
use crate::middleware::tool_result_class::ERROR_PREFIX;
use crate::protocol::message::{Kind, Message, ToolStatus};
use crate::state::python::truthy_member;
use crate::state::transcript::Rewriter;

/// How many of the newest writes keep their text, whatever came after.
const KEPT_WRITES: usize = 3;
/// Texts of fewer characters are not worth leaving out.
const LEAST_CHARS: usize = 1_000;

/// What is sent of the messages of one transcript.
#[derive(Debug)]
pub(super) struct History {
    limits: Arc<Limits>,
    writes: Writes,
}

impl History {
    pub(super) fn new(limits: Arc<Limits>) -> Self {
        History {
            limits,
            writes: Writes::default(),
        }
    }

    /// The result as it is sent; `None` when that is how it is.
    fn shortened(&self, message: &Message) -> Option<Message> {
        let max = self.limits.max()?;
        // Most messages are not decoded: their whole text is shorter than what their content may have.
        if message.json().len() <= max {
            return None;
        }
        let fields = message.fields();
        if fields
            .name
            .as_deref()
            .is_some_and(|name| self.limits.is_exempt(name))
        {
            return None;
        }
        let short = self.limits.cut(&text_of(&fields.content)?)?;
        Some(with_content(message, short.into()))
    }
}

impl Rewriter for History {
    fn look(&mut self, place: usize, message: &Message, replace: &mut dyn FnMut(usize, Message)) {
        match message.kind() {
            Kind::Ai => self.writes.called(place, message),
            Kind::Tool => {
                if let Some(short) = self.shortened(message) {
                    replace(place, short);
                }
                self.writes.answered(message, replace);
            }
            _ => {}
        }
    }
}

/// The writes of a thread so far.
#[derive(Debug, Default)]
struct Writes {
    /// Calls of the newest reply without a result.
    open: Vec<(String, Call)>,
    /// Writes that succeeded and may be left out one day, oldest first.
    done: Vec<Call>,
    /// Replies of which something is left out, by place.
    forms: HashMap<usize, Message>,
}

/// A call of `write_file`.
#[derive(Debug)]
struct Call {
    place: usize,
    reply: Message,
    /// Which of its calls.
    nth: usize,
    path: String,
    chars: usize,
    appends: bool,
    is_superseded: bool,
}

impl Writes {
    fn called(&mut self, place: usize, reply: &Message) {
        self.open.clear();
        if !reply.json().contains(WRITE_FILE) {
            return;
        }
        for (nth, call) in reply.fields().tool_calls.iter().enumerate() {
            let text = |name: &str| call.args.get(name).and_then(Value::as_str);
            let (WRITE_FILE, Some(id), Some(path), Some(content)) =
                (&*call.name, &call.id, text("path"), text("content"))
            else {
                continue;
            };
            let call = Call {
                place,
                reply: reply.clone(),
                nth,
                path: normalized(path),
                chars: content.chars().count(),
                appends: truthy_member(&call.args, "append").is_some(),
                is_superseded: false,
            };
            self.open.push((id.clone(), call));
        }
    }

    fn answered(&mut self, result: &Message, replace: &mut dyn FnMut(usize, Message)) {
        if self.open.is_empty() {
            return;
        }
        let fields = result.fields();
        let answers = |(id, _): &(String, Call)| *id == fields.tool_call_id;
        let Some(at) = self.open.iter().position(answers) else {
            return;
        };
        let (_, call) = self.open.swap_remove(at);
        let says_error = text_of(&fields.content).is_some_and(|it| it.starts_with(ERROR_PREFIX));
        if fields.status == ToolStatus::Error || says_error {
            return;
        }
        if !call.appends {
            let same = self.done.iter_mut().filter(|it| it.path == call.path);
            same.for_each(|it| it.is_superseded = true);
        }
        self.done.push(call);
        let older = self.done.len().saturating_sub(KEPT_WRITES);
        let mut place = 0;
        let done = std::mem::take(&mut self.done);
        for call in done {
            place += 1;
            let is_small = call.chars < LEAST_CHARS;
            if place > older || !(call.is_superseded || is_small) {
                self.done.push(call);
            } else if !is_small {
                let form = self.forms.get(&call.place).unwrap_or(&call.reply);
                let form = without_text(form, &call);
                self.forms.insert(call.place, form.clone());
                replace(call.place, form);
            }
        }
    }
}

/// The reply without the text that one of its calls wrote: in the call, and where providers keep calls besides.
fn without_text(reply: &Message, call: &Call) -> Message {
    let note = format!(
        "[{} characters are left out here: the file was written anew since.]",
        call.chars
    );
    let mut fields = reply.fields().clone();
    let Some(written) = fields.tool_calls.get_mut(call.nth) else {
        return reply.clone();
    };
    written.args.insert("content".into(), note.into());
    let (id, args) = (json!(written.id), Value::Object(written.args.clone()));
    if let Some(Value::Array(raw)) = fields.additional_kwargs.get_mut("tool_calls") {
        for raw in raw.iter_mut().filter(|raw| raw["id"] == id) {
            if let Some(text) = raw.pointer_mut("/function/arguments") {
                *text = args.to_string().into();
            }
        }
    }
    if let Value::Array(blocks) = &mut fields.content {
        let is_call = |block: &&mut Value| block["type"] == "tool_use" && block["id"] == id;
        for block in blocks.iter_mut().filter(is_call) {
            if let Some(input) = block.get_mut("input") {
                *input = args.clone();
            }
        }
    }
    Message::new(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::protocol::app_config::ToolOutputConfig;
    use crate::protocol::message::{Fields, ToolCall};
    use crate::state::transcript::Transcript;

    fn limits(config: ToolOutputConfig) -> Arc<Limits> {
        Arc::new(Limits::new(&config))
    }

    fn result(tool: &str, id: &str, text: &str) -> Message {
        let mut fields = Fields::new(Kind::Tool, text);
        fields.id = Some(format!("t-{id}"));
        fields.name = Some(tool.to_owned());
        fields.tool_call_id = id.to_owned();
        fields.additional_kwargs.insert("kept".into(), true.into());
        Message::new(fields)
    }

    /// A reply of one write and its result.
    fn write(id: &str, path: &str, text: &str, answer: &str) -> [Message; 2] {
        let args = json!({"path": path, "content": text});
        let mut fields = Fields::new(
            Kind::Ai,
            json!([{"type": "tool_use", "id": id, "input": args}]),
        );
        fields.tool_calls.push(ToolCall {
            name: WRITE_FILE.into(),
            args: args.as_object().cloned().unwrap_or_default(),
            id: Some(id.to_owned()),
        });
        let raw = json!([{"id": id, "function": {"arguments": args.to_string()}}]);
        fields.additional_kwargs.insert("tool_calls".into(), raw);
        [Message::new(fields), result(WRITE_FILE, id, answer)]
    }

    fn sent(messages: Vec<Message>, limits: &Arc<Limits>) -> Option<Vec<Message>> {
        let transcript = Transcript::from(messages);
        let make = || -> Box<dyn Rewriter> { Box::new(History::new(limits.clone())) };
        let sent = transcript.rewritten(limits.key(), make)?;
        Some(sent.to_vec())
    }

    #[test]
    fn tob_4_old_results_are_cut_in_place_and_keep_what_belongs_to_them() {
        let limits = limits(ToolOutputConfig::default());
        let long = "x".repeat(30_001);
        let messages = vec![
            result("a", "1", &long),
            result("read_file", "2", &long),
            result("b", "3", &"x".repeat(30_000)),
            Message::new(Fields::new(Kind::Ai, long.as_str())),
        ];
        let sent = sent(messages.clone(), &limits).expect("one is too long");
        assert!(sent[1..].iter().zip(&messages[1..]).all(|(a, b)| a.same(b)));
        let short = sent[0].fields();
        assert!(text_of(&short.content).expect("text").chars().count() <= 30_000);
        assert_eq!(short.id.as_deref(), Some("t-1"));
        assert_eq!(short.additional_kwargs["kept"], true);
        assert_eq!(short.tool_call_id, "1");
    }

    #[test]
    fn tob_1_what_is_not_text_alone_stays() {
        let limits = limits(ToolOutputConfig::default());
        let block = json!({"type": "text", "text": "x".repeat(40_000)});
        let with = |content: Value| {
            let mut fields = Fields::new(Kind::Tool, content);
            fields.tool_call_id = "1".into();
            sent(vec![Message::new(fields)], &limits)
        };
        assert!(with(json!([block, {"type": "image", "url": "x"}])).is_none());
        let sent = with(json!([block, "y"])).expect("it is too long");
        assert!(sent[0].fields().content.is_string());
    }

    #[test]
    fn tob_6_writes_of_a_file_that_was_written_anew_lose_their_text_but_for_the_newest() {
        let limits = limits(ToolOutputConfig::default());
        let text = |n: usize| format!("{n}").repeat(LEAST_CHARS);
        let mut messages = Vec::new();
        for (n, path) in ["/a", "/b", "/a/../a", "/c", "/a", "/d"].iter().enumerate() {
            messages.extend(write(&n.to_string(), path, &text(n), "OK"));
        }
        let written = |sent: &[Message]| -> Vec<bool> {
            let replies = sent.iter().filter(|it| it.kind() == Kind::Ai);
            let whole = |it: &Message| {
                let args: &Map<String, Value> = &it.fields().tool_calls[0].args;
                let kept = args["content"]
                    .as_str()
                    .is_some_and(|it| it.len() >= LEAST_CHARS);
                // Every form of the call says the same.
                let fields = it.fields();
                assert_eq!(fields.content[0]["input"], Value::Object(args.clone()));
                let raw = &fields.additional_kwargs["tool_calls"][0]["function"]["arguments"];
                assert_eq!(*raw, Value::Object(args.clone()).to_string());
                kept
            };
            replies.map(whole).collect()
        };
        let all = sent(messages.clone(), &limits).expect("some are superseded");
        // The third write of /a is among the newest three; the second is not superseded by itself but by the third.
        assert_eq!(written(&all), [false, true, false, true, true, true]);
        assert!(
            sent(messages[..6].to_vec(), &limits).is_none(),
            "the newest three stay"
        );

        let mut failed = messages.clone();
        failed[9] = result(WRITE_FILE, "4", "Error: the disk is full");
        let all = sent(failed, &limits).expect("the first is superseded");
        assert_eq!(written(&all), [false, true, true, true, true, true]);
    }
}
