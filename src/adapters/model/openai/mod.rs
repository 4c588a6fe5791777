//! Any endpoint that speaks the chat completions format.

mod chunk;
mod merge;
mod request;
mod stream;

use std::time::Duration;

pub use request::encode;
pub use stream::{ChatCompletion, ReplyStream, read_whole};

pub use super::reply::{ReplyFault, StreamEnd};

use super::http::{Endpoint, EndpointConfig, exchange};
use crate::ports::model::{DeltaSink, ModelError, ModelProvider, ModelReply, ModelRequest};
use crate::protocol::error::Error;
use crate::protocol::model::OpenAiConfig;

/// A model behind a chat completions endpoint.
pub struct OpenAi {
    config: OpenAiConfig,
    endpoint: Endpoint,
}

impl OpenAi {
    /// Checks the configuration, resolves its secrets through `lookup` and reads its files. Nothing is sent yet.
    ///
    /// # Errors
    /// Those of [`OpenAiConfig::validate`]; `MissingMember` for an environment variable that is not
    /// set; `AssemblyInvalid` for a CA file that cannot be used.
    pub fn new(
        config: OpenAiConfig,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        config.validate()?;
        let endpoint = Endpoint::new(
            &EndpointConfig {
                connection: config.connection(),
                path: "/chat/completions",
                query: config
                    .api_version
                    .as_deref()
                    .map(|version| ("api-version", version)),
                header: None,
            },
            lookup,
        )?;
        Ok(OpenAi { config, endpoint })
    }
}

impl ModelProvider for OpenAi {
    async fn call(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let body = encode(&self.config, request);
        let timeout = Duration::from_millis(self.config.timeout_ms);
        exchange::<ChatCompletion>(&self.endpoint, body, self.config.stream, timeout, sink).await
    }
}
