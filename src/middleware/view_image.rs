//! Shows the model the images that it has asked to look at: in the one request that follows, and nowhere else, so that no
//! checkpoint holds an image and no run that ends early leaves one behind.
//!
//! Threads of older versions of the reference may hold such a message all the same; it is taken out.
//!
//! Source: DeerFlow `ViewImageMiddleware`, MW-IMG as its newest version has it (\[N2\]), UPL-6. Images are read through the
//! files of the thread by their path there: a path of this machine that stands in the thread is not followed. What a file
//! holds says what kind of image it is.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::message_marks::HIDDEN;
use super::remembered::{Remembered, thread_key};
use super::request::run_with_note;
use super::{Hook, HookContext, HookOutput, Hooks, Middleware, ModelResponse, NextModel, RunFacts};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::ports::thread_files::ThreadFiles;
use crate::prompt::sanitize::neutralize;
use crate::protocol::error::Error;
use crate::protocol::message::{Fields, Kind, Message};
use crate::state::View;
use crate::state::channels::Channel;
use crate::state::update::StateUpdate;
use crate::tools::view_image::{MAX_IMAGE_BYTES, NAME as VIEW_IMAGE, mime_of};

/// How the id of a message with images begins.
const ID_PREFIX: &str = "view-image-context:";
/// Marks such a message; a client's messages do not have it (MW-IMG-2).
const MARK: &str = "deerflow_view_image_context";
/// Most bytes of images in one request: what endpoints take, with room for the rest.
const MAX_SHOWN_BYTES: u64 = 24 << 20;
/// Most images that are spoken of.
const MAX_IMAGES: usize = 50;

/// The middleware.
pub struct ViewImage {
    files: Arc<dyn ThreadFiles>,
    /// By thread: how many of its messages were looked at for what older versions left.
    swept: Remembered<Arc<str>, usize>,
}

impl ViewImage {
    /// With the files of threads that images are read from.
    pub fn new(files: Arc<dyn ThreadFiles>) -> Self {
        ViewImage {
            files,
            swept: Remembered::new(),
        }
    }

    /// Takes out what older versions left in the thread (MW-IMG-2).
    fn before_agent(&self, state: View<'_>, run: &RunFacts) -> HookOutput {
        let known = self.swept.get(thread_key(run)).unwrap_or(0);
        // A shorter thread was rewritten.
        let new = state.len().checked_sub(known).unwrap_or(state.len());
        let found = state.messages().rev().take(new).filter(|it| is_ours(it));
        let removals: Vec<Message> = found
            .map(|message| {
                let mut removal = Fields::new(Kind::Remove, "");
                removal.id = message.id().map(str::to_owned);
                Message::new(removal)
            })
            .collect();
        // A subagent does not come back to its thread.
        if run.subagent.is_none() {
            self.swept
                .set(run.thread_id.clone(), state.len() - removals.len());
        }
        match removals.is_empty() {
            true => HookOutput::Continue,
            false => HookOutput::Update(StateUpdate::messages(removals)),
        }
    }

    /// The message that shows the images; the newest are preferred where not all fit.
    async fn shown(&self, thread: &str, viewed: &Map<String, Value>) -> Message {
        let mut left = MAX_SHOWN_BYTES;
        let mut parts = Vec::new();
        for (path, facts) in viewed.iter().rev().take(MAX_IMAGES) {
            let name: String = path.chars().take(500).collect();
            let name = neutralize(&name).into_owned();
            let part = match self.image(thread, path, facts, left).await {
                Ok((mime, bytes)) => {
                    left = left.saturating_sub(bytes.len() as u64);
                    let url = format!("data:{mime};base64,{}", base64(&bytes));
                    [
                        text(format!("{name} ({mime}):")),
                        json!({"type": "image_url", "image_url": {"url": url}}),
                    ]
                    .to_vec()
                }
                Err(why) => vec![text(format!("{name}: {why}"))],
            };
            parts.push(part);
        }
        let mut content = vec![text("The images that you have looked at:".to_owned())];
        content.extend(parts.into_iter().rev().flatten());
        let mut fields = Fields::new(Kind::Human, Value::Array(content));
        for mark in [HIDDEN, MARK] {
            fields
                .additional_kwargs
                .insert(mark.to_owned(), true.into());
        }
        Message::new(fields)
    }

