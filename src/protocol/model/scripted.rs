//! Configuration of a scripted model: its replies, how they stream and how they fail.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{MAX_WAIT_MS, not_empty, within};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::content_text;

/// A model that answers from a list, for tests and for trying things out without a key.
///
/// The reply that answers is the one whose index is the number of ai messages in the transcript, so that a thread
/// goes on where it stopped and threads do not disturb each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedConfig {
    /// The replies, in order.
    #[serde(default)]
    pub replies: Option<Vec<ScriptedReply>>,
    /// A JSON file that holds the list of replies, instead of `replies`. It is read once.
    #[serde(default)]
    pub file: Option<String>,
    /// Whether the list starts again after its last reply. Default false: the run fails there.
    #[serde(default)]
    pub repeat: bool,
}

/// One reply of a scripted model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedReply {
    /// Text, or a list of content blocks. Default: the joined `chunks`, else empty text.
    #[serde(default)]
    pub content: Option<ReplyContent>,
    /// Tools that the model calls.
    #[serde(default)]
    pub tool_calls: Vec<ScriptedToolCall>,
    /// Calls whose arguments are no JSON object.
    #[serde(default)]
    pub invalid_tool_calls: Vec<ScriptedInvalidToolCall>,
    /// Tokens used.
    #[serde(default)]
    pub usage: Option<ScriptedUsage>,
    /// The model's reasoning.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// Why the model stopped. Default `tool_calls` when there are calls, else `stop`.
    #[serde(default)]
    pub finish_reason: Option<String>,
    /// Time before the first piece, in milliseconds.
    #[serde(default)]
    #[schemars(range(max = 86_400_000))]
    pub delay_ms: u64,
    /// The pieces in which the text streams: a list of texts, or a number of pieces. Default: one.
    #[serde(default)]
    pub chunks: Option<Chunks>,
    /// Time between two pieces, in milliseconds.
    #[serde(default)]
    #[schemars(range(max = 86_400_000))]
    pub chunk_delay_ms: u64,
    /// Fails with this error instead of answering.
    #[serde(default)]
    pub error: Option<ScriptedError>,
    /// The stream ends after its pieces without its end mark.
    #[serde(default)]
    pub cut: bool,
    /// Streams its pieces and then never ends.
    #[serde(default)]
    pub hang: bool,
    /// Only the first so many attempts of a turn meet the fault (`error`, `cut` or `hang`; without one, a
    /// `model_server` error); later ones are answered.
    #[serde(default)]
    pub fail_first: Option<u32>,
}

/// A tool call of a scripted reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedToolCall {
    /// Name of the tool.
    pub name: String,
    /// Arguments.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// Id of the call. Default `call_<reply>_<position>`.
    #[serde(default)]
    pub id: Option<String>,
}

/// A tool call of a scripted reply that cannot be run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedInvalidToolCall {
    /// Name of the tool.
    #[serde(default)]
    pub name: Option<String>,
    /// Arguments as the model wrote them.
    #[serde(default)]
    pub args: Option<String>,
    /// Id of the call. Default `call_<reply>_<position>`, counted after the valid calls.
    #[serde(default)]
    pub id: Option<String>,
    /// What is wrong with the arguments.
    #[serde(default)]
    pub error: Option<String>,
}

/// Tokens that a scripted reply claims to have used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedUsage {
    /// Tokens read, cached ones included.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    #[serde(default)]
    pub output_tokens: u64,
    /// Default: the sum of both.
    #[serde(default)]
    pub total_tokens: Option<u64>,
    /// Tokens read from a cache.
    #[serde(default)]
    pub cache_read: Option<u64>,
    /// Tokens written to a cache.
    #[serde(default)]
    pub cache_creation: Option<u64>,
    /// Tokens spent on reasoning.
    #[serde(default)]
    pub reasoning: Option<u64>,
}

