//! Warnings: `log` events to the queues that subscribed to them.

use std::sync::{Arc, Mutex, Weak};

use serde_json::{Map, Value};

use super::queue::{Body, EventSource, Queue, Weight};
use super::run::RunShared;
use super::sync::lock;
use crate::ports::clock::Clock;
use crate::protocol::config::Subscription;

/// What a warning is about; its name is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A reply has calls whose arguments are no JSON object; they are not executed.
    InvalidToolCalls,
    /// A model asked for a tool that the assembly does not have.
    UnknownTool,
    /// Arguments of a call do not fit the tool's schema; the tool was not called.
    ArgumentsRefused,
    /// The host did not answer a call in time.
    HostCallDeadline,
    /// Another process wrote to the thread while a run was on it.
    ThreadStale,
}

impl Warning {
    /// Name in JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Warning::InvalidToolCalls => "invalid_tool_calls",
            Warning::UnknownTool => "unknown_tool",
            Warning::ArgumentsRefused => "arguments_refused",
            Warning::HostCallDeadline => "host_call_deadline",
            Warning::ThreadStale => "thread_stale",
        }
    }
}

/// A queue, and the numbers of its warnings.
type Subscriber = (Weak<Queue>, Arc<EventSource>);

/// The way to the queues of a runtime that want to hear of warnings.
pub struct Logs {
    subscribers: Mutex<Vec<Subscriber>>,
    clock: Arc<dyn Clock>,
}

impl Logs {
    /// Nobody listens yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Logs {
            subscribers: Mutex::default(),
            clock,
        }
    }

    /// Adds a queue if it subscribes.
    pub fn add(&self, queue: &Arc<Queue>) {
        if queue.subscribes(Subscription::Log) {
            let mut subscribers = lock(&self.subscribers);
            subscribers.retain(|(queue, _)| queue.strong_count() > 0);
            subscribers.push((Arc::downgrade(queue), Arc::new(EventSource::runtime())));
        }
    }

    /// Warns of something about a run. The message is made only if somebody listens.
    pub fn warn(&self, run: &RunShared, warning: Warning, message: impl FnOnce() -> String) {
        let queues: Vec<_> = lock(&self.subscribers)
            .iter()
            .filter_map(|(queue, source)| Some((queue.upgrade()?, source.clone())))
            .collect();
        if queues.is_empty() {
            return;
        }
        let mut data = Map::new();
        let mut set = |name: &str, text: &str| data.insert(name.to_owned(), text.into());
        set("level", "warning");
        set("code", warning.code());
        set("message", &message());
        set("run_id", &run.run_id);
        set("thread_id", &run.thread_id);
        let data = Value::Object(data).to_string();
        let at = self.clock.now();
        for (queue, source) in queues {
            let body = Body::Json(data.clone());
            queue.push(&source, "log", at, body, Weight::Ordinary);
        }
    }
}
