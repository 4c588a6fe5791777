//! The section `memory`: what is remembered between threads.

use schemars::JsonSchema;
use serde::Deserialize;

use super::feature::{OpaqueSettings, between, not_available};
use crate::protocol::error::Error;

/// The memory that the host has.
const HOST: &str = "host";

/// What is remembered between threads (MEM-1).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Whether anything is. Default true; an agent's record can only switch it off (CA-7).
    pub enabled: bool,
    /// Who writes: the library after each turn, or the model with tools. Default `middleware`.
    pub mode: MemoryMode,
    /// Whether the model is shown what is remembered. Default true.
    pub injection_enabled: bool,
    /// How long shutting down waits for what is still to be written, in seconds, 1 to 300. Default 30.
    #[schemars(range(min = 1, max = 300))]
    pub shutdown_flush_timeout_seconds: f64,
    /// Which memory: `host` for one that the host has, which it is told each turn for by a host call of the kind `memory`;
    /// `deermem`, which does nothing in this version; or `noop` for none. Default `deermem`.
    pub manager_class: String,
    /// Settings of that memory, as they are.
    pub backend_config: OpaqueSettings,
}

/// Who writes to the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMode {
    /// The library, after each turn.
    #[default]
    Middleware,
    /// The model, with tools.
    Tool,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        MemoryConfig {
            enabled: true,
            mode: MemoryMode::Middleware,
            injection_enabled: true,
            shutdown_flush_timeout_seconds: 30.0,
            manager_class: "deermem".to_owned(),
            backend_config: OpaqueSettings::default(),
        }
    }
}

impl MemoryConfig {
    /// Whether the model has tools for it (TL-7).
    pub fn has_tools(&self) -> bool {
        self.enabled && self.mode == MemoryMode::Tool
    }

    /// Whether the host is told what runs say (MW-MEM-1): in tool mode the model writes by itself.
    pub fn tells_host(&self) -> bool {
        self.enabled && self.mode == MemoryMode::Middleware && self.manager_class == HOST
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        let seconds = self.shutdown_flush_timeout_seconds;
        between("/shutdown_flush_timeout_seconds", seconds, 1.0, 300.0)?;
        match self.manager_class.as_str() {
            HOST | "deermem" | "noop" => Ok(()),
            other => Err(not_available("/manager_class", other)),
        }
    }
}
