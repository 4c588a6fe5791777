//! fawn: an agent harness behind a C ABI.
//!
//! The layers, each of which may use only those above it:
//!
//! - [`protocol`]: every JSON shape that crosses the ABI.
//! - [`state`]: channels, reducers, the message fold. Pure.
//! - [`ports`]: traits to the outside.
//! - [`skills`]: what SKILL.md files say. [`prompt`]: system text and the data channel. Pure.
//! - [`subagents`]: which there are, and what their ends mean. Pure.
//! - [`tools`], [`middleware`]: what an agent is made of.
//! - [`agent`]: what an agent is and what it does next. No IO.
//! - [`adapters`]: implementations of ports.
//! - [`runtime`]: drives machines through ports. tokio lives here.
//! - [`ffi`]: the C ABI.
//!
//! [`os`] stands beside them: the system calls that std does not offer.

pub mod adapters;
pub mod agent;
#[allow(
    unsafe_code,
    reason = "the C ABI is where pointers of the host are read and written"
)]
pub mod ffi;
pub mod middleware;
#[allow(
    unsafe_code,
    reason = "fork and signal masks are reached through libc only"
)]
pub mod os;
pub mod ports;
pub mod prompt;
pub mod protocol;
pub mod runtime;
pub mod skills;
pub mod state;
pub mod subagents;
pub mod tools;
