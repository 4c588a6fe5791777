//! Tools: the checks that stand before every call. Built-in tools join here, one file each.

pub mod arguments;
pub mod self_management;
pub mod setup_agent;
pub mod update_agent;
