//! The harness through its Rust API: machines stepped by hand, and whole runs.

#[path = "../support/parts.rs"]
mod parts;

mod machine;
mod runs;
