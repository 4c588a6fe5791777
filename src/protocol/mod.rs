//! Every JSON shape that crosses the ABI.

pub mod agent_record;
pub mod canonical;
pub mod canonical_json;
pub mod config;
pub mod credential_names;
pub mod decode;
pub mod describe;
pub mod descriptor;
pub mod descriptor_diff;
pub mod error;
pub mod host_tool;
pub mod json;
pub mod message;
pub mod model;
pub mod model_entry;
pub mod number_text;
pub mod run;
pub mod scan;
pub mod schema;
pub mod time;
pub mod trust;
pub mod warning;
