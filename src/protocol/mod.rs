//! Every JSON shape that crosses the ABI.

pub mod error;
pub mod json;
pub mod message;
pub mod model;
pub mod time;
