//! Every JSON shape that crosses the ABI.

pub mod agent_record;
pub mod app_config;
pub mod assembly;
pub mod canonical;
pub mod config;
pub mod decode;
pub mod describe;
pub mod environment;
pub mod error;
pub mod host_tool;
pub mod json;
pub mod message;
pub mod model;
pub mod model_entry;
pub mod named_model;
pub mod run;
pub mod scan;
pub mod schema;
pub mod time;
pub mod trust;
pub mod warning;
pub mod yaml;
