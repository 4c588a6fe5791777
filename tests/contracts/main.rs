//! What fawn promises to those who do not read its source: header, symbols, schemas; and to those who do: layers, rules.
//!
//! `UPDATE=1 cargo test --test contracts` rewrites the files that are generated.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed unwrap is the failure to report; what is skipped is said"
)]

mod bindings;
mod elf;
mod header;
mod layers;
mod repository;
mod rules;
mod rust_source;
mod schemas;
mod symbols;
