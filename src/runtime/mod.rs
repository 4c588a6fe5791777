//! Runs machines: the facade that the C boundary talks to, and everything that waits.

mod assembly;
mod calls;
pub mod capacity;
mod delegation;
mod direct;
mod driver;
mod events;
mod family;
mod goal_loop;
pub mod guarded;
mod ids;
mod in_flight;
pub mod inject;
mod lead;
mod life_cycle;
mod logs;
mod model_chain;
mod models;
mod queue;
mod retry;
mod run;
mod stores;
mod subagents;
mod switch;
mod sync;
mod task_events;
mod thread;
mod thread_goal;
mod worker;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

pub use self::assembly::Assembly;
pub use self::queue::Wakeup;
pub use self::subagents::{FindSubagents, Subagents};
pub use self::sync::{Answer, Wait};

use self::calls::Calls;
use self::driver::Driver;
use self::events::RunEvents;
use self::ids::Ids;
use self::in_flight::SharedInFlight;
use self::lead::{LeadScope, check_schemas};
use self::logs::Logs;
use self::model_chain::CallPolicy;
use self::retry::Jitter;
use self::run::RunShared;
use self::sync::{block_on, lock};
use self::thread::{OpenThread, ThreadServices, busy, decode_update};
use self::worker::RunTask;
use crate::adapters::system_clock::{FixedClock, SystemClock};
use crate::ports::checkpoint::DynCheckpointStore;
use crate::ports::clock::Clock;
use crate::ports::model::DynModelProvider;
use crate::protocol::app_config::AppConfig;
use crate::protocol::config::{ModelRef, QueueConfig, RuntimeConfig};
use crate::protocol::decode::{from_text, from_value, tagged};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::parse;
use crate::protocol::model_entry::ModelEntry;
use crate::protocol::run::{MultitaskStrategy, RunOp, RunRequest, RunStatus, ThreadOpen};
use crate::protocol::runtime_op::ResetAgent;
use crate::protocol::time::Timestamp;
use crate::state::channels::Channel;
use crate::state::update::{StateUpdate, Write};
use crate::tools::arguments::ArgumentChecks;

/// A runtime: configuration, store, models, capacity, and whatever runs.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    driver: Driver,
    services: Arc<ThreadServices>,
    models: HashMap<String, ModelEntry>,
    jitter: Jitter,
    /// The places of model calls of lead agents.
    in_flight: SharedInFlight,
    /// What lead agents share.
    lead: Arc<LeadScope>,
    checks: Arc<ArgumentChecks>,
    calls: Arc<Calls>,
    threads: Mutex<OpenThreads>,
    queues: Mutex<Vec<Weak<queue::Queue>>>,
    runs: Mutex<HashMap<Arc<str>, Arc<RunShared>>>,
    /// Told when a run leaves `runs`.
    run_left: tokio::sync::Notify,
    run_left_blocking: std::sync::Condvar,
    runs_started: AtomicU64,
    /// Runs that a shutdown has cancelled.
    runs_shut_down: AtomicU64,
    logs: Arc<Logs>,
    closed: AtomicBool,
}

/// The threads that are open, by id. Entries of closed ones are swept when they may be half of the table.
#[derive(Default)]
struct OpenThreads {
    open: HashMap<Arc<str>, Weak<OpenThread>>,
    sweep_at: usize,
}

impl OpenThreads {
    fn sweep(&mut self) {
        if self.open.len() >= self.sweep_at {
            self.open.retain(|_, thread| thread.strong_count() > 0);
            self.sweep_at = 2 * self.open.len() + 64;
        }
    }

    fn count(&self) -> usize {
        self.open
            .values()
            .filter(|thread| thread.strong_count() > 0)
            .count()
    }
}

impl Runtime {
    /// A runtime as configured. Starts no thread and opens no file.
    ///
    /// # Errors
    /// Those of decoding and of [`RuntimeConfig::validate`].
    pub fn new(json: &str) -> Result<Runtime, Error> {
        Runtime::build(json, |config, is_driven| {
            stores::open(&config.database, is_driven)
        })
    }

