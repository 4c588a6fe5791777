//! Every JSON shape that crosses the ABI.

pub mod canonical;
pub mod error;
pub mod json;
pub mod message;
pub mod scan;
