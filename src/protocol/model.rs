//! Configuration of model providers: what a host writes to name a model and how to reach it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Number, Value};

use super::error::{Error, ErrorCode};
use super::json::pointer_token;
use super::message::content_text;

/// Longest delay or timeout that a configuration may ask for: one day, in milliseconds.
pub const MAX_WAIT_MS: u64 = 86_400_000;

/// Text that must not be seen: a key, a header value, a proxy URL with credentials.
///
/// A text of the form `$NAME` names a variable of the environment and is no secret itself; `$$…` stands for a
/// literal text that begins with `$`. Debug output and serialisation show `[secret]` or `$NAME`, never the value.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes a literal or a `$NAME` reference.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text as it was written. For the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The variable of the environment that holds the value, if the text is a `$NAME` reference.
    pub fn variable(&self) -> Option<&str> {
        let name = self.0.strip_prefix('$')?;
        let mut bytes = name.bytes();
        let starts = bytes
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        (starts && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')).then_some(name)
    }

    /// The value: the literal, or what `lookup` finds for the named variable.
    ///
    /// # Errors
    /// [`ErrorCode::MissingMember`] at `path` when the variable is not set or empty.
    pub fn resolve(
        &self,
        path: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, Error> {
        match self.variable() {
            Some(name) => lookup(name)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| {
                    Error::at(
                        ErrorCode::MissingMember,
                        path,
                        format!("the environment variable {name} is not set"),
                    )
                }),
            None if self.0.starts_with("$$") => Ok(self.0[1..].to_owned()),
            None => Ok(self.0.clone()),
        }
    }

    fn shown(&self) -> &str {
        match self.variable() {
            Some(_) => &self.0,
            None => "[secret]",
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "writeOnly": true})
    }
}

/// The address of an endpoint. Debug output and serialisation leave out its query, where some endpoints want a key.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct BaseUrl(String);

impl BaseUrl {
    /// Takes an address as it is.
    pub fn new(url: impl Into<String>) -> Self {
        BaseUrl(url.into())
    }

    /// The whole address, query included.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The address without its query: fit to be shown once [`BaseUrl::check`] has passed.
    pub fn shown(&self) -> &str {
        self.0.split('?').next().unwrap_or_default()
    }

    /// Checks that this is an http or https address with a host, without credentials and without a fragment.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfRange`] at `path`.
    pub fn check(&self, path: &str) -> Result<(), Error> {
        let refuse = |what: &str| Err(Error::at(ErrorCode::OutOfRange, path, what));
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return refuse("the address must begin with http:// or https://");
        };
        if !matches!(scheme, "http" | "https") {
            return refuse("the address must begin with http:// or https://");
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return refuse("the address must not hold credentials; use \"api_key\" or \"headers\"");
        }
        if authority.is_empty() || authority.starts_with(':') {
            return refuse("the address has no host");
        }
        if self.0.contains('#') {
            return refuse("the address must not have a fragment");
        }
        if self.0.bytes().any(|b| b.is_ascii_control() || b == b' ') {
            return refuse("the address must not hold spaces or control characters");
        }
        Ok(())
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&without_secrets(self), f)
    }
}

/// What of an address may be shown before it was checked: no query and no credentials.
fn without_secrets(url: &BaseUrl) -> String {
    match url.shown().split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://{host}")
        }
        None => "[no address]".to_owned(),
    }
}

impl Serialize for BaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&without_secrets(self))
    }
}

impl JsonSchema for BaseUrl {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "BaseUrl".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "uri", "pattern": "^https?://"})
    }
}

