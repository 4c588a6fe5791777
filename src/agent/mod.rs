//! What an agent is and what it does next. No IO: whatever is to be done outside is a [`step::Step`].

pub mod assembly;
pub mod direct;
pub mod machine;
pub mod memory_policy;
pub mod step;
pub mod subagent_scope;
