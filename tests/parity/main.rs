//! The state core against the reference: golden cases made by running it, and generated histories.

#![allow(
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should stop there"
)]

mod cases;
mod histories;
mod message_cases;
mod model;
mod reducers;
mod text_forms;
mod thread_rules;
