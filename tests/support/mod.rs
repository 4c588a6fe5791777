//! Parts that test binaries share.

#![allow(dead_code, reason = "each test binary uses some of it")]

pub mod aimock;
pub mod counting;
pub mod host;
pub mod http_server;
pub mod json_text;
pub mod llmock;
pub mod model;
pub mod parts;
pub mod player;
pub mod ports;
pub mod random;
pub mod request_invariant;
pub mod scenario;
pub mod talk;