    /// A runtime over a store of the caller's. For Rust code: tests of what a failing store does.
    ///
    /// # Errors
    /// As [`Runtime::new`].
    pub fn with_store(json: &str, store: Arc<dyn DynCheckpointStore>) -> Result<Runtime, Error> {
        Runtime::build(json, |_, _| Ok(store))
    }

    fn build(
        json: &str,
        open: impl FnOnce(&RuntimeConfig, bool) -> Result<Arc<dyn DynCheckpointStore>, Error>,
    ) -> Result<Runtime, Error> {
        let (config, references) = RuntimeConfig::read(json, &|name| std::env::var(name).ok())?;
        let testing = config.testing.clone().unwrap_or_default();
        let clock: Arc<dyn Clock> = match testing.clock.as_deref().and_then(Timestamp::parse) {
            Some(time) => Arc::new(FixedClock(time)),
            None => Arc::new(SystemClock),
        };
        let driver = Driver::new(config.worker_threads());
        let checks = Arc::<ArgumentChecks>::default();
        check_schemas(&checks, &config.app.host_tools())?;
        let store = open(&config, driver.is_driven())?;
        let is_driven = driver.is_driven();
        let in_flight = SharedInFlight::default();
        if config.app.llm_call.max_concurrent_calls > 0 {
            in_flight.resolve(config.app.llm_call.max_concurrent_calls);
        }
        Ok(Runtime(Arc::new(Inner {
            driver,
            services: Arc::new(ThreadServices {
                store,
                clock: clock.clone(),
                ids: Ids::new(testing.ids),
            }),
            models: config
                .app
                .models
                .iter()
                .map(|model| (model.name.clone(), model.model.clone()))
                .collect(),
            in_flight,
            lead: Arc::new(LeadScope::new(config.app, references, is_driven)),
            checks,
            jitter: match config.testing {
                Some(_) => Jitter::Fixed,
                None => Jitter::Random,
            },
            calls: Arc::default(),
            threads: Mutex::default(),
            queues: Mutex::default(),
            runs: Mutex::default(),
            run_left: tokio::sync::Notify::new(),
            run_left_blocking: std::sync::Condvar::new(),
            runs_started: AtomicU64::new(0),
            runs_shut_down: AtomicU64::new(0),
            logs: Arc::new(Logs::new(clock)),
            closed: AtomicBool::new(false),
        })))
    }

    /// `fawn_runtime_submit`: rarely used operations, told apart by `op`.
    ///
    /// # Errors
    /// Those of decoding; `Unsupported` for operations that this version does not have; those of the operation.
    pub fn submit(&self, json: &str) -> Result<String, Error> {
        const OPS: &[&str] = &["delete_thread", "reset_agent", "reload_skills"];
        self.check_open()?;
        let (op, rest) = tagged(parse(json)?, "op", OPS)?;
        match op.as_str() {
            "delete_thread" => self.delete_thread(rest),
            "reset_agent" => {
                let which: ResetAgent = from_value(rest)?;
                self.0.lead.reset_agent(&which);
                Ok("{}".to_owned())
            }
            _ => {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct ReloadSkills {}
                let ReloadSkills {} = from_value(rest)?;
                self.0.lead.reload_skills();
                Ok("{}".to_owned())
            }
        }
    }

    /// `fawn_runtime_stats`: what is alive. `live` is a JSON array of the host's handles.
    pub fn stats(&self, live: &str) -> String {
        let inner = &self.0;
        let queues = lock(&inner.queues)
            .iter()
            .filter(|queue| queue.strong_count() > 0)
            .count();
        let threads = lock(&inner.threads).count();
        format!(
            "{{\"runs\":{{\"active\":{},\"started\":{}}},\"threads\":{threads},\"queues\":{queues},\
             \"open_calls\":{},\"workers\":{},\"handles\":{live}}}",
            inner.running().len(),
            inner.runs_started.load(Ordering::Relaxed),
            inner.calls.count(),
            inner.driver.workers(),
        )
    }

