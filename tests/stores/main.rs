//! Checkpoint stores: one suite over all of them, and what only a store in a file can get wrong.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test says what went wrong by panicking, and tells figures"
)]

mod concurrency;
mod histories;
mod suite;
mod support;

#[cfg(feature = "sqlite")]
mod crash;
#[cfg(feature = "sqlite")]
mod damage;
#[cfg(feature = "sqlite")]
mod files;
#[cfg(feature = "sqlite")]
mod size;
#[cfg(feature = "sqlite")]
mod traffic;
