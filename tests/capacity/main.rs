//! The admission of subagents under concurrency: every interleaving of small cases, and many real races.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test says where, and tests tell figures"
)]

mod models;
mod races;
mod sync;

// The library's own source, on the lock of `sync` instead of its own. It names these two.
#[path = "../../src/runtime/capacity/admission.rs"]
mod admission;
use fawn::protocol;
