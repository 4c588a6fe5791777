//! Implementations of ports: models, stores, host tools, the clock.

pub mod host_tool;
pub mod model;
pub mod skills_dir;
pub mod store;
pub mod system_clock;
