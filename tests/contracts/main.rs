//! What fawn promises to those who do not read its source: header, symbols, schemas; and to those who do: layers, rules.
//!
//! `UPDATE=1 cargo test --test contracts` rewrites the files that are generated.

mod elf;
mod header;
mod layers;
mod repository;
mod rules;
mod rust_source;
mod schemas;
mod symbols;
