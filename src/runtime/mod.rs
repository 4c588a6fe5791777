//! Placeholder of the runtime's facade: enough to exercise handles, queues and wake-ups through the C ABI.

pub mod guarded;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json;

/// How long a call may wait.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// Until there is an answer.
    Forever,
    /// At most this long; zero does not wait.
    For(Duration),
}

/// How a call went that may also end without what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<T> {
    /// Here it is.
    Done(T),
    /// The time was up first.
    TimedOut,
    /// There will be no more.
    Closed,
    /// Somebody interrupted the wait.
    Interrupted,
    /// What was asked about is over.
    Gone,
}

/// Parses an options object whose members are all in `known` or begin with `x-`.
fn options(text: &str, known: &[&str]) -> Result<Value, Error> {
    let value = json::parse(text)?;
    let Some(members) = value.as_object() else {
        return Err(Error::at(ErrorCode::WrongType, "", "an object is needed"));
    };
    match members
        .keys()
        .find(|name| !name.starts_with("x-") && !known.contains(&name.as_str()))
    {
        Some(name) => Err(Error::at(
            ErrorCode::UnknownMember,
            format!("/{}", json::pointer_token(name)),
            format!("{name:?} is not known here"),
        )),
        None => Ok(value),
    }
}

#[derive(Default)]
struct Shared {
    closed: AtomicBool,
    queues: Mutex<Vec<Queue>>,
}

/// Process-level object.
#[derive(Clone)]
pub struct Runtime(Arc<Shared>);

impl Runtime {
    /// Makes one.
    pub fn new(json: &str) -> Result<Runtime, Error> {
        options(json, &["database", "testing", "workers"])?;
        Ok(Runtime(Arc::default()))
    }
    fn open(&self) -> Result<(), Error> {
        match self.0.closed.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorCode::Closed, "the runtime was shut down")),
            false => Ok(()),
        }
    }
    /// Takes an op.
    pub fn submit(&self, json: &str) -> Result<String, Error> {
        self.open()?;
        options(json, &["op"])?;
        Ok("{}".to_owned())
    }
    /// Facts.
    pub fn stats(&self, live: &str) -> String {
        format!("{{\"handles\":{live}}}")
    }
    /// Ends everything.
    pub fn shutdown(&self, _wait: Wait) -> Answer<String> {
        self.close();
        Answer::Done("{}".to_owned())
    }
    /// Begins to end everything.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        let queues = std::mem::take(&mut *lock(&self.0.queues));
        for queue in queues {
            queue.close();
        }
    }
    /// Makes an assembly.
    pub fn new_assembly(&self, json: &str) -> Result<Assembly, Error> {
        self.open()?;
        options(json, &["entry", "model", "tools"])?;
        Ok(Assembly(self.clone()))
    }
    /// Opens a thread.
    pub fn open_thread(&self, json: &str) -> Result<Thread, Error> {
        self.open()?;
        options(json, &["thread_id"])?;
        Ok(Thread(self.clone()))
    }
    /// Makes a queue.
    pub fn new_queue(&self, json: &str) -> Result<Queue, Error> {
        self.open()?;
        options(json, &["subscribe", "lossy"])?;
        let queue = Queue(Arc::default());
        lock(&self.0.queues).push(queue.clone());
        Ok(queue)
    }
    /// Starts a run, which ends at once.
    pub fn start_run(
        &self,
        _assembly: &Assembly,
        _thread: &Thread,
        queue: Option<&Queue>,
        json: &str,
    ) -> Result<Run, Error> {
        self.open()?;
        options(json, &["input", "run_id"])?;
        if let Some(queue) = queue {
            queue.push("{\"seq\":1,\"type\":\"run_end\"}");
        }
        Ok(Run(self.clone()))
    }
    /// Adds to a host call.
    pub fn emit(&self, call_id: u64, json: &str) -> Result<Answer<()>, Error> {
        self.finish(call_id, json)
    }
    /// Answers a host call.
    pub fn finish(&self, _call_id: u64, json: &str) -> Result<Answer<()>, Error> {
        options(json, &["ok", "error", "delta"])?;
        Ok(Answer::Gone)
    }
}

