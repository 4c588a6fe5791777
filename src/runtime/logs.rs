//! Warnings: `log` events to the queues that subscribed to them.

use std::sync::{Arc, Mutex, Weak};

use serde_json::{Map, Value};

use super::queue::{Body, EventSource, Queue, Weight};
use super::run::RunShared;
use super::sync::lock;
use crate::ports::clock::Clock;
use crate::protocol::config::Subscription;
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
        if queue.subscribes(Subscription::Log) {
            let mut subscribers = lock(&self.subscribers);
            subscribers.retain(|(queue, _)| queue.strong_count() > 0);
            subscribers.push((Arc::downgrade(queue), Arc::new(EventSource::runtime())));
        }
    }

    /// Warns of something about a run. The message is made only if somebody listens.
    pub fn warn(&self, run: &RunShared, warning: Warning, message: impl FnOnce() -> String) {
        let queues = self.listeners();
        if queues.is_empty() {
            return;
        }
        let mut data = log_data(warning, &message());
        data.insert("run_id".to_owned(), (*run.run_id).into());
        data.insert("thread_id".to_owned(), (*run.thread_id).into());
        self.send(&queues, data);
    }

    /// Tells of warnings that belong to no run.
    pub fn warn_all(&self, warnings: &Warnings) {
        let queues = self.listeners();
        if queues.is_empty() {
            return;
        }
        for (warning, message) in warnings.iter() {
            self.send(&queues, log_data(warning, message));
        }
    }

    fn listeners(&self) -> Vec<(Arc<Queue>, Arc<EventSource>)> {
        lock(&self.subscribers)
            .iter()
            .filter_map(|(queue, source)| Some((queue.upgrade()?, source.clone())))
            .collect()
    }

    fn send(&self, queues: &[(Arc<Queue>, Arc<EventSource>)], data: Map<String, Value>) {
        let data = Value::Object(data).to_string();
        let at = self.clock.now();
        for (queue, source) in queues {
            let body = Body::Json(data.clone());
            queue.push(source, "log", at, body, Weight::Ordinary);
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
