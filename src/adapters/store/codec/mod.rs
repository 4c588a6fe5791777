//! How stores write messages, deltas and snapshots as bytes. Every reader takes any bytes and answers `None` for those
//! that no writer here made.

pub mod delta;
pub mod message;
pub mod seq_list;
mod varint;
