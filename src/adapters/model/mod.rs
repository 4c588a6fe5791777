//! Model providers, one file or folder each. Their configurations are in `protocol::model`, their names in
//! `protocol::config::PROVIDER_NAMES`; the runtime makes them from configurations.

pub mod host;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "openai")]
pub mod openai;
pub mod scripted;
#[cfg(feature = "http")]
pub mod sse;
