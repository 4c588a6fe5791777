//! Implementations of ports: models, stores, custom agents, files of threads, host tools, sandboxes and memory of the host, the clock.

pub mod agents_dir;
pub mod host_memory;
pub mod host_sandbox;
pub mod host_tool;
pub mod model;
pub mod offload;
pub mod skills_dir;
pub mod store;
pub mod system_clock;
pub mod thread_files_dir;
mod untrusted_file;
