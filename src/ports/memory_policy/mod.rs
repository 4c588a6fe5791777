//! Whether an agent has memory: decided once, kept until a reset, and asked by everything that touches memory (CA-5 to CA-9).
//!
//! Memory is read, written, searched and flushed with a [`MemoryAccess`] in hand, and only [`MemoryPolicy::access`] makes one:
//! a path that forgot to ask does not compile.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::agent_record::agent_name;
use crate::protocol::error::Error;
use crate::protocol::message::{Kind, Message};
use crate::protocol::runtime_op::ResetAgent;
use crate::protocol::trust::Identifier;
use crate::protocol::user_id::UserId;
use crate::protocol::warning::{Warning, Warnings};

/// Most policies that are kept; the one that was asked for longest ago goes first.
pub const MAX_POLICIES: usize = 4096;
/// What runs of the default agent are recorded under (EP-15).
const DEFAULT_AGENT: &str = "default";
/// How the id of a message ends that holds memory (MW-DYN-4).
const MEMORY_SUFFIX: &str = "__memory";

/// Whose agent is meant, where memory is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentBinding<'a> {
    /// The lead agent without a record.
    Default,
    /// The bootstrap agent. It has no record, whatever agent it is making (CA-12).
    Bootstrap,
    /// A custom agent.
    Named(&'a Identifier),
}

/// Whether an agent has memory for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPolicy {
    agent: Option<Identifier>,
    user: UserId,
    is_on_for_all: bool,
    is_on_for_agent: bool,
}

impl MemoryPolicy {
    /// Whether there is memory: not switched off for all, which no agent overrides (CA-7), nor by the agent (CA-5). Decides
    /// about the memory tools, their section of the prompt and the middleware that writes.
    pub fn is_enabled(&self) -> bool {
        self.is_on_for_all && self.is_on_for_agent
    }

    /// The right to touch memory; `None` when there is none to touch.
    pub fn access(&self) -> Option<MemoryAccess> {
        self.is_enabled().then(|| MemoryAccess {
            agent: self.agent.clone(),
            user: self.user.clone(),
        })
    }

    /// The ids of messages that brought memory into a thread and have to go, because the agent has none any more; what brings the
    /// date, and what users wrote, stays (CA-5).
    ///
    /// Those are human messages that the server tagged as reminders, not ones whose id a user chose to look so.
    pub fn leftovers<'m>(
        &'m self,
        messages: impl IntoIterator<Item = &'m Message> + 'm,
    ) -> impl Iterator<Item = &'m str> + 'm {
        let has_to_go = !self.is_on_for_agent;
        messages
            .into_iter()
            .filter(move |message| has_to_go && message.kind() == Kind::Human)
            .filter_map(|message| Some((message, message.id()?)))
            // First, since it is cheap: few messages have such an id.
            .filter(|(_, id)| id.ends_with(MEMORY_SUFFIX))
            .filter(|(message, _)| {
                let kwargs = &message.fields().additional_kwargs;
                let flag = |name: &str| kwargs.get(name).is_some_and(|flag| flag == true);
                flag("dynamic_context_reminder")
                    && flag("hide_from_ui")
                    && !kwargs.contains_key("reminder_date")
            })
            .map(|(_, id)| id)
    }
}

/// The right to touch the memory of one agent and user. Every function that reads, writes, searches or flushes memory takes
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    agent: Option<Identifier>,
    user: UserId,
}

impl MemoryAccess {
    /// The custom agent whose memory it is; `None` for the default one.
    pub fn agent(&self) -> Option<&Identifier> {
        self.agent.as_ref()
    }

    /// The user whose memory it is.
    pub fn user(&self) -> &UserId {
        &self.user
    }
}

/// The policies of a runtime: what records say about memory, kept from the first time it is asked for until a reset (CA-8).
#[derive(Debug)]
pub struct MemoryPolicies {
    is_on_for_all: bool,
    kept: Mutex<Kept>,
    max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    /// What a record says, and when it was last asked for.
    flags: HashMap<(Identifier, UserId), (bool, u64)>,
    /// Counts the askings.
    now: u64,
    /// Counts the resets. What was read before one is not kept after it.
    resets: u64,
}

impl MemoryPolicies {
    /// Nothing is kept yet. `is_on_for_all` is `memory.enabled` of the configuration.
    pub fn new(is_on_for_all: bool) -> Self {
        MemoryPolicies::with_bound(is_on_for_all, MAX_POLICIES)
    }

    fn with_bound(is_on_for_all: bool, max: usize) -> Self {
        MemoryPolicies {
            is_on_for_all,
            kept: Mutex::default(),
            max,
        }
    }

