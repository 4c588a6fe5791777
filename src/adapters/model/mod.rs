//! Model providers, and the list of them.

pub mod host;
// What speaks HTTP: each provider that does names itself here.
#[cfg(feature = "openai")]
mod http;
#[cfg(feature = "openai")]
pub mod openai;
pub mod scripted;
#[cfg(feature = "openai")]
pub mod sse;

use std::sync::Arc;

use schemars::{Schema, schema_for};

use crate::ports::model::DynModelProvider;
use crate::protocol::error::Error;
#[cfg(feature = "openai")]
use crate::protocol::model::OpenAiConfig;
use crate::protocol::model::ScriptedConfig;

/// A kind of model that this build can reach.
#[derive(Clone, Copy, Debug)]
pub struct ProviderKind {
    /// The `provider` member of its configuration.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub summary: &'static str,
    /// The schema of its configuration, without the `provider` member.
    pub schema: fn() -> Schema,
}

/// The providers of this build, simplest first. The host as a model is not here: it needs a queue and lives in the
/// runtime.
pub const PROVIDERS: &[ProviderKind] = &[
    ProviderKind {
        name: "scripted",
        summary: "Answers from a list of replies; for tests and for a first try without a key.",
        schema: || schema_for!(ScriptedConfig),
    },
    #[cfg(feature = "openai")]
    ProviderKind {
        name: "openai",
        summary: "Any endpoint that speaks the chat completions format, over http or https.",
        schema: || schema_for!(OpenAiConfig),
    },
];

/// Makes a scripted model.
///
/// # Errors
/// See [`scripted::Scripted::new`].
pub fn new_scripted(config: &ScriptedConfig) -> Result<Arc<dyn DynModelProvider>, Error> {
    Ok(Arc::new(scripted::Scripted::new(config)?))
}

/// Makes a model behind a chat completions endpoint. `lookup` answers what the environment variable of a name holds.
///
/// # Errors
/// See [`openai::OpenAi::new`].
#[cfg(feature = "openai")]
pub fn new_openai(
    config: OpenAiConfig,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn DynModelProvider>, Error> {
    Ok(Arc::new(openai::OpenAi::new(config, lookup)?))
}
