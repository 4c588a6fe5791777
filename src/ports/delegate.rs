//! The delegation port: giving a piece of work to a subagent, and what comes back.
//!
//! Who runs the subagent is the driver: it is the same machine on a thread of its own. What its end means for the agent that
//! asked, in words and metadata, is in `subagents`.

use std::sync::Arc;

use super::BoxFuture;
use super::call_key::AskedCalls;
use super::host::RunContext;
use super::model::Usage;
use crate::protocol::message::{Fields, Kind, Message};
use crate::state::channels::Channel;
use crate::state::reads::ChannelReads;
use crate::state::update::{StateUpdate, Write};

/// Which subagent a run is, for the parts of its agent (SUB-20, SUB-33).
#[derive(Debug)]
pub struct SubagentRun {
    /// Unique among all executions of the process. Call ids come back in later runs and identify nothing.
    pub execution_id: Arc<str>,
    /// The message of the `task` call. With the call it names the piece of work, also when it is done again later.
    pub message_id: Arc<str>,
    /// The `task` call that it answers.
    pub task_id: Arc<str>,
    /// Name of the subagent.
    pub name: Arc<str>,
    /// The calls that the host was asked about.
    pub asked: AskedCalls,
}

/// One piece of work for a subagent.
#[derive(Clone, Debug)]
pub struct Delegation {
    /// The message of the call that delegates.
    pub message_id: Arc<str>,
    /// The call that delegates.
    pub task_id: String,
    /// Name of the subagent, one of [`Delegate::names`].
    pub subagent: String,
    /// What the work is called, for people; may be empty.
    pub description: String,
    /// What the subagent is told of the work (SUB-25).
    pub task: String,
    /// What it is told of the agent's conversation before.
    pub background: Option<Message>,
    /// What the agent's thread was when it asked, as far as [`Delegation::INHERITED`].
    pub state: ChannelReads,
    /// The run that delegates.
    pub run: Arc<RunContext>,
}

impl Delegation {
    /// Channels that a subagent begins with, as far as the agent has them (SUB-19).
    pub const INHERITED: [Channel; 3] = [
        Channel::Sandbox,
        Channel::ThreadData,
        Channel::UploadedFiles,
    ];

    /// What the subagent's thread begins with. It is made when there is a place for it: a delegation may wait long, and so may
    /// many.
    pub fn input(self) -> StateUpdate {
        let task = Message::new(Fields::new(Kind::Human, self.task));
        let messages = self.background.into_iter().chain([task]).collect();
        let inherited = Delegation::INHERITED.into_iter();
        let mut input = StateUpdate::messages(messages);
        input.writes.extend(inherited.filter_map(|channel| {
            let value = self.state.get(channel)?.clone();
            Some((channel, Write::Value(value)))
        }));
        input
    }
}

/// How an execution ended (SUB-31, SUB-43). `polling_timed_out` is not among them: nothing here is polled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DelegationStatus {
    /// With a result.
    Completed,
    /// Without one.
    Failed,
    /// Somebody ended it.
    Cancelled,
    /// Its time was over, waiting for a place included.
    TimedOut,
}

/// The limit at which an execution ended (SUB-43).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DelegationCap {
    /// Its tokens.
    Token,
    /// Its turns.
    Turn,
    /// It went round in circles.
    Loop,
}

/// The end of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct DelegationEnd {
    /// How it ended.
    pub status: DelegationStatus,
    /// The limit that it ended at, if it was one.
    pub cap: Option<DelegationCap>,
    /// Its result as it is, when it completed.
    pub result: Option<String>,
    /// Why there is none.
    pub error: Option<String>,
    /// The model that worked on it.
    pub model_name: Option<String>,
    /// The tokens of all its model calls; `None` when no call told of any.
    pub usage: Option<Usage>,
    /// It was never begun, because there was no place for it (SUB-29).
    pub admission_failure: bool,
}

/// Gives work to subagents.
pub trait Delegate: Send + Sync + 'static {
    /// Names of the subagents that the agent may ask for, in the order in which the prompt lists them (SUB-8, CA-11).
    fn names(&self) -> Vec<String>;
    /// Why the subagent of this name, which exists, cannot be used here; `None` when it can (SUB-3).
    fn unavailable(&self, name: &str) -> Option<String>;
    /// Runs one execution to its end. Dropping the future ends it, as cancelled.
    fn delegate(&self, delegation: Delegation) -> BoxFuture<'_, DelegationEnd>;
}
