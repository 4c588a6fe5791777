//! The state core against the reference: golden cases made by running it, and generated histories.

#![allow(
    clippy::unwrap_used,
    reason = "a test that meets the unexpected should stop there"
)]

mod cases;
mod message_cases;
mod reducers;
