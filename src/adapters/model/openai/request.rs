//! The request body: messages, tools and settings written straight to JSON text.

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value, json};

use crate::adapters::model::calls::{answered_invalid_calls, repaired};
use crate::ports::model::{ModelRequest, ToolChoice};
use crate::ports::tool::ToolSpec;
use crate::protocol::message::{Fields, Kind, Message};
use crate::protocol::model::OpenAiConfig;
use crate::protocol::trust::SystemText;

/// Longest `name` of a message that is sent; endpoints refuse longer ones.
const MAX_NAME_BYTES: usize = 64;

/// The body of one request, as JSON text.
///
/// Members: `model`, `messages`, `tools` and `tool_choice` if there are tools, `stream` and `stream_options` if it
/// streams, then what the configuration sets, then its `extra_body`.
pub fn encode(config: &OpenAiConfig, request: &ModelRequest) -> Vec<u8> {
    let text: usize = request.messages.iter().map(|m| m.json().len()).sum();
    let system = request
        .system
        .as_ref()
        .map(SystemText::as_str)
        .map_or(0, str::len);
    let mut bytes = Vec::with_capacity(text + system + 512 * request.tools.len() + 1024);
    serde_json::to_writer(&mut bytes, &Body { config, request })
        .expect("maps with text keys always serialise into a Vec");
    bytes
}

struct Body<'a> {
    config: &'a OpenAiConfig,
    request: &'a ModelRequest,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Body { config, request } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &config.model)?;
        map.serialize_entry(
            "messages",
            &Messages {
                request,
                replay_reasoning: config.replay_reasoning,
            },
        )?;
        if !request.tools.is_empty() {
            map.serialize_entry("tools", &Tools(&request.tools))?;
            if let Some(choice) = &request.tool_choice {
                map.serialize_entry("tool_choice", &Choice(choice))?;
            }
        }
        map.serialize_entry("stream", &config.stream)?;
        if config.stream && !config.extra_body.contains_key("stream_options") {
            map.serialize_entry("stream_options", &json!({"include_usage": true}))?;
        }
        if let Some(temperature) = &config.temperature {
            map.serialize_entry("temperature", temperature)?;
        }
        if let Some(max_tokens) = config.max_tokens {
            map.serialize_entry("max_tokens", &max_tokens)?;
        }
        if let Some(max_tokens) = config.max_completion_tokens {
            map.serialize_entry("max_completion_tokens", &max_tokens)?;
        }
        if let Some(top_p) = &config.top_p {
            map.serialize_entry("top_p", top_p)?;
        }
        if let Some(seed) = config.seed {
            map.serialize_entry("seed", &seed)?;
        }
        if let Some(effort) = &config.reasoning_effort {
            map.serialize_entry("reasoning_effort", effort)?;
        }
        for (name, value) in &config.extra_body {
            if name != "stream_options" || !value.is_null() {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

struct Messages<'a> {
    request: &'a ModelRequest,
    replay_reasoning: bool,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let messages = &self.request.messages;
        let mut list = serializer.serialize_seq(None)?;
        if let Some(system) = self.request.system.as_ref().map(SystemText::as_str) {
            list.serialize_element(&json_role("system", system))?;
        }
        if let Some(preamble) = &self.request.preamble {
            list.serialize_element(&WireMessage {
                fields: preamble.fields(),
                later: messages,
                replay_reasoning: self.replay_reasoning,
            })?;
        }
        for (position, message) in messages.iter().enumerate() {
            if message.kind() != Kind::Remove {
                list.serialize_element(&WireMessage {
                    fields: message.fields(),
                    later: &messages[position + 1..],
                    replay_reasoning: self.replay_reasoning,
                })?;
            }
        }
        list.end()
    }
}

/// A message of a role and plain text.
fn json_role<'a>(role: &'static str, content: &'a str) -> impl Serialize + use<'a> {
    #[derive(Serialize)]
    struct Plain<'a> {
        role: &'static str,
        content: &'a str,
    }
    Plain { role, content }
}

struct WireMessage<'a> {
    fields: &'a Fields,
    /// What follows it in the transcript.
    later: &'a [Message],
    replay_reasoning: bool,
}

impl Serialize for WireMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.fields;
        let mut map = serializer.serialize_map(None)?;
        let role = match fields.kind {
            Kind::Human => "user",
            Kind::Ai => "assistant",
            Kind::System | Kind::Remove => "system",
            Kind::Tool => "tool",
            Kind::Function => "function",
            Kind::Chat => &fields.role,
        };
        map.serialize_entry("role", role)?;
        match fields.kind {
            Kind::Ai => self.assistant(&mut map)?,
            _ => map.serialize_entry("content", &Content(&fields.content))?,
        }
        if fields.kind == Kind::Tool {
            map.serialize_entry("tool_call_id", &fields.tool_call_id)?;
        } else if let Some(name) = fields.name.as_deref().filter(|name| is_wire_name(name)) {
            map.serialize_entry("name", name)?;
        }
        map.end()
    }
}

