//! Model providers against what they meet outside: recorded streams, a server that misbehaves, a mock of the wire.

#[path = "../support/mod.rs"]
mod support;

mod aimock;
mod openai;
mod requests;
mod scripted;
mod streams;