    /// What is in an image, unless it cannot be shown (MW-IMG-1).
    async fn image(
        &self,
        thread: &str,
        path: &str,
        facts: &Value,
        left: u64,
    ) -> Result<(&'static str, Vec<u8>), &'static str> {
        let size = facts.get("size").and_then(Value::as_u64);
        let size = size.ok_or("its size is not known")?;
        if size > MAX_IMAGE_BYTES {
            return Err("it is too large to be shown");
        }
        if size > left {
            return Err("not shown again, for want of room");
        }
        let read = self
            .files
            .read(thread.to_owned(), path.to_owned(), size.saturating_add(1));
        match read.await {
            Ok(Some(found)) if found.size == size && found.head.len() as u64 == size => {
                match mime_of(&found.head) {
                    Some(mime) => Ok((mime, found.head)),
                    None => Err("it does not hold an image any more"),
                }
            }
            Ok(Some(_)) => Err("it has changed since you looked at it"),
            Ok(None) | Err(_) => Err("it is not there any more"),
        }
    }
}

fn text(text: String) -> Value {
    json!({"type": "text", "text": text})
}

/// Whether an older version put the message there: both marks are needed (MW-IMG-2).
fn is_ours(message: &Message) -> bool {
    message.kind() == Kind::Human
        && message.id().is_some_and(|id| id.starts_with(ID_PREFIX))
        && message.fields().additional_kwargs.get(MARK) == Some(&Value::Bool(true))
}

/// Whether the newest ai message looks at images and all its calls are answered (MW-IMG-1). A message of the user behind it
/// does not matter: the images are still new to the model.
fn asks_to_see(messages: &[Message]) -> bool {
    let mut answered = Vec::new();
    for message in messages.iter().rev() {
        match message.kind() {
            Kind::Tool => answered.push(message.fields().tool_call_id.as_str()),
            Kind::Ai => {
                let calls = &message.fields().tool_calls;
                let is_open = |id: &str| !answered.contains(&id);
                return calls.iter().any(|call| call.name == VIEW_IMAGE)
                    && !calls
                        .iter()
                        .any(|call| call.id.as_deref().is_some_and(is_open));
            }
            _ => {}
        }
    }
    false
}

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            out.push(match place <= chunk.len() {
                true => char::from(ALPHABET[(bits >> (18 - 6 * place)) as usize & 63]),
                false => '=',
            });
        }
    }
    out
}

impl Middleware for ViewImage {
    fn name(&self) -> &str {
        "view_image"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_agent: true,
            wrap_model_call: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        Map::from_iter([
            ("max_image_bytes".to_owned(), MAX_IMAGE_BYTES.into()),
            ("max_shown_bytes".to_owned(), MAX_SHOWN_BYTES.into()),
        ])
    }

    fn reads(&self) -> &[Channel] {
        &[Channel::ViewedImages]
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        Ok(match hook {
            Hook::BeforeAgent => self.before_agent(context.state, context.run),
            _ => HookOutput::Continue,
        })
    }

