//! The sandbox that a run has, asked for once, whichever part of the chain needs it first.
//!
//! One for all parts of an agent and of the subagents that it delegates to: what one of them asked for the others use, and the
//! run gives it back at its end, no subagent before (SUB-19). Subagents have the ids of the run that delegates, so they share
//! its entry, whichever of them is there first.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared};

use super::bounded::{BoundedMap, REMEMBERED_RUNS};
use crate::ports::BoxFuture;
use crate::ports::host::{RunContext, RunFacts};
use crate::ports::sandbox::Sandbox;
use crate::protocol::error::Error;

/// How often a run asks for a sandbox that it does not get.
const MAX_FAILURES: u32 = 2;

/// The sandboxes that runs have. As a port it is the one inside, but that a run asks it for a sandbox once.
pub struct RunSandboxes {
    port: Arc<dyn Sandbox>,
    runs: Mutex<BoundedMap<Arc<str>, Held>>,
}

type Asking = BoxFuture<'static, Result<Arc<str>, Error>>;

/// What a run has of a sandbox.
#[derive(Default)]
struct Held {
    /// The asking that is under way, for those who ask at the same time. It is theirs: when the run is cancelled it goes with
    /// them.
    asking: Option<WeakShared<Asking>>,
    /// The id, once it is known.
    id: Option<Arc<str>>,
    /// Whose messages have the id in their state: `None` for the run's, an execution for those of a subagent.
    told: HashSet<Option<Arc<str>>>,
    /// How often it was asked for in vain.
    failures: u32,
    /// The last failure.
    error: Option<Error>,
}

impl RunSandboxes {
    /// Those of `port`. No run has one yet.
    pub fn new(port: Arc<dyn Sandbox>) -> Self {
        RunSandboxes {
            port,
            runs: Mutex::new(BoundedMap::new(REMEMBERED_RUNS)),
        }
    }

    fn runs(&self) -> MutexGuard<'_, BoundedMap<Arc<str>, Held>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sandbox of a run, asked for once.
    ///
    /// # Errors
    /// Whatever keeps it from being there; after some failures a run does not ask again.
    pub(super) async fn of_run(&self, run: &Arc<RunContext>) -> Result<Arc<str>, Error> {
        let (asking, attempt) = {
            let mut runs = self.runs();
            let held = runs.get_or_insert_with(run.run_id.clone(), Held::default);
            if let Some(id) = &held.id {
                return Ok(id.clone());
            }
            if let (MAX_FAILURES.., Some(error)) = (held.failures, &held.error) {
                return Err(error.clone());
            }
            let under_way = held.asking.as_ref().and_then(WeakShared::upgrade);
            let asking = under_way.unwrap_or_else(|| {
                let asking = begin(self.port.clone(), run.clone());
                held.asking = asking.downgrade();
                asking
            });
            (asking, held.failures)
        };
        let answer = asking.await;
        let mut runs = self.runs();
        let held = runs.get_or_insert_with(run.run_id.clone(), Held::default);
        match &answer {
            Ok(id) => held.id = Some(id.clone()),
            // Those who waited for the same asking count it once.
            Err(error) if held.failures == attempt => {
                held.asking = None;
                held.failures += 1;
                held.error = Some(error.clone());
            }
            Err(_) => {}
        }
        answer
    }

    /// Whether the one who asks is to write the id to its state: true once for each run that has one, and for each subagent of
    /// it, since each has a state of its own.
    pub(super) fn tells(&self, run: &RunFacts) -> bool {
        let mut runs = self.runs();
        let held = runs.get_mut(&run.run_id).filter(|held| held.id.is_some());
        held.is_some_and(|held| held.told.insert(execution(run)))
    }

    /// The end of a run, which is forgotten, or of a subagent; the sandbox that is to be given back, if there is one. While a
    /// subagent is at its end others of its run, and the run itself, are not.
    pub(super) fn end(&self, run: &RunFacts) -> Option<Arc<str>> {
        let mut runs = self.runs();
        let of = execution(run);
        if of.is_some() {
            runs.get_mut(&run.run_id)?.told.remove(&of);
            return None;
        }
        runs.remove(&run.run_id)?.id
    }
}

fn execution(run: &RunFacts) -> Option<Arc<str>> {
    let subagent = run.subagent.as_ref()?;
    Some(subagent.execution_id.clone())
}

fn begin(port: Arc<dyn Sandbox>, run: Arc<RunContext>) -> Shared<Asking> {
    let asking: Asking = Box::pin(async move { port.acquire(run).await.map(Arc::from) });
    asking.shared()
}

impl Sandbox for RunSandboxes {
    fn acquire(&self, run: Arc<RunContext>) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move { self.of_run(&run).await.map(|id| id.to_string()) })
    }

    fn release(&self, run: Arc<RunContext>, id: String) -> BoxFuture<'_, Result<(), Error>> {
        self.port.release(run, id)
    }

    fn read_file(
        &self,
        run: Arc<RunContext>,
        id: String,
        path: String,
    ) -> BoxFuture<'_, Result<Option<String>, Error>> {
        self.port.read_file(run, id, path)
    }

    fn write_file(
        &self,
        run: Arc<RunContext>,
        id: String,
        path: String,
        text: String,
    ) -> BoxFuture<'_, Result<(), Error>> {
        self.port.write_file(run, id, path, text)
    }

    fn asks_host(&self) -> bool {
        self.port.asks_host()
    }

    fn has_host_mounts(&self) -> bool {
        self.port.has_host_mounts()
    }
}