    /// `fawn_runtime_shutdown`: cancels every run, fails open host calls, waits for the runs to end, closes the queues.
    /// The answer says how many runs shutting down has cancelled, over all calls.
    pub fn shutdown(&self, wait: Wait) -> Answer<String> {
        let inner = &self.0;
        let (_, cancelled) = inner.begin_closing("the runtime was shut down");
        inner.runs_shut_down.fetch_add(cancelled, Ordering::Relaxed);
        let deadline = wait.deadline();
        let done = if inner.driver.is_driven() && !lock(&inner.runs).is_empty() {
            let all = async {
                loop {
                    let notified = inner.run_left.notified();
                    if lock(&inner.runs).is_empty() {
                        return;
                    }
                    notified.await;
                }
            };
            match wait {
                Wait::Forever => inner.driver.drive(all).is_ok(),
                Wait::For(Duration::ZERO) => {
                    let is_down = || lock(&inner.runs).is_empty().then_some(());
                    inner.driver.turn(is_down).is_ok_and(|down| down.is_some())
                }
                Wait::For(limit) => {
                    let limited = async { tokio::time::timeout(limit, all).await.is_ok() };
                    inner.driver.drive(limited).unwrap_or(false)
                }
            }
        } else {
            let mut runs = lock(&inner.runs);
            while !runs.is_empty() {
                let left =
                    deadline.map(|at| at.saturating_duration_since(std::time::Instant::now()));
                if left.is_some_and(|left| left.is_zero()) {
                    break;
                }
                runs = match left {
                    None => inner
                        .run_left_blocking
                        .wait(runs)
                        .unwrap_or_else(|e| e.into_inner()),
                    Some(left) => {
                        let waited = inner.run_left_blocking.wait_timeout(runs, left);
                        waited.unwrap_or_else(|e| e.into_inner()).0
                    }
                };
            }
            runs.is_empty()
        };
        if !done {
            return Answer::TimedOut;
        }
        inner.close_queues();
        inner.driver.close();
        let cancelled = inner.runs_shut_down.load(Ordering::Relaxed);
        Answer::Done(json!({ "runs_cancelled": cancelled }).to_string())
    }

    /// What freeing does: like [`Runtime::shutdown`], but nobody waits. Safe from any OS thread, our own included.
    pub fn close(&self) {
        let inner = &self.0;
        let (running, _) = inner.begin_closing("the runtime was freed");
        if inner.driver.is_driven() || running == 0 {
            inner.finish_closing();
        }
        // With workers the last run to leave does the rest.
    }

    /// The model that a configuration stands for, with its retries and fallbacks. For Rust code: tests and benchmarks.
    ///
    /// # Errors
    /// Those of decoding; `UnknownModel`, `AssemblyInvalid`.
    pub fn model(&self, json: &str) -> Result<Arc<dyn DynModelProvider>, Error> {
        let model: ModelEntry = from_text(json)?;
        model.validate()?;
        let model = ModelRef::Inline(Box::new(model));
        let policy = CallPolicy::plain(self.0.jitter);
        model_chain::chain(&model, &self.0.models, policy).map(|chain| chain.model)
    }

    /// `fawn_thread_open`.
    ///
    /// # Errors
    /// Those of decoding and of the store; `Closed`.
    pub fn open_thread(&self, json: &str) -> Result<Thread, Error> {
        self.check_open()?;
        let request: ThreadOpen = from_text(json)?;
        request.validate()?;
        let id: Arc<str> = match request.thread_id {
            Some(id) => id.into(),
            None => self.0.services.ids.thread(),
        };
        // The table is held while the store is read, so that two opens of one thread share what they read.
        let mut threads = lock(&self.0.threads);
        let thread = match threads.open.get(&id).and_then(Weak::upgrade) {
            Some(thread) => thread,
            None => {
                let thread = Arc::new(OpenThread::open(id.clone(), self.0.services.clone())?);
                threads.sweep();
                threads.open.insert(id, Arc::downgrade(&thread));
                thread
            }
        };
        Ok(Thread {
            runtime: self.clone(),
            thread,
        })
    }

