//! Model configurations to providers.

use std::sync::Arc;

use crate::adapters::model::host::HostModel;
use crate::ports::model::DynModelProvider;
use crate::protocol::config::ModelConfig;
use crate::protocol::error::Error;

/// Makes the provider of a configuration.
///
/// # Errors
/// `UnknownModel`, `AssemblyInvalid` or `Unsupported` at the member at fault.
pub fn provider(config: &ModelConfig) -> Result<Arc<dyn DynModelProvider>, Error> {
    match config {
        ModelConfig::Host(config) => Ok(Arc::new(HostModel::new(config))),
        ModelConfig::Scripted(_) | ModelConfig::Openai(_) => Err(Error::new(
            crate::protocol::error::ErrorCode::Unsupported,
            "placeholder until the adapters land",
        )),
    }
}
