//! Any endpoint that speaks Anthropic's messages format.

mod blocks;
mod event;
mod media;
mod message;
mod request;
mod turns;

use std::time::Duration;

pub use message::{Messages, ReplyStream, read_whole};
pub use request::encode;

use super::http::{Endpoint, EndpointConfig, exchange};
use crate::ports::model::{DeltaSink, ModelError, ModelProvider, ModelReply, ModelRequest};
use crate::protocol::error::Error;
use crate::protocol::model::AnthropicConfig;

/// A model behind a messages endpoint.
pub struct Anthropic {
    config: AnthropicConfig,
    endpoint: Endpoint,
}

impl Anthropic {
    /// Checks the configuration, resolves its secrets through `lookup` and reads its files. Nothing is sent yet.
    ///
    /// # Errors
    /// Those of [`AnthropicConfig::validate`]; `MissingMember` for an environment variable that is not set;
    /// `AssemblyInvalid` for a CA file that cannot be used.
    pub fn new(
        config: AnthropicConfig,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        config.validate()?;
        // Both ways to write the base address are in use.
        let has_version = config
            .base_url
            .shown()
            .trim_end_matches('/')
            .ends_with("/v1");
        let endpoint = Endpoint::new(
            &EndpointConfig {
                connection: config.connection(),
                path: if has_version {
                    "/messages"
                } else {
                    "/v1/messages"
                },
                query: None,
                header: Some(("anthropic-version", &config.api_version)),
            },
            lookup,
        )?;
        Ok(Anthropic { config, endpoint })
    }
}

impl ModelProvider for Anthropic {
    async fn call(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let body = encode(&self.config, request);
        let timeout = Duration::from_millis(self.config.timeout_ms);
        exchange::<Messages>(&self.endpoint, body, self.config.stream, timeout, sink).await
    }
}
