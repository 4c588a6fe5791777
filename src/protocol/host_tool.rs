//! Configuration of a tool that the host runs.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::config::check_deadline;
use super::error::{Error, ErrorCode};

/// A tool that the host runs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostToolConfig {
    /// Name, 1 to 64 characters of `A-Z a-z 0-9 _ -`, unique within the assembly.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    pub name: String,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments object. Default: an object without members.
    #[serde(default)]
    pub parameters: Option<Map<String, Value>>,
    /// The group that agents choose it by (`tool_groups`). Default: none, and then it is there for every agent
    /// but those whose list of groups is empty.
    #[serde(default)]
    pub group: Option<String>,
    /// Where the tool comes from, when the host got it from an MCP server: what the model may see of it is then the
    /// server's text and not the operator's.
    #[serde(default)]
    pub mcp: Option<McpToolConfig>,
    /// How long the host has for one call, in milliseconds. Default 600000.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// Whether its answer ends the run when every call of the reply is such a call.
    #[serde(default)]
    pub return_direct: bool,
}

impl HostToolConfig {
    /// Checks bounds.
    ///
    /// # Errors
    /// `OutOfRange` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        let fits = (1..=64).contains(&self.name.len())
            && self
                .name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !fits {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/name",
                "a tool's name must be 1 to 64 characters of A-Z, a-z, 0-9, _ and -",
            ));
        }
        if let Some(mcp) = &self.mcp {
            mcp.validate().map_err(|error| error.below("/mcp"))?;
        }
        check_deadline("/deadline_ms", self.deadline_ms)
    }
}

/// An MCP server behind a host tool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpToolConfig {
    /// Name of the server.
    #[serde(default)]
    pub server: Option<String>,
    /// How the host reaches it, such as `stdio` or `http`.
    #[serde(default)]
    pub transport: Option<String>,
    /// When the model is told to prefer the tool (MCP-7, TL-17). Default: never.
    #[serde(default)]
    pub routing: Option<McpRoutingConfig>,
}

impl McpToolConfig {
    fn validate(&self) -> Result<(), Error> {
        match &self.routing {
            Some(routing) if routing.keywords.iter().any(|word| word.trim().is_empty()) => {
                Err(Error::at(
                    ErrorCode::OutOfRange,
                    "/routing/keywords",
                    "a keyword must not be blank",
                ))
            }
            _ => Ok(()),
        }
    }
}

/// When a tool of an MCP server is preferred.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpRoutingConfig {
    /// Whether it is preferred at all. Default `off`.
    #[serde(default)]
    pub mode: McpRoutingMode,
    /// Which of several comes first: the highest; taken as 0 to 100. Default 0.
    #[serde(default)]
    pub priority: i64,
    /// Words of a request that speak for the tool.
    #[serde(default)]
    pub keywords: Vec<String>,
}

/// Whether a tool of an MCP server is preferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpRoutingMode {
    /// No.
    #[default]
    Off,
    /// For requests with its keywords.
    Prefer,
}