impl WireMessage<'_> {
    fn assistant<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let fields = self.fields;
        let answered = answered_invalid_calls(fields, self.later);
        let has_calls = !fields.tool_calls.is_empty() || !answered.is_empty();
        // Endpoints differ on empty text beside calls; null is what the format says.
        match &fields.content {
            Value::String(text) if text.is_empty() && has_calls => {
                map.serialize_entry("content", &Value::Null)?;
            }
            content => map.serialize_entry("content", &Content(content))?,
        }
        if self.replay_reasoning
            && let Some(reasoning @ Value::String(_)) =
                fields.additional_kwargs.get("reasoning_content")
        {
            map.serialize_entry("reasoning_content", reasoning)?;
        }
        if has_calls {
            let valid = fields.tool_calls.iter().map(|call| WireCall {
                id: call.id.as_deref(),
                name: &call.name,
                arguments: to_text(&call.args),
            });
            let invalid = answered.iter().map(|call| {
                let (name, args) = repaired(call);
                WireCall {
                    id: call.id.as_deref(),
                    name,
                    arguments: to_text(&args),
                }
            });
            map.serialize_entry("tool_calls", &valid.chain(invalid).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

struct WireCall<'a> {
    id: Option<&'a str>,
    name: &'a str,
    arguments: String,
}

impl Serialize for WireCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: &'a str,
        }
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("id", self.id.unwrap_or_default())?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry(
            "function",
            &Function {
                name: self.name,
                arguments: &self.arguments,
            },
        )?;
        map.end()
    }
}

fn to_text(args: &Map<String, Value>) -> String {
    serde_json::to_string(args).unwrap_or_else(|_| "{}".to_owned())
}

/// Whether endpoints accept `name` as the name of a participant.
fn is_wire_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Content: text as it is, blocks in the wire's form.
struct Content<'a>(&'a Value);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(blocks) if !blocks.is_empty() => {
                let mut list = serializer.serialize_seq(None)?;
                for block in blocks {
                    serialize_block(block, &mut list)?;
                }
                list.end()
            }
            Value::String(text) => serializer.serialize_str(text),
            _ => serializer.serialize_str(""),
        }
    }
}

fn serialize_block<L: SerializeSeq>(block: &Value, list: &mut L) -> Result<(), L::Error> {
    let Value::Object(object) = block else {
        return match block {
            Value::String(text) => list.serialize_element(&json!({"type": "text", "text": text})),
            _ => Ok(()),
        };
    };
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    match text("type") {
        // What models think and call is not part of their text; calls have their own member.
        Some(
            "thinking" | "redacted_thinking" | "reasoning" | "reasoning_content" | "tool_use"
            | "tool_call" | "function_call",
        ) => Ok(()),
        Some("image") => match image_url(object) {
            Some(url) => {
                list.serialize_element(&json!({"type": "image_url", "image_url": {"url": url}}))
            }
            None => list.serialize_element(block),
        },
        _ => list.serialize_element(block),
    }
}

/// The URL of an image block in one of the forms that other providers and LangChain use.
fn image_url(block: &Map<String, Value>) -> Option<String> {
    let text = |map: &Map<String, Value>, names: &[&str]| {
        names
            .iter()
            .find_map(|name| map.get(*name)?.as_str().map(str::to_owned))
    };
    let source = match block.get("source") {
        Some(Value::Object(source)) => source,
        _ => block,
    };
    if let Some(url) = text(source, &["url"]) {
        return Some(url);
    }
    let data = text(source, &["data", "base64"])?;
    let mime = text(source, &["media_type", "mime_type"]).unwrap_or_else(|| "image/png".to_owned());
    Some(format!("data:{mime};base64,{data}"))
}

struct Tools<'a>(&'a [ToolSpec]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(WireTool))
    }
}

struct WireTool<'a>(&'a ToolSpec);

impl Serialize for WireTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Function<'a>(&'a ToolSpec);
        impl Serialize for Function<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("name", &self.0.name)?;
                if !self.0.description.is_empty() {
                    map.serialize_entry("description", &self.0.description)?;
                }
                match &*self.0.parameters {
                    parameters @ Value::Object(_) => {
                        map.serialize_entry("parameters", parameters)?;
                    }
                    // A tool that takes nothing still takes an object.
                    _ => map.serialize_entry(
                        "parameters",
                        &json!({"type": "object", "properties": {}}),
                    )?,
                }
                map.end()
            }
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Function(self.0))?;
        map.end()
    }
}

struct Choice<'a>(&'a ToolChoice);

impl Serialize for Choice<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ToolChoice::Auto => serializer.serialize_str("auto"),
            ToolChoice::None => serializer.serialize_str("none"),
            ToolChoice::Required => serializer.serialize_str("required"),
            ToolChoice::Tool(name) => {
                json!({"type": "function", "function": {"name": name}}).serialize(serializer)
            }
        }
    }
}
