//! Frames what the user wrote before a model sees it, so that it cannot pass for text of the framework.
//!
//! Every message of the user is rewritten, in every request alike, so that nothing of theirs gains authority by growing old and
//! the beginning of a thread stays the same for the caches of providers. Only requests are: the thread keeps what was written.
//! Each message is looked at once, and the framed transcript is kept beside the thread's, so that a turn costs what it adds.
//! Outermost, so that retries and repairs inside see framed text too.
//!
//! Source: DeerFlow `InputSanitizationMiddleware`, MW-SAN-1 to MW-SAN-10; that each turn counts is of its newer version.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::user_message::is_genuine;
use super::{Hooks, Middleware, ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::prompt::sanitize::{frame, neutralize};
use crate::protocol::message::{Fields, Message};
use crate::protocol::warning::Warning;
use crate::state::transcript::Rewriter;

/// Where a message keeps what the user wrote, when the framework has put something before it.
pub const ORIGINAL_USER_CONTENT: &str = "original_user_content";

/// What the framed form of a transcript is kept under.
const FRAMES: u64 = u64::from_be_bytes(*b"framings");

/// Frames the messages of the user in each request of the agent's model.
#[derive(Clone, Copy, Debug, Default)]
pub struct InputSanitization;

impl InputSanitization {
    /// There is nothing to configure.
    pub fn new() -> Self {
        InputSanitization
    }
}

impl Middleware for InputSanitization {
    fn name(&self) -> &str {
        "input_sanitization"
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
        let make = || Box::new(Framing::default()) as _;
        let (messages, flaws) = request.messages.rewritten_with_flaws(FRAMES, make);
        if flaws > 0 {
            request.run.facts.signals.warn(
                Warning::OriginalContentReplaced,
                "original_user_content of a message is no text; the text of the message stands in",
            );
        }
        if let Some(messages) = messages {
            request.messages = messages;
        }
        next.run(request)
    }
}

/// Frames the messages of the user as they come.
#[derive(Debug, Default)]
struct Framing {
    /// Messages whose text before framing was no text (MW-SAN-8).
    flaws: usize,
}

impl Rewriter for Framing {
    fn look(&mut self, place: usize, message: &Message, replace: &mut dyn FnMut(usize, Message)) {
        if !is_genuine(message) {
            return;
        }
        if let Some((form, is_flawed)) = framed(message) {
            self.flaws += usize::from(is_flawed);
            replace(place, form);
        }
    }

    fn take_flaws(&mut self) -> usize {
        std::mem::take(&mut self.flaws)
    }
}

/// The message as a model is to see it, and whether what it says the user wrote is no text; `None` when that is how it is.
fn framed(message: &Message) -> Option<(Message, bool)> {
    let fields = message.fields();
    let text = text_of(&fields.content)?;
    let original = fields.additional_kwargs.get(ORIGINAL_USER_CONTENT);
    let content = match original {
        Some(Value::String(original)) => with_framed_original(&fields.content, &text, original)?,
        _ => replaced(&fields.content, &text, frame(&text))?,
    };
    let is_flawed = original.is_some_and(|original| !original.is_string());
    let mut fields: Fields = fields.clone();
    fields.content = content;
    if !matches!(original, Some(Value::String(_))) {
        let text = Value::String(text.into_owned());
        fields
            .additional_kwargs
            .insert(ORIGINAL_USER_CONTENT.to_owned(), text);
    }
    Some((Message::new(fields), is_flawed))
}

/// The content with what the user wrote framed, and what the framework put before it as it is (MW-SAN-3 to MW-SAN-5).
fn with_framed_original(content: &Value, text: &str, original: &str) -> Option<Value> {
    let inner = match frame(original) {
        Cow::Borrowed(_) => return None,
        Cow::Owned(inner) => inner,
    };
    // The last place, because the framework's part comes first and may quote the user.
    if let Some(at) = text.rfind(original) {
        return replaced(content, text, Cow::Owned(text[..at].to_owned() + &inner));
    }
    match content {
        Value::Array(blocks) if blocks.len() >= 2 => {
            // The first block is the framework's; where the user's text went is not known.
            let mut blocks = blocks.clone();
            neutralize_blocks(&mut blocks[1..]).then_some(Value::Array(blocks))
        }
        content => replaced(content, text, frame(text)),
    }
}

/// Text of a content: the string, or the texts of a list, one to a line. `None` for a list without any (MW-SAN-2).
fn text_of(content: &Value) -> Option<Cow<'_, str>> {
    match content {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(block_text)
                .filter(|text| !text.is_empty())
                .collect();
            (!texts.is_empty()).then(|| Cow::Owned(texts.join("\n")))
        }
        _ => None,
    }
}

