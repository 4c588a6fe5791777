//! Subagents, as far as nothing waits: which there are, what their ends mean, what they are told of a piece of work. Pure.

pub mod definition;
pub mod result;
