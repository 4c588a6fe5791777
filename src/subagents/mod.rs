//! Subagents, as far as nothing waits: which there are, what their ends mean, what they are told of a piece of work. Pure.

pub mod criteria;
pub mod definition;
pub(crate) mod outcome;
pub mod result;
pub mod snapshot;
pub mod status;

/// The tool that delegates. `batch_task` is another and is not counted (LIM-2).
pub const TASK_TOOL: &str = "task";

/// The tool that delegates many pieces of work at once, for later.
pub const BATCH_TASK_TOOL: &str = "batch_task";