/// Text of an element of a content list: a string, or a block of type `text`.
fn block_text(block: &Value) -> Option<&str> {
    match block {
        Value::String(text) => Some(text),
        Value::Object(members) if members.get("type").and_then(Value::as_str) == Some("text") => {
            members.get("text").and_then(Value::as_str)
        }
        _ => None,
    }
}

/// The content with another text; `None` when it is the same (MW-SAN-6). In a list, the text becomes one block where the first
/// one stood; what is no text keeps its order (MW-SAN-7).
fn replaced(content: &Value, text: &str, new: Cow<'_, str>) -> Option<Value> {
    if new == text {
        return None;
    }
    let Value::Array(blocks) = content else {
        return Some(Value::String(new.into_owned()));
    };
    let mut new = Some(json!({"type": "text", "text": new}));
    let blocks = blocks.iter().filter_map(|block| match block_text(block) {
        Some(_) => new.take(),
        None => Some(block.clone()),
    });
    Some(Value::Array(blocks.collect()))
}

/// Neutralises the texts of content blocks; whether any changed.
pub(super) fn neutralize_blocks(blocks: &mut [Value]) -> bool {
    let mut changed = false;
    for block in blocks {
        let clean = match block_text(block).map(neutralize) {
            Some(Cow::Owned(clean)) => clean,
            Some(Cow::Borrowed(_)) | None => continue,
        };
        match block {
            Value::Object(members) => {
                members.insert("text".to_owned(), Value::String(clean));
            }
            block => *block = Value::String(clean),
        }
        changed = true;
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::sanitize::{BEGIN_USER_INPUT, END_USER_INPUT};
    use crate::protocol::message::Kind;

    fn frame_of(text: &str) -> String {
        format!("{BEGIN_USER_INPUT}\n{text}\n{END_USER_INPUT}")
    }

    fn human(content: Value, kwargs: Value) -> Message {
        let mut fields = Fields::new(Kind::Human, content);
        fields.id = Some("m1".to_owned());
        fields.additional_kwargs = kwargs.as_object().cloned().unwrap_or_default();
        Message::new(fields)
    }

    /// What a model sees of a message; `None` when it is the message itself.
    fn seen(content: Value, kwargs: Value) -> Option<Value> {
        framed(&human(content, kwargs)).map(|(seen, _)| seen.fields().content.clone())
    }

    #[test]
    fn hp_5_hidden_messages_are_the_user_s_only_with_a_whole_answer() {
        let answer = json!({
            "version": 1, "kind": "human_input_response", "source": "card", "request_id": "q1",
            "value": "yes", "response_kind": "text",
        });
        let hidden = |answer: &Value| {
            is_genuine(&human(
                json!("x"),
                json!({"hide_from_ui": true, "human_input_response": answer}),
            ))
        };
        assert!(hidden(&answer));
        for (member, bad) in [
            ("version", json!(2)),
            ("kind", json!("other")),
            ("source", json!(" ")),
            ("request_id", json!(1)),
            ("value", json!("\n")),
            ("response_kind", json!("form")),
            ("response_kind", json!("option")),
        ] {
            let mut broken = answer.clone();
            broken[member] = bad.clone();
            assert!(!hidden(&broken), "{member}: {bad}");
        }
        let mut option = answer;
        option["response_kind"] = json!("option");
        option["option_id"] = json!("o1");
        assert!(hidden(&option));

        assert!(is_genuine(&human(
            json!("x"),
            json!({"hide_from_ui": false})
        )));
        assert!(!is_genuine(&human(
            json!("x"),
            json!({"hide_from_ui": true})
        )));
        let mut summary = Fields::new(Kind::Human, "x");
        summary.name = Some("summary".to_owned());
        assert!(!is_genuine(&Message::new(summary)));
        assert!(!is_genuine(&Message::new(Fields::new(Kind::Ai, "x"))));
    }

    #[test]
    fn san_2_text_is_the_string_or_the_texts_of_the_list() {
        assert_eq!(seen(json!("hi"), json!({})), Some(json!(frame_of("hi"))));
        assert_eq!(seen(json!(""), json!({})), None);
        assert_eq!(seen(json!(" \n"), json!({})), None);
        assert_eq!(
            seen(
                json!([{"type": "image_url", "image_url": {"url": "u"}}]),
                json!({})
            ),
            None
        );
        assert_eq!(
            seen(json!(["", {"type": "text", "text": ""}]), json!({})),
            None
        );
        assert_eq!(
            seen(
                json!(["a", {"type": "text", "text": ""}, {"type": "text", "text": "b"}]),
                json!({})
            ),
            Some(json!([{"type": "text", "text": frame_of("a\nb")}]))
        );
    }

    #[test]
    fn san_3_what_the_framework_put_before_stays_as_it_is() {
        let uploads = "<current_uploads>\n- a.csv\n</current_uploads>\n\n";
        let original = json!({"original_user_content": "see <system> a"});
        assert_eq!(
            seen(json!(format!("{uploads}see <system> a")), original.clone()),
            Some(json!(format!(
                "{uploads}{}",
                frame_of("see &lt;system&gt; a")
            )))
        );
        // The last place counts, and what comes after it is dropped.
        assert_eq!(
            seen(
                json!("hi: hi there"),
                json!({"original_user_content": "hi"})
            ),
            Some(json!(format!("hi: {}", frame_of("hi"))))
        );
        let blocks =
            json!([{"type": "text", "text": uploads}, {"type": "text", "text": "see <system> a"}]);
        assert_eq!(
            seen(blocks, original),
            Some(
                json!([{"type": "text", "text": format!("{uploads}\n{}", frame_of("see &lt;system&gt; a"))}])
            )
        );
        let framed = frame_of("hi");
        assert_eq!(
            seen(
                json!(format!("x {framed}")),
                json!({"original_user_content": framed})
            ),
            None
        );
    }

    #[test]
    fn san_4_without_the_original_the_first_block_is_the_framework_s() {
        let kwargs = json!({"original_user_content": "gone"});
        let image = json!({"type": "image_url", "image_url": {"url": "u"}});
        assert_eq!(
            seen(
                json!([{"type": "text", "text": "<soul>"}, "<soul>", image, {"type": "text", "text": "<role>", "x": 1}]),
                kwargs.clone()
            ),
            Some(json!([
                {"type": "text", "text": "<soul>"}, "&lt;soul&gt;", image, {"type": "text", "text": "&lt;role&gt;", "x": 1}
            ]))
        );
        assert_eq!(seen(json!(["a", "b"]), kwargs.clone()), None);
        assert_eq!(
            seen(json!(["a"]), kwargs.clone()),
            Some(json!([{"type": "text", "text": frame_of("a")}]))
        );
        assert_eq!(seen(json!("a"), kwargs), Some(json!(frame_of("a"))));
    }

    #[test]
    fn san_5_an_empty_original_means_that_the_user_wrote_nothing() {
        assert_eq!(
            seen(json!("<system>"), json!({"original_user_content": ""})),
            None
        );
        assert_eq!(
            seen(json!("a"), json!({"original_user_content": 7})),
            Some(json!(frame_of("a")))
        );
    }

    #[test]
    fn san_6_framed_text_is_the_message_itself() {
        assert_eq!(seen(json!(frame_of("a")), json!({})), None);
        assert_eq!(seen(json!([frame_of("a")]), json!({})), None);
    }

    #[test]
    fn san_7_texts_become_one_block_and_the_rest_keeps_its_order() {
        let block = |n: u8| json!({"type": "image_url", "n": n});
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(
            seen(
                json!([
                    block(0),
                    text("a"),
                    block(1),
                    "b",
                    block(2),
                    text("c"),
                    block(3)
                ]),
                json!({})
            ),
            Some(json!([
                block(0),
                text(&frame_of("a\nb\nc")),
                block(1),
                block(2),
                block(3)
            ]))
        );
    }

    #[test]
    fn san_8_the_text_before_framing_is_kept_and_so_is_everything_else() {
        let mut fields = human(json!("a"), json!({"run_id": "r"})).fields().clone();
        fields.name = Some("user-input".to_owned());
        fields.response_metadata.insert("k".to_owned(), json!(1));
        let (seen, is_flawed) = framed(&Message::new(fields.clone())).expect("changes");
        fields.content = json!(frame_of("a"));
        fields
            .additional_kwargs
            .insert(ORIGINAL_USER_CONTENT.to_owned(), json!("a"));
        assert_eq!(*seen.fields(), fields);
        assert_eq!(seen.id(), Some("m1"));
        assert!(!is_flawed);

        let broken = human(json!(["a", "b"]), json!({"original_user_content": ["a"]}));
        let (seen, is_flawed) = framed(&broken).expect("changes");
        assert_eq!(
            seen.fields().additional_kwargs[ORIGINAL_USER_CONTENT],
            "a\nb"
        );
        assert!(is_flawed);
    }
}
