//! Model configurations to providers.

use std::sync::Arc;

use crate::adapters::model::host::HostModel;
use crate::adapters::model::scripted::Scripted;
use crate::ports::model::DynModelProvider;
use crate::protocol::config::ModelConfig;
use crate::protocol::error::Error;

/// Makes the provider of a configuration. References to the environment are resolved here, once.
///
/// # Errors
/// Those of the provider at the member at fault; `Unsupported` for a provider that this build does not have.
pub fn provider(config: &ModelConfig) -> Result<Arc<dyn DynModelProvider>, Error> {
    match config {
        ModelConfig::Host(config) => Ok(Arc::new(HostModel::new(config))),
        ModelConfig::Scripted(config) => Ok(Arc::new(Scripted::new(config)?)),
        #[cfg(feature = "openai")]
        ModelConfig::Openai(config) => {
            let config = (**config).clone();
            let model = crate::adapters::model::openai::OpenAi::new(config, &environment)?;
            Ok(Arc::new(model))
        }
        #[cfg(not(feature = "openai"))]
        ModelConfig::Openai(_) => Err(left_out("openai")),
        #[cfg(feature = "anthropic")]
        ModelConfig::Anthropic(config) => {
            let config = (**config).clone();
            let model = crate::adapters::model::anthropic::Anthropic::new(config, &environment)?;
            Ok(Arc::new(model))
        }
        #[cfg(not(feature = "anthropic"))]
        ModelConfig::Anthropic(_) => Err(left_out("anthropic")),
    }
}

#[cfg(any(feature = "openai", feature = "anthropic"))]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(not(all(feature = "openai", feature = "anthropic")))]
fn left_out(feature: &str) -> Error {
    Error::at(
        crate::protocol::error::ErrorCode::Unsupported,
        "/provider",
        format!("this build has no {feature:?}: the feature is off"),
    )
}
