//! The C ABI: pointers, handles, statuses. It decides nothing: each function checks, decodes, makes one call on the
//! runtime or on a pure function, and encodes.
//!
//! `include/fawn.h` is generated from this folder, and the doc comments of what is exported *are* the documentation of
//! the header: they are written for its readers. Behind the functions:
//!
//! - `guard`: fork, hook and panic on the way in, status and buffers on the way out; every function is one call into it.
//! - `bytes`, `buffers`: text in, places to write, text out.
//! - `handle`, `slots`, `shard`: the tables of living objects.
//! - `wakeup`: the one function of the host that is ever kept.
//! - [`status`]: the numbers and their names.

#![allow(
    clippy::missing_safety_doc,
    reason = "the introduction of the header says what a pointer must be, once for all functions"
)]

mod buffers;
mod guard;
mod handle;
mod shard;
mod slots;

// The header has its functions in the order of these lines; blank lines keep the formatter from sorting them.

pub mod status;

pub mod meta;

pub mod bytes;

pub mod reduce;

pub mod descriptor;

pub mod runtime;

pub mod subagents;

pub mod assembly;

pub mod thread;

pub mod wakeup;

pub mod queue;

pub mod run;

pub mod call;

use std::time::Duration;

use crate::runtime::Wait;

/// Waits longer than this (about 31 years) are waits for ever: no clock of any platform overflows below.
const LONGEST_WAIT_MS: u64 = 1_000_000_000_000;

/// The meaning of a `timeout_ms` parameter.
fn wait(timeout_ms: i64) -> Wait {
    match u64::try_from(timeout_ms) {
        Ok(ms) if ms <= LONGEST_WAIT_MS => Wait::For(Duration::from_millis(ms)),
        _ => Wait::Forever,
    }
}