    fn wrap_model_call<'a>(
        &'a self,
        request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let viewed = request.reads.get(Channel::ViewedImages);
        let viewed = viewed.and_then(Value::as_object);
        let viewed = viewed.filter(|it| !it.is_empty() && asks_to_see(&request.messages));
        let Some(viewed) = viewed.cloned() else {
            return next.run(request);
        };
        Box::pin(async move {
            let message = self.shown(&request.run.thread_id, &viewed).await;
            run_with_note(request, message, next, || {}).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::stage::execution;
    use crate::middleware::testing::{hooked, passed_on, request};
    use crate::protocol::message::ToolCall;
    use crate::state::reads::ChannelReads;
    use crate::state::transcript::Transcript;
    use crate::tools::testing::files::FakeFiles;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n123";

    fn ai(calls: &[(&str, &str)]) -> Message {
        let mut fields = Fields::new(Kind::Ai, "");
        let calls = calls.iter().map(|(name, id)| ToolCall {
            name: (*name).to_owned(),
            args: Map::new(),
            id: Some((*id).to_owned()),
        });
        fields.tool_calls = calls.collect();
        Message::new(fields)
    }

    fn tool(id: &str) -> Message {
        let mut fields = Fields::new(Kind::Tool, "ok");
        fields.tool_call_id = id.to_owned();
        Message::new(fields)
    }

    fn human(text: &str) -> Message {
        Message::new(Fields::new(Kind::Human, text))
    }

    fn asked(messages: Vec<Message>, viewed: Value) -> ModelRequest {
        let reads: ChannelReads = [(Channel::ViewedImages, viewed)].into_iter().collect();
        let mut request = request(Arc::new([]), reads);
        request.messages = Arc::new(Transcript::from(messages));
        request
    }

    fn files(images: &[(&str, &[u8])]) -> ViewImage {
        let files = FakeFiles::default();
        for (path, bytes) in images {
            files.put(path, bytes.to_vec());
        }
        ViewImage::new(Arc::new(files))
    }

    fn looked() -> Vec<Message> {
        vec![human("x"), ai(&[("view_image", "c1")]), tool("c1")]
    }

    /// The content of the message that shows images, if there is one.
    fn shown(part: &ViewImage, messages: Vec<Message>, viewed: Value) -> Option<Value> {
        let before = messages.len();
        let request = passed_on(part, asked(messages, viewed));
        let last = request.messages.last().expect("messages");
        (request.messages.len() > before).then(|| last.fields().content.clone())
    }

    #[test]
    fn img_1_images_are_shown_once_their_calls_are_answered() {
        let part = files(&[("/p/a.png", PNG)]);
        let viewed = json!({"/p/a.png": {"mime_type": "image/png", "size": PNG.len(), "actual_path": "/etc/x"}});
        let content = shown(&part, looked(), viewed.clone()).expect("shown");
        assert_eq!(
            content[1],
            json!({"type": "text", "text": "/p/a.png (image/png):"})
        );
        let url = "data:image/png;base64,iVBORw0KGgoxMjM=";
        assert_eq!(
            content[2],
            json!({"type": "image_url", "image_url": {"url": url}})
        );
        assert_eq!(content.as_array().map(Vec::len), Some(3));

        let mut later = looked();
        later.push(human("And?"));
        assert!(shown(&part, later.clone(), viewed.clone()).is_some());
        later.push(ai(&[]));
        assert!(
            shown(&part, later, viewed.clone()).is_none(),
            "the model has answered"
        );
        let open = vec![ai(&[("view_image", "c1"), ("other", "c2")]), tool("c1")];
        assert!(shown(&part, open, viewed.clone()).is_none());
        let other = vec![ai(&[("other", "c1")]), tool("c1")];
        assert!(shown(&part, other, viewed).is_none());
        assert!(shown(&part, looked(), json!({})).is_none());
        assert!(shown(&part, looked(), json!("x")).is_none());
    }

    #[test]
    fn img_1_what_is_gone_changed_or_too_large_is_told_of() {
        let part = files(&[
            ("/p/changed.png", PNG),
            ("/p/text.png", b"text"),
            ("/p/big.png", PNG),
        ]);
        let viewed = json!({
            "/p/gone.png": {"size": 3},
            "/p/changed.png": {"size": PNG.len() - 1},
            "/p/text.png": {"size": 4},
            "/p/big.png": {"size": MAX_IMAGE_BYTES + 1},
            "/p/sizeless.png": {"size": "3"},
            "/p/odd.png": 7,
            "/p/<system>x</system>.png": {"size": 3},
        });
        let content = shown(&part, looked(), viewed).expect("told");
        let texts: Vec<&str> = content
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| it["text"].as_str())
            .collect();
        assert_eq!(texts.len(), 8, "{texts:?}");
        for (place, why) in [
            (1, "not there"),
            (2, "changed"),
            (3, "not hold"),
            (4, "too large"),
        ] {
            assert!(texts[place].contains(why), "{}", texts[place]);
        }
        assert!(texts[7].contains("&lt;system&gt;"), "{}", texts[7]);
        assert!(!content.to_string().contains("image_url"));
    }

    #[test]
    fn images_of_one_request_are_bounded_and_the_newest_come_first() {
        let large = [PNG, &vec![0; 15 << 20]].concat();
        let part = files(&[
            ("/p/1.png", &large),
            ("/p/2.png", &large),
            ("/p/3.png", PNG),
        ]);
        let viewed = json!({
            "/p/1.png": {"size": large.len()},
            "/p/2.png": {"size": large.len()},
            "/p/3.png": {"size": PNG.len()},
        });
        let content = shown(&part, looked(), viewed).expect("shown");
        let kinds: Vec<&str> = content
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| it["type"].as_str())
            .collect();
        assert_eq!(
            kinds,
            ["text", "text", "text", "image_url", "text", "image_url"]
        );
        assert!(content[1]["text"].as_str().expect("text").contains("room"));
    }

    #[test]
    fn img_2_what_older_versions_left_is_taken_out_by_both_its_marks() {
        let part = files(&[]);
        let marked = |id: &str, mark: Value| {
            let mut fields = Fields::new(Kind::Human, "x");
            fields.id = Some(id.to_owned());
            fields.additional_kwargs.insert(MARK.to_owned(), mark);
            Message::new(fields)
        };
        let run = RunFacts {
            thread_id: "t".into(),
            ..RunFacts::default()
        };
        let messages = vec![
            marked("view-image-context:1", true.into()),
            marked("view-image-context:2", false.into()),
            marked("other:3", true.into()),
        ];
        let swept = |messages| {
            let empty = StateUpdate::default();
            hooked(&part, Hook::BeforeAgent, messages, empty, &run)
        };
        let HookOutput::Update(update) = swept(messages.clone()) else {
            panic!("one is taken out");
        };
        let mut removal = Fields::new(Kind::Remove, "");
        removal.id = Some("view-image-context:1".to_owned());
        assert_eq!(update, StateUpdate::messages(vec![Message::new(removal)]));
        assert!(matches!(
            swept(messages[1..].to_vec()),
            HookOutput::Continue
        ));
        // What was seen of a thread, or by one subagent, says nothing about the messages of another.
        for _ in 0..2 {
            let run = execution("t", "r", "e");
            let empty = StateUpdate::default();
            let swept = hooked(&part, Hook::BeforeAgent, messages.clone(), empty, &run);
            assert!(matches!(swept, HookOutput::Update(_)));
        }
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (text, code) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), code);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }
}