/// A model behind an endpoint that speaks the chat completions format.
///
/// What is not set here is not sent, so that endpoints which refuse a parameter can be used without it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// Name of the model, as the endpoint knows it.
    #[schemars(length(min = 1))]
    pub model: String,
    /// Where the endpoint is; `/chat/completions` is added to its path. A query stays in place.
    #[serde(default = "default_base_url")]
    pub base_url: BaseUrl,
    /// Sent as `Authorization: Bearer …`. A literal, or `$NAME` for a variable of the environment. Without it no
    /// such header is sent.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// More headers, by name. Values are literals or `$NAME` and are treated as secrets.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// Whether the reply is streamed. Default true.
    #[serde(default = "default_true")]
    pub stream: bool,
    /// Longest wait for a connection, TLS included, in milliseconds. Default 10,000.
    #[serde(default = "default_connect_timeout_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub connect_timeout_ms: u64,
    /// Longest wait from sending the request to the head of the answer, in milliseconds. Default 600,000.
    #[serde(default = "default_first_byte_timeout_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub first_byte_timeout_ms: u64,
    /// Longest silence inside an answer, in milliseconds. Default 300,000.
    #[serde(default = "default_between_bytes_timeout_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub between_bytes_timeout_ms: u64,
    /// Longest time for the whole call, in milliseconds, without the time that the listener holds it back. Default
    /// 1,800,000.
    #[serde(default = "default_timeout_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: u64,
    /// TLS settings for https.
    #[serde(default)]
    pub tls: Option<TlsConfig>,
    /// URL of an HTTP proxy (`http://host:port`), literal or `$NAME`. Proxies that the environment names are not
    /// used unless they are named here, as in `"$HTTPS_PROXY"`.
    #[serde(default)]
    pub proxy: Option<Secret>,
    /// Sampling temperature.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub temperature: Option<Number>,
    /// Most tokens that the model may write.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// Nucleus sampling: the probability mass to draw from.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<Number>,
    /// Seed for endpoints that can repeat a sampling.
    #[serde(default)]
    pub seed: Option<i64>,
    /// How long the model may think, in the endpoint's own words (`"low"`, `"high"`, …).
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// Whether the reasoning of earlier replies goes back to the model as `reasoning_content`. Default false.
    #[serde(default)]
    pub replay_reasoning: bool,
    /// More members of the request body. Members that are set elsewhere are refused; `stream_options` replaces
    /// ours, and null there leaves it out.
    #[serde(default)]
    pub extra_body: Map<String, Value>,
}

/// TLS settings of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// File of CA certificates in PEM form. Only these are trusted then, not those of the system.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub ca_file: Option<String>,
}

fn default_base_url() -> BaseUrl {
    BaseUrl::new("https://api.openai.com/v1")
}
fn default_true() -> bool {
    true
}
fn default_connect_timeout_ms() -> u64 {
    10_000
}
fn default_first_byte_timeout_ms() -> u64 {
    600_000
}
fn default_between_bytes_timeout_ms() -> u64 {
    300_000
}
fn default_timeout_ms() -> u64 {
    1_800_000
}

