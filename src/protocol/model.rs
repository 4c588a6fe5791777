//! Placeholder until the model adapters land.
use schemars::JsonSchema;
use serde::Deserialize;

use super::error::Error;

/// x
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedConfig {}
impl ScriptedConfig {
    /// x
    pub fn validate(&self) -> Result<(), Error> {
        Ok(())
    }
}
/// x
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {}
impl OpenAiConfig {
    /// x
    pub fn validate(&self) -> Result<(), Error> {
        Ok(())
    }
}
