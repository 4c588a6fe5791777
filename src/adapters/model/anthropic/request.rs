//! The request body: messages, tools and settings written straight to JSON text.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::turns::{Block, Conversation, Turn, turns};
use crate::ports::model::{ModelRequest, ToolChoice};
use crate::ports::tool::ToolSpec;
use crate::protocol::model::AnthropicConfig;
use crate::protocol::trust::SystemText;

/// The body of one request, as JSON text.
///
/// Members: `model`, `max_tokens`, `system` and `messages`, `tools` and `tool_choice` if there are tools, `stream`, then
/// what the configuration sets, then its `extra_body`.
pub fn encode(config: &AnthropicConfig, request: &ModelRequest) -> Vec<u8> {
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
    config: &'a AnthropicConfig,
    request: &'a ModelRequest,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Body { config, request } = self;
        let Conversation { system, turns } = turns(request);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &config.model)?;
        map.serialize_entry("max_tokens", &config.output_tokens())?;
        if !system.is_empty() {
            map.serialize_entry("system", &Content(&system))?;
        }
        map.serialize_entry("messages", &turns)?;
        if !request.tools.is_empty() {
            let tools: Vec<WireTool<'_>> = request.tools.iter().map(WireTool).collect();
            map.serialize_entry("tools", &tools)?;
            if let Some(choice) = self.tool_choice() {
                map.serialize_entry("tool_choice", &choice)?;
            }
        }
        map.serialize_entry("stream", &config.stream)?;
        if !config.stop_sequences.is_empty() {
            map.serialize_entry("stop_sequences", &config.stop_sequences)?;
        }
        if let Some(temperature) = &config.temperature {
            map.serialize_entry("temperature", temperature)?;
        }
        if let Some(top_p) = &config.top_p {
            map.serialize_entry("top_p", top_p)?;
        }
        if let Some(top_k) = config.top_k {
            map.serialize_entry("top_k", &top_k)?;
        }
        if let Some(thinking) = &config.thinking {
            map.serialize_entry("thinking", thinking)?;
        }
        if let Some(effort) = &config.reasoning_effort {
            map.serialize_entry("output_config", &json!({ "effort": effort }))?;
        }
        for (name, value) in &config.extra_body {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Body<'_> {
    fn tool_choice(&self) -> Option<Value> {
        let mut choice = match &self.request.tool_choice {
            None => None,
            Some(ToolChoice::Auto) => Some(json!({"type": "auto"})),
            Some(ToolChoice::None) => return Some(json!({"type": "none"})),
            // A model that thinks may not be forced: the endpoint refuses it.
            Some(_) if self.config.is_thinking() => Some(json!({"type": "auto"})),
            Some(ToolChoice::Required) => Some(json!({"type": "any"})),
            Some(ToolChoice::Tool(name)) => Some(json!({"type": "tool", "name": name})),
        };
        if let Some(parallel) = self.config.parallel_tool_calls {
            let choice = choice.get_or_insert_with(|| json!({"type": "auto"}));
            choice["disable_parallel_tool_use"] = (!parallel).into();
        }
        choice
    }
}

/// Blocks as content: plain text where that says the same.
struct Content<'a, 'b>(&'b [Block<'a>]);

impl Serialize for Content<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            [] => serializer.serialize_str(""),
            [Block::Text(text)] => serializer.serialize_str(text),
            blocks => serializer.collect_seq(blocks),
        }
    }
}

impl Serialize for Turn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("role", self.role.name())?;
        map.serialize_entry("content", &Content(&self.blocks))?;
        map.end()
    }
}

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Block::Text(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Block::Stored(members) => {
                for (name, value) in *members {
                    // Marks of streaming that LangChain leaves in blocks.
                    if name != "index" && name != "partial_json" {
                        map.serialize_entry(name, value)?;
                    }
                }
            }
            Block::Made(members) => {
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
            }
            Block::ToolUse {
                id,
                name,
                input,
                hint,
            } => {
                map.serialize_entry("type", "tool_use")?;
                map.serialize_entry("id", id)?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("input", input)?;
                if let Some(hint) = hint {
                    map.serialize_entry("cache_control", hint)?;
                }
            }
            Block::ToolResult {
                id,
                content,
                is_error,
            } => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("tool_use_id", id)?;
                map.serialize_entry("content", &Content(content))?;
                if *is_error {
                    map.serialize_entry("is_error", &true)?;
                }
            }
        }
        map.end()
    }
}

struct WireTool<'a>(&'a ToolSpec);

impl Serialize for WireTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.0.name)?;
        if !self.0.description.is_empty() {
            map.serialize_entry("description", &self.0.description)?;
        }
        match &*self.0.parameters {
            Value::Object(schema) if schema.contains_key("type") => {
                map.serialize_entry("input_schema", schema)?;
            }
            // The endpoint wants the word, and a tool that takes nothing still takes an object.
            other => {
                let mut schema = Map::from_iter([("type".to_owned(), Value::from("object"))]);
                match other {
                    Value::Object(members) => schema.extend(members.clone()),
                    _ => {
                        schema.insert("properties".into(), Map::new().into());
                    }
                }
                map.serialize_entry("input_schema", &schema)?;
            }
        }
        map.end()
    }
}