/// Headers that are ours, or that belong to the connection.
const RESERVED_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl OpenAiConfig {
    /// A configuration with every default.
    pub fn new(model: impl Into<String>, base_url: impl Into<String>) -> Self {
        OpenAiConfig {
            model: model.into(),
            base_url: BaseUrl::new(base_url),
            api_key: None,
            headers: BTreeMap::new(),
            stream: default_true(),
            connect_timeout_ms: default_connect_timeout_ms(),
            first_byte_timeout_ms: default_first_byte_timeout_ms(),
            between_bytes_timeout_ms: default_between_bytes_timeout_ms(),
            timeout_ms: default_timeout_ms(),
            tls: None,
            proxy: None,
            temperature: None,
            max_tokens: None,
            top_p: None,
            seed: None,
            reasoning_effort: None,
            replay_reasoning: false,
            extra_body: Map::new(),
        }
    }

    /// Checks what types cannot: bounds, addresses, header names, contradictions.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfRange`] or [`ErrorCode::Conflict`], with the member's JSON pointer.
    pub fn validate(&self) -> Result<(), Error> {
        not_empty("/model", &self.model)?;
        self.base_url.check("/base_url")?;
        for (path, value) in [
            ("/connect_timeout_ms", self.connect_timeout_ms),
            ("/first_byte_timeout_ms", self.first_byte_timeout_ms),
            ("/between_bytes_timeout_ms", self.between_bytes_timeout_ms),
            ("/timeout_ms", self.timeout_ms),
        ] {
            within(path, value, 1, MAX_WAIT_MS)?;
        }
        self.check_headers()?;
        if let Some(file) = self.tls.as_ref().and_then(|tls| tls.ca_file.as_deref()) {
            not_empty("/tls/ca_file", file)?;
        }
        number_within("/temperature", self.temperature.as_ref(), f64::MAX)?;
        number_within("/top_p", self.top_p.as_ref(), 1.0)?;
        if let Some(max_tokens) = self.max_tokens {
            within("/max_tokens", max_tokens, 1, (1 << 53) - 1)?;
        }
        if let Some(effort) = &self.reasoning_effort {
            not_empty("/reasoning_effort", effort)?;
        }
        self.check_extra_body()
    }

    fn check_headers(&self) -> Result<(), Error> {
        for (name, value) in &self.headers {
            let path = format!("/headers/{}", pointer_token(name));
            let lower = name.to_ascii_lowercase();
            let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            if name.is_empty() || !name.bytes().all(token) {
                return Err(Error::at(
                    ErrorCode::OutOfRange,
                    path,
                    "this is no name of an HTTP header",
                ));
            }
            if RESERVED_HEADERS.contains(&lower.as_str()) {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    path,
                    "this header is set by the provider itself",
                ));
            }
            if lower == "authorization" && self.api_key.is_some() {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    path,
                    "\"api_key\" sets this header already",
                ));
            }
            check_header_value(value.expose(), &path)?;
        }
        if let Some(key) = &self.api_key {
            not_empty("/api_key", key.expose())?;
            check_header_value(key.expose(), "/api_key")?;
        }
        Ok(())
    }

    fn check_extra_body(&self) -> Result<(), Error> {
        for name in self.extra_body.keys() {
            let taken = match name.as_str() {
                "model" | "messages" | "tools" | "tool_choice" | "stream" => true,
                "temperature" => self.temperature.is_some(),
                "max_tokens" => self.max_tokens.is_some(),
                "top_p" => self.top_p.is_some(),
                "seed" => self.seed.is_some(),
                "reasoning_effort" => self.reasoning_effort.is_some(),
                _ => false,
            };
            if taken {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    format!("/extra_body/{}", pointer_token(name)),
                    format!("{name} is set by the provider itself"),
                ));
            }
        }
        Ok(())
    }
}

/// Checks that `value` can be sent as a header: visible ASCII, spaces and tabs.
///
/// # Errors
/// [`ErrorCode::OutOfRange`] at `path`; the text never holds the value.
pub(crate) fn check_header_value(value: &str, path: &str) -> Result<(), Error> {
    if value
        .bytes()
        .all(|b| b == b'\t' || (b' '..=b'~').contains(&b))
    {
        Ok(())
    } else {
        Err(Error::at(
            ErrorCode::OutOfRange,
            path,
            "a header may hold visible ASCII characters only",
        ))
    }
}

fn not_empty(path: &str, text: &str) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::at(
            ErrorCode::OutOfRange,
            path,
            "this must not be empty",
        ));
    }
    Ok(())
}

fn within(path: &str, value: u64, min: u64, max: u64) -> Result<(), Error> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::at(
        ErrorCode::OutOfRange,
        path,
        format!("{value} is not within {min}..={max}"),
    ))
}

