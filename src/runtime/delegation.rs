//! Runs subagents: a delegation is a run of its own machine by the same driver, inside of the `task` call that asks for it.
//!
//! Nothing is spawned: the child's steps are polled where its call is. Whoever drops the call (a cancel of the run, a shutdown)
//! drops the child, its open host calls, its place and its turn in the queue with it. A child that waits for a place is a
//! waiter in a list, and what it was told.
//!
//! Source: DeerFlow's subagent executor and `task` tool, SUB-19 to SUB-42, RT-42 to RT-44.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value};

use super::Runtime;
use super::capacity::{Capacity, CapacityError, Slot, process_capacity};
use super::events::RunEvents;
use super::family::{Child, Family};
use super::run::RunShared;
use super::switch::Switch;
use super::sync::lock;
use super::task_events::{CancelledBy, TaskEvents};
use super::thread::OpenThread;
use super::worker::RunTask;
use crate::agent::step::Outcome;
use crate::ports::BoxFuture;
use crate::ports::call_key::AskedCalls;
use crate::ports::delegate::{Delegate, Delegation, DelegationEnd, SubagentRun};
use crate::ports::host::RunFacts;
use crate::ports::signals::Halt;
use crate::protocol::error::ErrorCode;
use crate::protocol::message::Kind;
use crate::protocol::run::{Durability, RunRequest};
use crate::state::Overlay;
use crate::subagents::result::{RunEnd, cancelled, extract, failed, timed_out};

/// What of a run's context its subagents see (SUB-19, SUB-20). Secrets are not among it, and neither is anything that selects a
/// checkpoint (SUB-22).
const IDENTITY: [&str; 7] = [
    "user_id",
    "user_role",
    "oauth_provider",
    "oauth_id",
    "channel_user_id",
    "is_internal",
    "authz_attributes",
];

/// Says in a context that the run is a subagent's.
const IS_SUBAGENT: &str = "is_subagent";

/// Model call and tool calls: the steps of a turn.
const STEPS_PER_TURN: u64 = 2;

/// The subagents of one assembly, and the places that they run in.
pub struct Delegations {
    runtime: Runtime,
    family: Family,
    /// `None`: the places of the process.
    capacity: Option<Arc<Capacity>>,
}

impl Delegations {
    /// Subagents of `family`, in the places of `capacity`; `None` for those of the process (RT-30).
    pub fn new(runtime: Runtime, family: Family, capacity: Option<Arc<Capacity>>) -> Self {
        Delegations {
            runtime,
            family,
            capacity,
        }
    }

    /// Begins an execution.
    ///
    /// # Errors
    /// The end of one that there is nobody for.
    fn begin(
        &self,
        delegation: &Delegation,
    ) -> Result<(Execution, Arc<Child>), Box<DelegationEnd>> {
        let run = &delegation.run;
        let parent = lock(&self.runtime.0.runs).get(&run.run_id).cloned();
        let events = parent
            .as_ref()
            .and_then(|parent| parent.events.get()?.upgrade());
        // Only a run in flight calls tools.
        let (Some(parent), Some(events)) = (parent, events) else {
            return Err(Box::new(failed("the run that delegates is not in flight")));
        };
        match self.family.child(&delegation.subagent) {
            Ok(child) => {
                let model = Some(child.model_name.clone());
                let execution = Execution::begin(parent, events, delegation, model);
                Ok((execution, child))
            }
            Err(error) => {
                let execution = Execution::begin(parent, events, delegation, None);
                Err(Box::new(execution.end(failed(error.message))))
            }
        }
    }

    /// Waits for a place and runs the child in it.
    async fn lasting(
        &self,
        execution: &Execution,
        child: &Arc<Child>,
        delegation: Box<Delegation>,
    ) -> DelegationEnd {
        // Dropped after the child, whose teardown it covers (RT-34).
        let _place = tokio::select! {
            biased;
            () = execution.switch.cancelled() => return cancelled(),
            place = self.place() => match place {
                Ok(place) => place,
                Err(error) => return DelegationEnd {
                    admission_failure: true,
                    ..failed(error.to_string())
                },
            },
        };
        // On the heap from here on: what waits for a place stays small.
        Box::pin(self.working(execution, child, delegation)).await
    }

    async fn place(&self) -> Result<Slot, CapacityError> {
        let capacity = match &self.capacity {
            Some(capacity) => capacity.clone(),
            None => process_capacity(),
        };
        capacity.acquire().await
    }

    async fn working(
        &self,
        execution: &Execution,
        child: &Arc<Child>,
        delegation: Box<Delegation>,
    ) -> DelegationEnd {
        let inner = &self.runtime.0;
        let caller = delegation.run.clone();
        let facts = &caller.facts;
        // SUB-22: what identifies it to the outside is the run on whose behalf it works.
        let parent = &execution.parent;
        let run = Arc::new(RunShared::with_switch(
            parent.run_id.clone(),
            parent.thread_id.clone(),
            execution.switch.clone(),
        ));
        let steps = child.definition.max_turns.saturating_mul(STEPS_PER_TURN);
        let task = RunTask {
            shared: run.clone(),
            assembly: child.assembly.clone(),
            thread: Arc::new(OpenThread::of_subagent(
                run.thread_id.clone(),
                inner.services.clone(),
            )),
            predecessor: None,
            events: Arc::new(RunEvents::of_task(execution.task.clone(), run)),
            calls: inner.calls.clone(),
            ids: inner.services.ids.clone(),
            request: RunRequest {
                configurable: identity(&facts.configurable),
                context: context(facts),
                // Nothing is stored, but each step is told of when it is done.
                durability: Durability::Sync,
                recursion_limit: Some(u32::try_from(steps).unwrap_or(u32::MAX)),
                ..RunRequest::default()
            },
            subagent: Some(execution.subagent(&delegation)),
            input: Some(delegation.input()),
            secrets: None,
        };
        let outcome = task.outcome().await;
        match outcome.error {
            // What the agent did with that would be for nobody either: its run ends, and its call stays open.
            Some(error) if error.code == ErrorCode::QueueClosed => {
                caller
                    .facts
                    .signals
                    .halt(execution.task.task_id(), Halt::Failed(error));
                pending().await
            }
            _ => end_of(&task, child, &outcome),
        }
    }
}