    /// `fawn_queue_new`.
    ///
    /// # Errors
    /// Those of decoding; `OutOfRange`, `Closed`.
    pub fn new_queue(&self, json: &str) -> Result<Queue, Error> {
        self.check_open()?;
        let config: QueueConfig = from_text(json)?;
        config.validate()?;
        let queue = Arc::new(queue::Queue::new(&config));
        self.0.logs.add(&queue);
        let mut queues = lock(&self.0.queues);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&queue));
        Ok(Queue {
            runtime: self.clone(),
            queue,
        })
    }

    /// `fawn_run_start`.
    ///
    /// # Errors
    /// Those of decoding; `Handle` for objects of another runtime; `NoQueue`, `ThreadBusy`, `Conflict`, `Closed`.
    pub fn start_run(
        &self,
        assembly: &Assembly,
        thread: &Thread,
        queue: Option<&Queue>,
        json: &str,
    ) -> Result<Run, Error> {
        self.check_open()?;
        if !self.is(assembly.runtime())
            || !self.is(&thread.runtime)
            || queue.is_some_and(|queue| !self.is(&queue.runtime))
        {
            return Err(Error::new(
                ErrorCode::Handle,
                "assembly, thread and queue of a run must belong to one runtime",
            ));
        }
        let mut request: RunRequest = from_text(json)?;
        request.validate()?;
        let secrets = request.take_secrets()?;
        let input = match request.input.take() {
            None | Some(Value::Null) => None,
            Some(input) => Some(checked_input(input)?),
        };
        if queue.is_none() && assembly.assembly.needs_host {
            return Err(Error::new(
                ErrorCode::NoQueue,
                "this assembly asks the host, so its runs need a queue",
            ));
        }
        let open = &thread.thread;
        let mut holder = lock(&open.run);
        let predecessor = holder.clone().filter(|run| !run.has_ended());
        if predecessor.is_some() && request.multitask_strategy == MultitaskStrategy::Reject {
            return Err(busy(&open.id));
        }
        let run_id: Arc<str> = match request.run_id.take() {
            Some(id) => id.into(),
            None => self.0.services.ids.run(),
        };
        let shared = Arc::new(RunShared::new(run_id.clone(), open.id.clone()));
        {
            let mut runs = lock(&self.0.runs);
            // A shutdown that has begun since looks for runs to cancel under this lock, and would miss this one.
            self.check_open()?;
            if runs.contains_key(&run_id) {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    "/run_id",
                    format!("a run {run_id:?} is in flight"),
                ));
            }
            runs.insert(run_id.clone(), shared.clone());
        }
        // Only now, since a call that fails must change nothing.
        if let Some(running) = &predecessor {
            running
                .switch
                .cancel(Some("a newer run took the thread".to_owned()));
        }
        let events = Arc::new(RunEvents::new(
            queue.map(|queue| queue.queue.clone()),
            self.0.services.clock.clone(),
            self.0.logs.clone(),
            shared.clone(),
            &request,
        ));
        let _ = shared.events.set(Arc::downgrade(&events));
        let task = RunTask {
            shared: shared.clone(),
            assembly: assembly.assembly.clone(),
            thread: open.clone(),
            predecessor,
            events: events.clone(),
            calls: self.0.calls.clone(),
            ids: self.0.services.ids.clone(),
            request,
            input,
            secrets,
            subagent: None,
        };
        let ending = Ending {
            inner: self.0.clone(),
            shared: shared.clone(),
            events,
            done: false,
        };
        let spawned = self.0.driver.spawn(async move {
            let result = task.run().await;
            ending.end(&result);
        });
        if let Err(error) = spawned {
            self.0.leave(&shared);
            return Err(error);
        }
        *holder = Some(shared.clone());
        self.0.runs_started.fetch_add(1, Ordering::Relaxed);
        Ok(Run {
            runtime: self.clone(),
            shared,
        })
    }

    /// `fawn_call_emit`.
    ///
    /// # Errors
    /// `Handle` for an id that was never given; those of decoding; `Behind`.
    pub fn emit(&self, call_id: u64, json: &str) -> Result<Answer<()>, Error> {
        self.0.calls.emit(call_id, json)
    }

    /// `fawn_call_finish`.
    ///
    /// # Errors
    /// `Handle` for an id that was never given; those of decoding. The call stays open then.
    pub fn finish(&self, call_id: u64, json: &str) -> Result<Answer<()>, Error> {
        self.0.calls.finish(call_id, json)
    }

    /// Whether both are one runtime.
    fn is(&self, other: &Runtime) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The sections of its configuration.
    fn app_config(&self) -> &AppConfig {
        self.0.lead.app()
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.0.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorCode::Closed, "the runtime was shut down"));
        }
        Ok(())
    }

    fn delete_thread(&self, rest: Value) -> Result<String, Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Delete {
            thread_id: String,
        }
        let Delete { thread_id } = from_value(rest)?;
        let threads = lock(&self.0.threads);
        let open = threads.open.get(thread_id.as_str()).and_then(Weak::upgrade);
        let holder = open.as_ref().map(|thread| lock(&thread.run));
        if holder
            .as_ref()
            .and_then(|run| run.as_ref())
            .is_some_and(|run| !run.has_ended())
        {
            return Err(busy(&thread_id));
        }
        block_on(self.0.services.store.delete(&thread_id))?;
        if let Some(thread) = &open {
            thread.distrust();
        }
        Ok("{}".to_owned())
    }
}

