//! Model providers, one file or folder each. Their configurations are in `protocol::model`, their names in
//! `protocol::config::PROVIDER_NAMES`; the runtime makes them from configurations.

#[cfg(feature = "anthropic")]
pub mod anthropic;
#[cfg(feature = "http")]
mod calls;
pub mod host;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "test-panics")]
mod invariant;
#[cfg(feature = "http")]
mod lenient;
#[cfg(feature = "openai")]
pub mod openai;
#[cfg(feature = "http")]
pub mod reply;
pub mod scripted;
#[cfg(feature = "http")]
pub mod sse;
#[cfg(feature = "http")]
mod surrogates;
