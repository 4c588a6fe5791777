//! The port by which a memory hears what runs have said.

use std::sync::Arc;

use super::BoxFuture;
use super::host::RunContext;
use super::memory_policy::MemoryAccess;
use crate::protocol::error::Error;
use crate::protocol::message::Message;

/// What a run leaves to remember.
#[derive(Clone, Debug)]
pub struct MemoryTurn {
    /// The messages of the thread as they are, oldest first: which of them are worth remembering is the memory's business
    /// (MEM-3).
    pub messages: Vec<Message>,
    /// What the host follows the request by, if anything.
    pub trace_id: Option<String>,
}

/// Takes in what runs have said, to remember it later.
pub trait MemoryQueue: Send + Sync + 'static {
    /// Hands over a turn of the run's thread, for the agent and the user that `access` is for. Whoever remembers does so later:
    /// this waits only until the turn is taken in, and not for ever.
    ///
    /// # Errors
    /// When it was not taken in.
    fn enqueue(
        &self,
        run: Arc<RunContext>,
        access: MemoryAccess,
        turn: MemoryTurn,
    ) -> BoxFuture<'_, Result<(), Error>>;

    /// Whether it asks the host, so that a run with it needs a queue.
    fn asks_host(&self) -> bool {
        false
    }
}