impl Delegate for Delegations {
    fn names(&self) -> Vec<String> {
        self.family.names()
    }

    fn unavailable(&self, name: &str) -> Option<String> {
        self.family.unavailable(name)
    }

    fn delegate(&self, delegation: Delegation) -> BoxFuture<'_, DelegationEnd> {
        // By reference from here on: each of the futures inside would keep a copy for as long as it lasts.
        let delegation = Box::new(delegation);
        Box::pin(async move {
            let (execution, child) = match self.begin(&delegation) {
                Ok(begun) => begun,
                Err(end) => return *end,
            };
            let timeout = child.definition.timeout;
            let lasting = self.lasting(&execution, &child, delegation);
            let end = match tokio::time::timeout(timeout, lasting).await {
                Ok(end) => end,
                Err(_) => timed_out(timeout),
            };
            execution.end(end)
        })
    }
}

/// One execution, from its beginning to its one end: whichever way it ends, its host hears of it and its tokens count once
/// (SUB-32, SUB-55).
struct Execution {
    parent: Arc<RunShared>,
    switch: Arc<Switch>,
    task: Arc<TaskEvents>,
    has_ended: bool,
}

impl Execution {
    fn begin(
        parent: Arc<RunShared>,
        events: Arc<RunEvents>,
        delegation: &Delegation,
        model_name: Option<String>,
    ) -> Self {
        let task_id: Arc<str> = delegation.task_id.as_str().into();
        let switch = Arc::default();
        parent.begin_task(&task_id, &switch);
        let task = Arc::new(TaskEvents::new(events, task_id, model_name));
        task.started(&delegation.subagent, &delegation.description);
        Execution {
            parent,
            switch,
            task,
            has_ended: false,
        }
    }

    /// What it is to the parts of the subagent's agent.
    fn subagent(&self, delegation: &Delegation) -> Arc<SubagentRun> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(SubagentRun {
            execution_id: NEXT.fetch_add(1, Ordering::Relaxed).to_string().into(),
            message_id: delegation.message_id.clone(),
            task_id: self.task.task_id().clone(),
            name: delegation.subagent.as_str().into(),
            asked: AskedCalls::default(),
        })
    }

    /// The first end counts, and there is no second: it takes the execution.
    fn end(mut self, end: DelegationEnd) -> DelegationEnd {
        self.note(end)
    }

    fn note(&mut self, mut end: DelegationEnd) -> DelegationEnd {
        self.has_ended = true;
        end.usage = self.task.usage();
        end.model_name = self.task.model_name().map(str::to_owned);
        self.parent.end_task(&self.switch, end.usage.as_ref());
        self.task.ended(&end, || self.cancelled_by());
        end
    }

    /// Only the host ends a delegation by itself; whatever else drops it is about its run.
    fn cancelled_by(&self) -> CancelledBy {
        match self.switch.is_cancelled() {
            true => CancelledBy::Task(self.switch.reason()),
            false => CancelledBy::Run(self.parent.switch.reason()),
        }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if !self.has_ended {
            self.note(cancelled());
        }
    }
}

/// What came of a child's run.
fn end_of(task: &RunTask, child: &Child, outcome: &Outcome) -> DelegationEnd {
    task.thread.with_state(|state| {
        let overlay = Overlay::new();
        let view = state.view(&overlay);
        let last_ai = view
            .messages()
            .rev()
            .find(|message| message.kind() == Kind::Ai);
        extract(RunEnd {
            status: outcome.status,
            error: outcome.error.as_ref(),
            is_cancelled: task.shared.switch.is_cancelled(),
            pause: outcome.cancel_reason.as_deref(),
            stop_reason: task.shared.signals.stop_reason(),
            last_ai,
            last: view.last(),
            max_turns: child.definition.max_turns,
        })
    })
}

fn identity(members: &Map<String, Value>) -> Map<String, Value> {
    let mut kept: Map<String, Value> = members
        .iter()
        .filter(|(name, _)| IDENTITY.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(is_internal) = kept.get_mut("is_internal") {
        *is_internal = Value::Bool(*is_internal == Value::Bool(true));
    }
    if kept
        .get("authz_attributes")
        .is_some_and(|attributes| !attributes.is_object())
    {
        kept.shift_remove("authz_attributes");
    }
    kept
}

/// The context of a subagent's run.
fn context(facts: &RunFacts) -> Map<String, Value> {
    let mut context = identity(&facts.context);
    context.insert(IS_SUBAGENT.to_owned(), Value::Bool(true));
    context
}
