//! fawn: an agent harness behind a C ABI.
//!
//! The layers, each of which may use only those above it:
//!
//! - [`protocol`]: every JSON shape that crosses the ABI.
//! - [`state`]: channels, reducers, the message fold. Pure.
//! - [`ports`]: traits to the outside.
//! - [`adapters`]: implementations of ports.

pub mod adapters;
pub mod ports;
pub mod protocol;
pub mod state;
