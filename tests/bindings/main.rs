//! The bindings, each held to the same scripts, the same quickstart and its own README, with the library that was just built.
//!
//! A language whose tools are missing is skipped with a message on stderr, unless `FAWN_REQUIRE_BINDINGS=1`: then it fails.
//! `FAWN_VALGRIND=1` runs the C programs under valgrind's memcheck.

#![allow(
    clippy::unwrap_used,
    reason = "a failed unwrap is the failure to report"
)]

#[path = "../support/mod.rs"]
mod support;

mod conformance;
mod languages;
mod programs;
mod quickstart;
mod readme;
