//! The harness through its Rust API: machines stepped by hand, and whole runs.

#![allow(clippy::unwrap_used, reason = "a failed test says where")]

#[path = "../support/mod.rs"]
mod support;

mod aimock;
mod cancels;
mod crash;
mod faults;
mod golden;
mod guards;
mod llmock;
mod machine;
mod retry;
mod runs;

use support::{host, parts};
