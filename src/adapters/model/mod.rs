//! Model providers.
pub mod host;