    /// The policy of an agent for a user.
    ///
    /// `load` reads `memory_enabled` from the agent's record, `None` when there is no record; it is called for named agents
    /// only, and only when nothing is kept. A record that is missing or cannot be read leaves memory on, as it was before
    /// agents had a say, with the warning `agent_unreadable` (CA-9); that is not kept, so that memory of an agent which opted
    /// out does not stay on for one bad moment of a disk.
    pub fn resolve(
        &self,
        agent: AgentBinding<'_>,
        user: &UserId,
        load: impl FnOnce(&Identifier, &UserId) -> Result<Option<bool>, Error>,
        warnings: &mut Warnings,
    ) -> MemoryPolicy {
        let AgentBinding::Named(name) = agent else {
            return self.policy(None, user, true);
        };
        let key = (name.clone(), user.clone());
        let resets = {
            let mut kept = locked(&self.kept);
            if let Some(flag) = kept.touch(&key) {
                return self.policy(Some(name), user, flag);
            }
            kept.resets
        };
        // Without the lock: it reads files.
        let flag = match load(name, user) {
            Ok(Some(flag)) => {
                locked(&self.kept).keep(key, flag, resets, self.max);
                flag
            }
            Ok(None) => {
                let message = format!(
                    "there is no agent {:?} to ask about its memory; it stays on",
                    name.as_str()
                );
                warnings.add(Warning::AgentUnreadable, message);
                true
            }
            Err(error) => {
                let message = format!(
                    "the agent {:?} cannot be asked about its memory, which stays on: {}",
                    name.as_str(),
                    error.message
                );
                warnings.add(Warning::AgentUnreadable, message);
                true
            }
        };
        self.policy(Some(name), user, flag)
    }

    /// The policy for what a checkpoint holds: for manual compaction (CA-6). `recorded` is the `agent_name` in the metadata of
    /// the checkpoint that made the state. Which agent the caller talks to now plays no part, so it cannot be given.
    ///
    /// A checkpoint without a name, or with `default` where no agent has that name, is one of the default agent. What is no name
    /// at all counts as unreadable.
    pub fn for_checkpoint(
        &self,
        recorded: Option<&str>,
        user: &UserId,
        load: impl FnOnce(&Identifier, &UserId) -> Result<Option<bool>, Error>,
        warnings: &mut Warnings,
    ) -> MemoryPolicy {
        let Some(recorded) = recorded else {
            return self.policy(None, user, true);
        };
        let name = match agent_name(recorded) {
            Ok(name) => name,
            Err(error) => {
                let message = format!(
                    "a checkpoint names an agent that cannot be; memory stays on: {}",
                    error.message
                );
                warnings.add(Warning::AgentUnreadable, message);
                return self.policy(None, user, true);
            }
        };
        let mut found = Warnings::new();
        let mut is_missing = false;
        let load = |name: &Identifier, user: &UserId| {
            let loaded = load(name, user);
            is_missing = loaded == Ok(None);
            loaded
        };
        let policy = self.resolve(AgentBinding::Named(&name), user, load, &mut found);
        if is_missing && recorded == DEFAULT_AGENT {
            return self.policy(None, user, true);
        }
        warnings.extend(found);
        policy
    }

    /// Forgets what records said, of one agent or all, for one user or all; answers how many policies were forgotten. The op
    /// `reset_agent` (CA-8). Policies in use stay as they are: they end with their runs.
    pub fn reset_agent(&self, which: &ResetAgent) -> usize {
        let mut kept = locked(&self.kept);
        kept.resets += 1;
        let before = kept.flags.len();
        kept.flags.retain(|(agent, user), _| {
            which.agent.as_ref().is_some_and(|wanted| wanted != agent)
                || which.user.as_ref().is_some_and(|wanted| wanted != user)
        });
        before - kept.flags.len()
    }

    fn policy(&self, agent: Option<&Identifier>, user: &UserId, flag: bool) -> MemoryPolicy {
        MemoryPolicy {
            agent: agent.cloned(),
            user: user.clone(),
            is_on_for_all: self.is_on_for_all,
            is_on_for_agent: flag,
        }
    }
}

impl Kept {
    fn touch(&mut self, key: &(Identifier, UserId)) -> Option<bool> {
        self.now += 1;
        let (flag, asked) = self.flags.get_mut(key)?;
        *asked = self.now;
        Some(*flag)
    }

    fn keep(&mut self, key: (Identifier, UserId), flag: bool, resets: u64, max: usize) {
        if self.resets != resets {
            return;
        }
        if self.flags.len() >= max && !self.flags.contains_key(&key) {
            // A tenth at once, so that a full table is looked through rarely.
            let mut ages: Vec<u64> = self.flags.values().map(|(_, asked)| *asked).collect();
            let cut = ages.len() / 10;
            let (_, oldest, _) = ages.select_nth_unstable(cut);
            let oldest = *oldest;
            self.flags.retain(|_, (_, asked)| *asked > oldest);
        }
        // Whoever came first has been answered by already.
        let now = self.now;
        self.flags.entry(key).or_insert((flag, now));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