/// The error of a scripted reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedError {
    /// Which failure.
    pub code: ModelFault,
    /// Default: a text that says that the script wants it so.
    #[serde(default)]
    pub message: Option<String>,
    /// How many pieces stream before the failure. Default 0.
    #[serde(default)]
    pub after_chunks: Option<u32>,
    /// Whether the failure may pass. Default: true but for refused credentials and requests.
    #[serde(default)]
    pub retryable: Option<bool>,
    /// How long the endpoint asks to wait, in milliseconds.
    #[serde(default)]
    #[schemars(range(max = 86_400_000))]
    pub retry_after_ms: Option<u64>,
    /// The HTTP status that the endpoint is said to have answered with.
    #[serde(default)]
    #[schemars(range(min = 100, max = 599))]
    pub status: Option<u16>,
    /// The endpoint's own short name for the failure.
    #[serde(default)]
    pub provider_code: Option<String>,
}

/// The ways a model call can fail, by the names of their error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelFault {
    /// The credentials were refused.
    ModelAuth,
    /// The request was refused.
    ModelRequest,
    /// The endpoint asks to slow down.
    ModelRateLimit,
    /// The endpoint failed or is overloaded.
    ModelServer,
    /// The endpoint could not be reached.
    ModelConnection,
    /// The endpoint did not answer in time.
    ModelTimeout,
    /// The reply is not what the wire format says.
    ModelProtocol,
    /// The stream ended before its end mark.
    ModelTruncated,
    /// The host answered with an error.
    ModelHost,
}

impl ModelFault {
    /// The error code of this name.
    pub const fn code(self) -> ErrorCode {
        match self {
            ModelFault::ModelAuth => ErrorCode::ModelAuth,
            ModelFault::ModelRequest => ErrorCode::ModelRequest,
            ModelFault::ModelRateLimit => ErrorCode::ModelRateLimit,
            ModelFault::ModelServer => ErrorCode::ModelServer,
            ModelFault::ModelConnection => ErrorCode::ModelConnection,
            ModelFault::ModelTimeout => ErrorCode::ModelTimeout,
            ModelFault::ModelProtocol => ErrorCode::ModelProtocol,
            ModelFault::ModelTruncated => ErrorCode::ModelTruncated,
            ModelFault::ModelHost => ErrorCode::ModelHost,
        }
    }

    /// Whether such a failure passes by itself as a rule.
    pub const fn passes(self) -> bool {
        !matches!(
            self,
            ModelFault::ModelAuth | ModelFault::ModelRequest | ModelFault::ModelHost
        )
    }
}

/// The content of a reply: text, or a list of content blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ReplyContent(pub Value);

impl<'de> Deserialize<'de> for ReplyContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Content;
        impl<'de> Visitor<'de> for Content {
            type Value = ReplyContent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a list of content blocks")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ReplyContent, E> {
                Ok(ReplyContent(Value::String(text.to_owned())))
            }
            fn visit_string<E: de::Error>(self, text: String) -> Result<ReplyContent, E> {
                Ok(ReplyContent(Value::String(text)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ReplyContent, A::Error> {
                let mut blocks = Vec::new();
                while let Some(Block(block)) = list.next_element()? {
                    blocks.push(block);
                }
                Ok(ReplyContent(Value::Array(blocks)))
            }
        }
        deserializer.deserialize_any(Content)
    }
}

/// A content block: an object, or plain text.
struct Block(Value);

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            block @ (Value::Object(_) | Value::String(_)) => Ok(Block(block)),
            other => Err(de::Error::invalid_type(
                unexpected(&other),
                &"a content block, which is an object or text",
            )),
        }
    }
}

fn unexpected(value: &Value) -> de::Unexpected<'_> {
    match value {
        Value::Null => de::Unexpected::Unit,
        Value::Bool(value) => de::Unexpected::Bool(*value),
        Value::Number(_) => de::Unexpected::Other("number"),
        Value::String(text) => de::Unexpected::Str(text),
        Value::Array(_) => de::Unexpected::Seq,
        Value::Object(_) => de::Unexpected::Map,
    }
}