/// A composed agent.
#[derive(Clone)]
pub struct Assembly(Runtime);

impl Assembly {
    /// Its runtime.
    pub fn runtime(&self) -> &Runtime {
        &self.0
    }
    /// Its facts.
    pub fn descriptor(&self) -> Result<String, Error> {
        self.0.open().map(|()| "null".to_owned())
    }
}

/// A conversation.
#[derive(Clone)]
pub struct Thread(Runtime);

impl Thread {
    /// Writes.
    pub fn update(&self, json: &str) -> Result<String, Error> {
        self.state(json)
    }
    /// Reads.
    pub fn state(&self, json: &str) -> Result<String, Error> {
        self.0.open()?;
        options(json, &["channels", "checkpoint_id", "limit", "messages"])?;
        Ok("{}".to_owned())
    }
    /// Reads checkpoints.
    pub fn history(&self, json: &str) -> Result<String, Error> {
        self.state(json)
    }
    /// Lets go.
    pub fn close(&self) {}
}

#[derive(Default)]
struct Events {
    waiting: VecDeque<String>,
    interrupted: bool,
    closed: bool,
}

#[derive(Default)]
struct QueueShared {
    events: Mutex<Events>,
    hook: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
    changed: Condvar,
}

/// Events towards the host.
#[derive(Clone)]
pub struct Queue(Arc<QueueShared>);

impl Queue {
    fn push(&self, event: &str) {
        let first = {
            let mut events = lock(&self.0.events);
            events.waiting.push_back(event.to_owned());
            events.waiting.len() == 1
        };
        self.0.changed.notify_all();
        if first && let Some(hook) = &*lock(&self.0.hook) {
            hook();
        }
    }
    /// Takes what is there.
    pub fn take(&self, wait: Wait, max_events: u32) -> Result<Answer<String>, Error> {
        let until = match wait {
            Wait::Forever => None,
            Wait::For(duration) => Some(Instant::now() + duration),
        };
        let mut events = lock(&self.0.events);
        loop {
            if std::mem::take(&mut events.interrupted) {
                return Ok(Answer::Interrupted);
            }
            if !events.waiting.is_empty() {
                let count = match max_events {
                    0 => events.waiting.len(),
                    most => events.waiting.len().min(most as usize),
                };
                let taken: Vec<String> = events.waiting.drain(..count).collect();
                return Ok(Answer::Done(format!("[{}]", taken.join(","))));
            }
            if events.closed {
                return Ok(Answer::Closed);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            events = match left {
                Some(Duration::ZERO) => return Ok(Answer::TimedOut),
                Some(left) => {
                    self.0
                        .changed
                        .wait_timeout(events, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self
                    .0
                    .changed
                    .wait(events)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
    /// Ends one wait.
    pub fn interrupt(&self) {
        lock(&self.0.events).interrupted = true;
        self.0.changed.notify_all();
    }
    /// Sets the hook.
    pub fn set_wakeup(&self, hook: Option<Box<dyn Fn() + Send + Sync>>) {
        *lock(&self.0.hook) = hook;
    }
    /// No more events.
    pub fn close(&self) {
        lock(&self.0.events).closed = true;
        self.0.changed.notify_all();
    }
}

/// One execution.
#[derive(Clone)]
pub struct Run(Runtime);

impl Run {
    /// Takes an op.
    pub fn submit(&self, json: &str) -> Result<String, Error> {
        self.0.submit(json)
    }
    /// Waits for the result.
    pub fn wait(&self, _wait: Wait) -> Result<Answer<String>, Error> {
        Ok(Answer::Done("{\"status\":\"success\"}".to_owned()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
