//! Traits to the outside, and the values that pass through them. Adapters implement them; only the runtime calls them.

pub mod active_skills;
pub mod agents;
pub mod authorization;
pub mod call_key;
pub mod checkpoint;
pub mod clock;
pub mod delegate;
pub mod guardrail;
pub mod host;
pub mod host_answer;
pub mod memory_policy;
pub mod memory_queue;
pub mod model;
pub mod sandbox;
pub mod signals;
pub mod thread_files;
pub mod tool;

use std::future::Future;
use std::pin::Pin;

/// A boxed future, for the `dyn` twins of the ports.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
