//! fawn: an agent harness behind a C ABI.
//!
//! The layers, each of which may use only those above it:
//!
//! - [`protocol`]: every JSON shape that crosses the ABI.
//! - [`state`]: channels, reducers, the message fold. Pure.
//! - [`ports`]: traits to the outside.
//! - [`tools`], [`middleware`]: what an agent is made of.
//! - [`agent`]: what an agent is and what it does next. No IO.
//! - [`adapters`]: implementations of ports.
//! - [`runtime`]: drives machines through ports. tokio lives here.

pub mod adapters;
pub mod agent;
pub mod middleware;
#[allow(unsafe_code, reason = "system calls that std does not offer")]
mod os;
pub mod ports;
pub mod protocol;
pub mod runtime;
pub mod state;
pub mod tools;