impl Inner {
    /// A run is over. The last one of a closed runtime closes the rest.
    fn leave(&self, run: &Arc<RunShared>) {
        let is_last = {
            let mut runs = lock(&self.runs);
            if runs
                .get(&run.run_id)
                .is_some_and(|known| Arc::ptr_eq(known, run))
            {
                runs.remove(&run.run_id);
            }
            runs.is_empty()
        };
        self.run_left.notify_waiters();
        self.run_left_blocking.notify_all();
        if is_last && self.closed.load(Ordering::Acquire) {
            self.close_queues();
        }
    }

    /// From here on everything new is refused. Ends the open host calls, and cancels the runs: how many have not ended, and
    /// how many of them were not cancelled before.
    fn begin_closing(&self, reason: &str) -> (usize, u64) {
        self.closed.store(true, Ordering::Release);
        // First, so that every open call is told of as one that the runtime ended.
        self.calls.close();
        let running = self.running();
        let cancelled = running
            .iter()
            .filter(|run| run.switch.cancel(Some(reason.to_owned())))
            .count();
        (running.len(), cancelled as u64)
    }

    /// The runs that have not ended.
    fn running(&self) -> Vec<Arc<RunShared>> {
        lock(&self.runs)
            .values()
            .filter(|run| !run.has_ended())
            .cloned()
            .collect()
    }

    fn live_queues(&self) -> Vec<Arc<queue::Queue>> {
        lock(&self.queues)
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    fn close_queues(&self) {
        for queue in self.live_queues() {
            queue.close();
        }
    }

    fn finish_closing(&self) {
        self.close_queues();
        self.driver.close();
    }
}

/// Ends a run exactly once, also when its task is dropped because the runtime goes away.
struct Ending {
    inner: Arc<Inner>,
    shared: Arc<RunShared>,
    events: Arc<RunEvents>,
    done: bool,
}

impl Ending {
    fn end(mut self, result: &str) {
        self.announce(result);
    }

    fn announce(&mut self, result: &str) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        // In this order: who hears of the end may start the next run, and finds the result, at once. The queues of a closed
        // runtime close after the last event.
        self.shared.mark_ended();
        self.shared.set_result(result.into());
        self.events.run_end(result);
        self.inner.leave(&self.shared);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.done {
            let result = json!({
                "run_id": &*self.shared.run_id,
                "thread_id": &*self.shared.thread_id,
                "status": RunStatus::Interrupted.name(),
                "cancel_reason": "the runtime was freed",
            });
            self.announce(&result.to_string());
        }
    }
}

/// Decodes the input of a run. Its messages are coerced here, so that the caller hears of a bad one at once.
fn checked_input(input: Value) -> Result<StateUpdate, Error> {
    let mut update = decode_update(input, "/input")?;
    for (channel, write) in &mut update.writes {
        if *channel == Channel::Messages
            && let Write::Value(value) = write
        {
            if value.is_null() {
                return Err(Error::at(
                    ErrorCode::NullWrite,
                    "/input/messages",
                    "messages is null; leave it out, or give a list",
                ));
            }
            let messages = crate::state::coerce::write(value)
                .map_err(|error| error.below("/input/messages"))?;
            *write = Write::Messages(messages);
        }
    }
    Ok(update)
}

/// An open thread of a runtime.
#[derive(Clone)]
pub struct Thread {
    runtime: Runtime,
    thread: Arc<OpenThread>,
}