impl JsonSchema for ReplyContent {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ReplyContent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": ["object", "string"]}}
        ]})
    }
}

/// How a scripted text streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Chunks {
    /// In these pieces.
    Texts(Vec<String>),
    /// In so many pieces of about one size; fewer if the text has fewer characters.
    Pieces(u64),
}

impl<'de> Deserialize<'de> for Chunks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pieces;
        impl<'de> Visitor<'de> for Pieces {
            type Value = Chunks;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of texts or a number of pieces")
            }
            fn visit_u64<E: de::Error>(self, pieces: u64) -> Result<Chunks, E> {
                Ok(Chunks::Pieces(pieces))
            }
            fn visit_i64<E: de::Error>(self, pieces: i64) -> Result<Chunks, E> {
                u64::try_from(pieces)
                    .map(Chunks::Pieces)
                    .map_err(|_| de::Error::invalid_value(de::Unexpected::Signed(pieces), &self))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Chunks, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(Chunks::Texts(texts))
            }
        }
        deserializer.deserialize_any(Pieces)
    }
}

impl JsonSchema for Chunks {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Chunks".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "array", "items": {"type": "string"}},
            {"type": "integer", "minimum": 1}
        ]})
    }
}

impl ScriptedConfig {
    /// A configuration with these replies.
    pub fn of(replies: Vec<ScriptedReply>) -> Self {
        ScriptedConfig {
            replies: Some(replies),
            file: None,
            repeat: false,
        }
    }

    /// Checks bounds and contradictions. What a file holds is checked when it is read.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfRange`], [`ErrorCode::Conflict`] or [`ErrorCode::MissingMember`], with the member's JSON
    /// pointer.
    pub fn validate(&self) -> Result<(), Error> {
        match (&self.replies, &self.file) {
            (Some(_), Some(_)) => Err(Error::at(
                ErrorCode::Conflict,
                "/file",
                "\"replies\" and \"file\" exclude each other",
            )),
            (None, None) => Err(Error::new(
                ErrorCode::MissingMember,
                "a scripted model needs \"replies\" or \"file\"",
            )),
            (None, Some(file)) => not_empty("/file", file),
            (Some(replies), None) => {
                check_replies(replies).map_err(|error| error.below("/replies"))
            }
        }
    }
}

/// Checks each reply of a list; paths begin at the list.
///
/// # Errors
/// As [`ScriptedConfig::validate`].
pub fn check_replies(replies: &[ScriptedReply]) -> Result<(), Error> {
    replies.iter().enumerate().try_for_each(|(index, reply)| {
        check_reply(reply).map_err(|error| error.below(&format!("/{index}")))
    })
}

