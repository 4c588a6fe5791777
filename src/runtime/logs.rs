//! What belongs to the runtime rather than to one run: warnings and assembled agents, to the queues that subscribed.

use std::sync::{Arc, Mutex, Weak};

use serde_json::{Map, Value};

use super::queue::{Body, EventSource, Queue, Weight};
use super::run::RunShared;
use super::sync::lock;
use crate::ports::clock::Clock;
use crate::protocol::config::Subscription;
use crate::protocol::error::Error;
use crate::protocol::warning::{Warning, Warnings};

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
        if queue.subscribes(Subscription::Log) || queue.subscribes(Subscription::Runtime) {
            let mut subscribers = lock(&self.subscribers);
            subscribers.retain(|(queue, _)| queue.strong_count() > 0);
            subscribers.push((Arc::downgrade(queue), Arc::new(EventSource::runtime())));
        }
    }

    /// Warns of something about a run. The message is made only if somebody listens.
    pub fn warn(&self, run: &RunShared, warning: Warning, message: impl FnOnce() -> String) {
        let queues = self.listeners(Subscription::Log);
        if queues.is_empty() {
            return;
        }
        let mut data = log_data(warning, &message());
        data.insert("run_id".to_owned(), (*run.run_id).into());
        data.insert("thread_id".to_owned(), (*run.thread_id).into());
        self.send(&queues, "log", &Value::Object(data).to_string());
    }

    /// Tells of warnings that belong to no run.
    pub fn warn_all(&self, warnings: &Warnings) {
        if warnings.is_empty() {
            return;
        }
        let queues = self.listeners(Subscription::Log);
        for (warning, message) in warnings.iter() {
            let data = Value::Object(log_data(warning, message));
            self.send(&queues, "log", &data.to_string());
        }
    }

    /// Tells the queues that hear of the runtime that an agent was assembled. `data` is made only if there are any (EP-14).
    ///
    /// # Errors
    /// Those of `data`.
    pub fn agent_assembled(
        &self,
        data: impl FnOnce() -> Result<Option<String>, Error>,
    ) -> Result<(), Error> {
        let queues = self.listeners(Subscription::Runtime);
        if !queues.is_empty()
            && let Some(data) = data()?
        {
            self.send(&queues, "agent_assembled", &data);
        }
        Ok(())
    }

    fn listeners(&self, to: Subscription) -> Vec<(Arc<Queue>, Arc<EventSource>)> {
        lock(&self.subscribers)
            .iter()
            .filter_map(|(queue, source)| Some((queue.upgrade()?, source.clone())))
            .filter(|(queue, _)| queue.subscribes(to))
            .collect()
    }

    fn send(&self, queues: &[(Arc<Queue>, Arc<EventSource>)], kind: &'static str, data: &str) {
        let at = self.clock.now();
        for (queue, source) in queues {
            let body = Body::Json(data.to_owned());
            queue.push(source, kind, at, body, Weight::Ordinary);
        }
    }
}

fn log_data(warning: Warning, message: &str) -> Map<String, Value> {
    let members = [
        ("level", "warning"),
        ("code", warning.code()),
        ("message", message),
    ];
    let member = |(name, text): (&str, &str)| (name.to_owned(), text.into());
    members.into_iter().map(member).collect()
}
