//! Implementations of ports: models, stores, custom agents, host tools, the clock.

pub mod agents_dir;
pub mod host_tool;
pub mod model;
pub mod offload;
pub mod skills_dir;
pub mod store;
pub mod system_clock;
mod untrusted_file;