fn check_reply(reply: &ScriptedReply) -> Result<(), Error> {
    within("/delay_ms", reply.delay_ms, 0, MAX_WAIT_MS)?;
    within("/chunk_delay_ms", reply.chunk_delay_ms, 0, MAX_WAIT_MS)?;
    match &reply.chunks {
        Some(Chunks::Pieces(pieces)) => within("/chunks", *pieces, 1, u64::from(u32::MAX))?,
        Some(Chunks::Texts(texts)) => {
            let differs = |content: &ReplyContent| content_text(&content.0) != texts.concat();
            if reply.content.as_ref().is_some_and(differs) {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    "/chunks",
                    "the chunks do not add up to the content",
                ));
            }
        }
        None => {}
    }
    let faults = [reply.error.is_some(), reply.cut, reply.hang];
    if faults.iter().filter(|fault| **fault).count() > 1 {
        return Err(Error::at(
            ErrorCode::Conflict,
            if reply.hang { "/hang" } else { "/cut" },
            "a reply has one of \"error\", \"cut\" and \"hang\"",
        ));
    }
    if let Some(wait) = reply.error.as_ref().and_then(|error| error.retry_after_ms) {
        within("/error/retry_after_ms", wait, 0, MAX_WAIT_MS)?;
    }
    if let Some(status) = reply.error.as_ref().and_then(|error| error.status) {
        within("/error/status", status.into(), 100, 599)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use serde_json::json;

    fn scripted(value: Value) -> Result<ScriptedConfig, String> {
        let config: ScriptedConfig = serde_json::from_value(value).map_err(|e| e.to_string())?;
        config
            .validate()
            .map_err(|error| error.path.unwrap_or_default())?;
        Ok(config)
    }

    #[test]
    fn members_of_two_forms_say_both() {
        let error = scripted(json!({"replies": [{"content": 1}]})).unwrap_err();
        assert!(
            error.contains("expected text or a list of content blocks"),
            "{error}"
        );
        let error = scripted(json!({"replies": [{"content": [1]}]})).unwrap_err();
        assert!(error.contains("expected a content block"), "{error}");
        let error = scripted(json!({"replies": [{"chunks": -1}]})).unwrap_err();
        assert!(
            error.contains("expected a list of texts or a number of pieces"),
            "{error}"
        );
        let error = scripted(json!({"replies": [{"error": {"code": "nope"}}]})).unwrap_err();
        assert!(error.contains("model_rate_limit"), "{error}");
    }

    #[test]
    fn faults_are_found_with_their_path() {
        use crate::protocol::decode::from_value;
        for (config, code, path) in [
            (
                json!({"replies": [{"content": ["a", 1]}]}),
                ErrorCode::WrongType,
                "/replies/0/content/1",
            ),
            (
                json!({"replies": [{"chunks": ["a", 1]}]}),
                ErrorCode::WrongType,
                "/replies/0/chunks/1",
            ),
            (
                json!({"replies": [{"chunks": -1}]}),
                ErrorCode::OutOfRange,
                "/replies/0/chunks",
            ),
            (
                json!({"replies": [{"error": {"code": "nope"}}]}),
                ErrorCode::UnknownVariant,
                "/replies/0/error/code",
            ),
            (
                json!({"replies": [{"tool_calls": [{"nam": "f"}]}]}),
                ErrorCode::UnknownMember,
                "/replies/0/tool_calls/0/nam",
            ),
        ] {
            let error = from_value::<ScriptedConfig>(config.clone()).unwrap_err();
            assert_eq!(
                (error.code, error.path.as_deref()),
                (code, Some(path)),
                "{config}"
            );
        }
    }

    #[test]
    fn contradictions_of_a_script_are_refused_with_their_path() {
        for (config, path) in [
            (json!({}), ""),
            (json!({"replies": [], "file": "x"}), "/file"),
            (json!({"file": ""}), "/file"),
            (json!({"replies": [{}, {"chunks": 0}]}), "/replies/1/chunks"),
            (
                json!({"replies": [{"content": "ab", "chunks": ["a", "c"]}]}),
                "/replies/0/chunks",
            ),
            (
                json!({"replies": [{"cut": true, "hang": true}]}),
                "/replies/0/hang",
            ),
            (
                json!({"replies": [{"delay_ms": 86_400_001u64}]}),
                "/replies/0/delay_ms",
            ),
        ] {
            assert_eq!(scripted(config.clone()), Err(path.to_owned()), "{config}");
        }
        assert!(scripted(json!({"replies": []})).is_ok());
    }

    #[test]
    fn unknown_members_are_refused() {
        assert!(scripted(json!({"replies": [{"contents": "x"}]})).is_err());
        let schema = serde_json::to_string(&schemars::schema_for!(ScriptedConfig)).unwrap();
        assert!(schema.contains("\"additionalProperties\":false"));
    }

    #[test]
    fn fault_names_are_those_of_the_error_codes() {
        for fault in [
            ModelFault::ModelAuth,
            ModelFault::ModelRequest,
            ModelFault::ModelRateLimit,
            ModelFault::ModelServer,
            ModelFault::ModelConnection,
            ModelFault::ModelTimeout,
            ModelFault::ModelProtocol,
            ModelFault::ModelTruncated,
            ModelFault::ModelHost,
        ] {
            assert_eq!(json!(fault), json!(fault.code().name()));
        }
    }
}