fn number_within(path: &str, value: Option<&Number>, max: f64) -> Result<(), Error> {
    let Some(value) = value else { return Ok(()) };
    match value.as_f64() {
        Some(number) if (0.0..=max).contains(&number) => Ok(()),
        _ => Err(Error::at(
            ErrorCode::OutOfRange,
            path,
            if max == f64::MAX {
                format!("{value} is less than 0")
            } else {
                format!("{value} is not within 0..={max}")
            },
        )),
    }
}

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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn openai(value: Value) -> Result<OpenAiConfig, String> {
        let config: OpenAiConfig = serde_json::from_value(value).map_err(|e| e.to_string())?;
        config
            .validate()
            .map_err(|error| error.path.unwrap_or_default())?;
        Ok(config)
    }

    fn scripted(value: Value) -> Result<ScriptedConfig, String> {
        let config: ScriptedConfig = serde_json::from_value(value).map_err(|e| e.to_string())?;
        config
            .validate()
            .map_err(|error| error.path.unwrap_or_default())?;
        Ok(config)
    }

    #[test]
    fn a_secret_is_never_shown() {
        let config = openai(json!({
            "model": "m", "base_url": "https://h/v1?key=sk-query", "api_key": "sk-literal",
            "headers": {"x-key": "sk-header", "y-key": "$Y_KEY"}, "proxy": "http://u:sk-proxy@p:1",
        }))
        .unwrap();
        let shown = format!("{config:?} {}", serde_json::to_string(&config).unwrap());
        assert!(!shown.contains("sk-"), "{shown}");
        assert!(shown.contains("$Y_KEY") && shown.contains("https://h/v1"));
        let unchecked = BaseUrl::new("https://u:sk-1@h/v1?k=sk-2");
        assert_eq!(format!("{unchecked:?}"), "\"https://h/v1\"");
    }

    #[test]
    fn a_reference_is_a_dollar_and_a_name() {
        let lookup = |name: &str| (name == "KEY").then(|| "value".to_owned());
        let resolve = |text: &str| Secret::new(text).resolve("/api_key", &lookup);
        assert_eq!(resolve("$KEY").unwrap(), "value");
        assert_eq!(resolve("literal").unwrap(), "literal");
        assert_eq!(resolve("$$KEY").unwrap(), "$KEY");
        assert_eq!(resolve("$1").unwrap(), "$1");
        let missing = resolve("$OTHER").unwrap_err();
        assert_eq!(missing.code, ErrorCode::MissingMember);
        assert_eq!(missing.path.as_deref(), Some("/api_key"));
        assert!(missing.message.contains("OTHER"));
    }

    #[test]
    fn bounds_of_an_endpoint_are_refused_with_their_path() {
        for (members, path) in [
            (json!({"model": " "}), "/model"),
            (json!({"base_url": "ftp://h"}), "/base_url"),
            (json!({"base_url": "h/v1"}), "/base_url"),
            (json!({"base_url": "http://"}), "/base_url"),
            (json!({"base_url": "http://u:p@h"}), "/base_url"),
            (json!({"base_url": "http://h/ v1"}), "/base_url"),
            (json!({"base_url": "http://h/#x"}), "/base_url"),
            (json!({"connect_timeout_ms": 0}), "/connect_timeout_ms"),
            (json!({"timeout_ms": 86_400_001u64}), "/timeout_ms"),
            (json!({"headers": {"a b": "x"}}), "/headers/a b"),
            (json!({"headers": {"a/b": "x"}}), "/headers/a~1b"),
            (json!({"headers": {"Host": "x"}}), "/headers/Host"),
            (json!({"headers": {"x": "a\nb"}}), "/headers/x"),
            (
                json!({"api_key": "k", "headers": {"Authorization": "x"}}),
                "/headers/Authorization",
            ),
            (json!({"api_key": ""}), "/api_key"),
            (json!({"api_key": "k\r\nx: y"}), "/api_key"),
            (json!({"temperature": -0.1}), "/temperature"),
            (json!({"top_p": 1.1}), "/top_p"),
            (json!({"max_tokens": 0}), "/max_tokens"),
            (json!({"tls": {"ca_file": ""}}), "/tls/ca_file"),
            (
                json!({"extra_body": {"messages": []}}),
                "/extra_body/messages",
            ),
            (
                json!({"seed": 1, "extra_body": {"seed": 2}}),
                "/extra_body/seed",
            ),
        ] {
            let mut config = json!({"model": "m"});
            config
                .as_object_mut()
                .unwrap()
                .extend(members.as_object().unwrap().clone());
            assert_eq!(openai(config), Err(path.to_owned()), "{members}");
        }
        assert!(openai(json!({"model": "m", "extra_body": {"stream_options": null}})).is_ok());
    }

    #[test]
    fn unknown_members_are_refused() {
        assert!(openai(json!({"model": "m", "modle": 1})).is_err());
        assert!(openai(json!({"model": "m", "tls": {"x": 1}})).is_err());
        assert!(scripted(json!({"replies": [{"contents": "x"}]})).is_err());
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
    fn schemas_describe_both_providers() {
        for schema in [
            schemars::schema_for!(OpenAiConfig),
            schemars::schema_for!(ScriptedConfig),
        ] {
            let text = serde_json::to_string(&schema).unwrap();
            assert!(text.contains("\"additionalProperties\":false"), "{text}");
        }
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