impl Thread {
    /// `fawn_thread_update`.
    ///
    /// # Errors
    /// Those of decoding and of the fold, at the path of the fault; `ThreadBusy`; those of the store; `Closed`.
    pub fn update(&self, json: &str) -> Result<String, Error> {
        self.runtime.check_open()?;
        self.thread.update(json)
    }

    /// `fawn_thread_state`.
    ///
    /// # Errors
    /// Those of decoding; `UnknownChannel`, `UnknownCheckpoint`; those of the store; `Closed`.
    pub fn state(&self, json: &str) -> Result<String, Error> {
        self.runtime.check_open()?;
        self.thread.state(json)
    }

    /// `fawn_thread_history`.
    ///
    /// # Errors
    /// Those of decoding; `UnknownChannel`, `UnknownCheckpoint`; those of the store; `Closed`.
    pub fn history(&self, json: &str) -> Result<String, Error> {
        self.runtime.check_open()?;
        self.thread.history(json)
    }

    /// `fawn_thread_goal`.
    ///
    /// # Errors
    /// Those of decoding, at the path of the fault; `ThreadBusy`, `Conflict`; those of the store; `Closed`.
    pub fn goal(&self, json: &str) -> Result<String, Error> {
        self.runtime.check_open()?;
        self.thread.goal(json)
    }

    /// What freeing does: lets go. A run on the thread goes on.
    pub fn close(&self) {}

    /// Id of the thread.
    pub fn id(&self) -> &str {
        &self.thread.id
    }
}

/// A queue of a runtime.
#[derive(Clone)]
pub struct Queue {
    runtime: Runtime,
    queue: Arc<queue::Queue>,
}

impl Queue {
    /// `fawn_queue_take`: up to `max_events` events (0 for all that wait) as a JSON array.
    ///
    /// # Errors
    /// `Closed` in driven mode after a shutdown while nothing waits.
    pub fn take(&self, wait: Wait, max_events: u32) -> Result<Answer<String>, Error> {
        match self.queue.take(&self.runtime.0.driver, wait, max_events) {
            Err(error) if error.code == ErrorCode::Closed => Ok(Answer::Closed),
            taken => taken,
        }
    }

    /// `fawn_queue_interrupt`.
    pub fn interrupt(&self) {
        self.queue.interrupt();
    }

    /// `fawn_queue_set_wakeup`. When this returns, the previous hook does not run and will not run again.
    pub fn set_wakeup(&self, hook: Option<Wakeup>) {
        self.queue.set_wakeup(hook);
    }

    /// What freeing does: fails its open host calls and drops what waits. Runs go on.
    pub fn close(&self) {
        self.queue.discard();
        self.runtime.0.calls.fail_queue(&self.queue);
    }
}

/// A run of a runtime.
#[derive(Clone)]
pub struct Run {
    runtime: Runtime,
    shared: Arc<RunShared>,
}

impl Run {
    /// `fawn_run_submit`.
    ///
    /// # Errors
    /// Those of decoding; `Unsupported`.
    pub fn submit(&self, json: &str) -> Result<String, Error> {
        match RunOp::decode(parse(json)?)? {
            RunOp::Cancel { reason } => {
                let is_over = self.shared.has_ended();
                if !is_over {
                    self.shared.switch.cancel(reason);
                }
                Ok(json!({ "cancelled": !is_over }).to_string())
            }
            RunOp::CancelTask { task_id, reason } => {
                let cancelled = self.shared.cancel_task(&task_id, reason);
                Ok(json!({ "cancelled": cancelled }).to_string())
            }
            RunOp::Status => Ok(json!({
                "run_id": &*self.shared.run_id,
                "thread_id": &*self.shared.thread_id,
                "ended": self.shared.has_ended(),
            })
            .to_string()),
        }
    }

    /// `fawn_run_wait`: the result.
    ///
    /// # Errors
    /// None besides what the answer says.
    pub fn wait(&self, wait: Wait) -> Result<Answer<String>, Error> {
        match self.shared.wait(&self.runtime.0.driver, wait) {
            Err(error) if error.code == ErrorCode::Closed => Ok(Answer::Closed),
            waited => waited,
        }
    }

    /// Id of the run.
    pub fn id(&self) -> &str {
        &self.shared.run_id
    }
}
