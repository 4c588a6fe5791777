//! Every JSON shape that crosses the ABI.

pub mod describe;
pub mod error;
pub mod json;
pub mod message;
pub mod schema;
pub mod time;
