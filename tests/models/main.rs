//! Model providers against what they meet outside: recorded streams, a server that misbehaves, a mock of the wire.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../support/mod.rs"]
mod support;

mod aimock;
mod anthropic;
mod anthropic_requests;
mod leaks;
mod memory;
mod openai;
mod requests;
mod scripted;
mod streams;
mod transcripts;
