//! The subagents object: one frozen configuration and one controller, which any number of assemblies share.
//!
//! All delegations of the assemblies that name an object compete for its places; two objects never share places, and
//! assemblies without one share those of the process (RT-8).
//!
//! Source: DeerFlow `SubagentRuntime`, RT-1 to RT-23, FA-10 to FA-12.

use std::sync::Arc;

use super::Runtime;
use super::capacity::{Capacity, process_capacity};
use super::life_cycle::{LifeCycle, Service};
use super::sync::{Answer, Wait};
use crate::agent::options::SubagentLimits;
use crate::protocol::assembly::AssemblyConfig;
use crate::protocol::decode::from_text;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::subagents_config::{NewSubagents, SubagentsLife, SubagentsStats};

/// Finds the object behind a handle, for a runtime that knows of none.
pub type FindSubagents<'a> = &'a dyn Fn(u64) -> Result<Subagents, Error>;

/// A subagents object of a runtime. Cloning it clones a reference; it lives as long as an assembly that names it.
#[derive(Clone)]
pub struct Subagents(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    capacity: Arc<Capacity>,
    max_total_per_run: u64,
    life: LifeCycle<BatchService>,
}

/// What takes durable batches and works on them (RT-5). This version has none, and so there is no value of the type: a
/// configuration that asks for one is refused.
#[derive(Debug)]
pub enum BatchService {}

impl Service for BatchService {
    fn start(&self) -> Result<(), Error> {
        match *self {}
    }

    fn stop(&self, _: Wait) -> bool {
        match *self {}
    }
}

impl Subagents {
    /// Its runtime.
    pub fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    /// The controller of all subagents of the assemblies that name the object (RT-4).
    pub fn capacity(&self) -> Arc<Capacity> {
        self.0.capacity.clone()
    }

    /// Most delegations of one run of such an assembly.
    pub fn max_total_per_run(&self) -> u64 {
        self.0.max_total_per_run
    }

    /// What delegation of such an assembly is limited to (RT-10).
    pub fn limits(&self) -> SubagentLimits {
        SubagentLimits {
            max_running: self.0.capacity.config().max_running,
            max_total: self.0.max_total_per_run,
        }
    }

    /// What takes durable batches, while the object is started (RT-7). The tools for batches ask each time that they are called,
    /// so that they are unavailable as soon as a stop begins, and never fall back on anything else (RT-21).
    pub fn batch_submitter(&self) -> Option<&BatchService> {
        self.0.life.started_service()
    }

    /// `fawn_subagents_start`. Again is no error, and after a stop it is started anew (RT-15, RT-19).
    ///
    /// # Errors
    /// `Closed`; those of what is started, and then it stays stopped.
    pub fn start(&self) -> Result<String, Error> {
        self.0.runtime.check_open()?;
        self.0.life.start()?;
        Ok(text(&SubagentsLife { started: true }))
    }

    /// `fawn_subagents_stop`. Again is no error (RT-16). Delegations are not touched: they need the controller alone (RT-23).
    ///
    /// # Errors
    /// `Closed`.
    pub fn stop(&self, wait: Wait) -> Result<Answer<String>, Error> {
        self.0.runtime.check_open()?;
        Ok(match self.0.life.stop(wait) {
            true => Answer::Done(text(&SubagentsLife { started: false })),
            false => Answer::TimedOut,
        })
    }

    /// `fawn_subagents_stats` (RT-9).
    pub fn stats(&self) -> String {
        let now = self.0.capacity.snapshot();
        text(&SubagentsStats {
            max_running: now.max_running,
            running: now.running,
            max_queued: now.max_queued,
            queued: now.queued,
            admission_policy: now.admission_policy,
            max_total_per_run: self.0.max_total_per_run,
            started: self.0.life.is_started(),
        })
    }

    /// Checks that an assembly may be bound to the object now: one with durable batches must be started, since the tools for them
    /// are made along with the assembly (RT-20).
    fn check_ready(&self) -> Result<(), Error> {
        if self.0.life.has_service() && self.batch_submitter().is_none() {
            return Err(Error::new(
                ErrorCode::AssemblyInvalid,
                "the subagents object has durable batches and is not started: call fawn_subagents_start first",
            ));
        }
        Ok(())
    }
}

impl Runtime {
    /// `fawn_subagents_new`.
    ///
    /// # Errors
    /// Those of decoding and of [`NewSubagents::resolve`]; `Closed`.
    pub fn new_subagents(&self, json: &str) -> Result<Subagents, Error> {
        self.check_open()?;
        let config: NewSubagents = from_text(json)?;
        let app = self.app_config();
        let own = config.resolve(&app.subagent_runtime, app.subagents.max_total_per_run)?;
        Ok(Subagents(Arc::new(Inner {
            runtime: self.clone(),
            capacity: Capacity::new(own.config),
            max_total_per_run: own.max_total_per_run,
            life: LifeCycle::new(None),
        })))
    }

    /// The object that an assembly names, ready to be bound to.
    ///
    /// # Errors
    /// `Handle` for one that there is not or that is another runtime's, `AssemblyInvalid` for one that has to be started first; at
    /// `/subagent_runtime`.
    pub(super) fn named_subagents(
        &self,
        config: &AssemblyConfig,
        find: FindSubagents<'_>,
    ) -> Result<Option<Subagents>, Error> {
        let Some(handle) = config.subagent_runtime() else {
            return Ok(None);
        };
        let found = find(handle).and_then(|found| {
            if !found.0.runtime.is(self) {
                return Err(Error::new(
                    ErrorCode::Handle,
                    "the subagents object belongs to another runtime",
                ));
            }
            found.check_ready()?;
            Ok(Some(found))
        });
        found.map_err(|error| error.below("/subagent_runtime"))
    }
}

/// What delegation of a direct agent is limited to: by its object, else by the process, six in a run (RT-10).
pub fn direct_limits(subagents: Option<&Subagents>) -> SubagentLimits {
    match subagents {
        Some(subagents) => subagents.limits(),
        None => SubagentLimits {
            max_running: process_capacity().config().max_running,
            max_total: DIRECT_TOTAL,
        },
    }
}

/// Delegations of one run of a direct agent without an object (RT-10).
const DIRECT_TOTAL: u64 = 6;

fn text(answer: &impl serde::Serialize) -> String {
    serde_json::to_string(answer).expect("numbers, names and booleans are JSON")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::super::sync::block_on;
    use super::*;

    fn runtime(config: Value) -> Runtime {
        let mut config = config;
        config["workers"] = 0.into();
        Runtime::new(&config.to_string()).unwrap()
    }

    fn stats(subagents: &Subagents) -> Value {
        serde_json::from_str(&subagents.stats()).unwrap()
    }

    #[test]
    fn rt_6_an_object_has_what_the_configuration_says_and_its_own() {
        let runtime = runtime(json!({
            "subagent_runtime": {"max_running": 5, "max_queued": 2, "admission_policy": "reject"},
            "subagents": {"max_total_per_run": 9},
        }));
        let plain = runtime.new_subagents("{}").unwrap();
        assert_eq!(
            stats(&plain),
            json!({
                "max_running": 5, "running": 0, "max_queued": 2, "queued": 0, "admission_policy": "reject",
                "max_total_per_run": 9, "started": false,
            })
        );
        let own = r#"{"config": {"max_running": 2}, "max_total_per_run": 50}"#;
        let own = runtime.new_subagents(own).unwrap();
        assert_eq!(stats(&own)["max_running"], 2);
        assert_eq!(stats(&own)["max_queued"], 2);
        assert_eq!(own.max_total_per_run(), 50);
        // RT-4, RT-8: a controller each.
        assert!(!Arc::ptr_eq(&plain.capacity(), &own.capacity()));
        assert!(Arc::ptr_eq(&own.capacity(), &own.clone().capacity()));
    }

    #[test]
    fn rt_15_16_19_starting_and_stopping_again_is_no_error() {
        let subagents = runtime(json!({})).new_subagents("{}").unwrap();
        let zero = Wait::For(Duration::ZERO);
        let stopped = Ok(Answer::Done(r#"{"started":false}"#.to_owned()));
        assert_eq!(subagents.stop(zero), stopped);
        for _ in 0..2 {
            for _ in 0..2 {
                assert_eq!(subagents.start().unwrap(), r#"{"started":true}"#);
                assert_eq!(stats(&subagents)["started"], true);
            }
            for _ in 0..2 {
                assert_eq!(subagents.stop(Wait::Forever), stopped);
                assert_eq!(stats(&subagents)["started"], false);
            }
        }
    }

    #[test]
    fn rt_7_without_batches_nothing_takes_them_started_or_not() {
        let subagents = runtime(json!({})).new_subagents("{}").unwrap();
        assert!(subagents.batch_submitter().is_none() && subagents.check_ready().is_ok());
        subagents.start().unwrap();
        assert!(subagents.batch_submitter().is_none());
    }

    #[test]
    fn rt_9_23_the_figures_follow_the_slots_and_a_stop_takes_none_away() {
        let subagents = runtime(json!({})).new_subagents("{}").unwrap();
        let capacity = subagents.capacity();
        subagents.start().unwrap();
        // A free slot is there at once.
        let before = block_on(capacity.acquire()).unwrap();
        subagents.stop(Wait::Forever).unwrap();
        let after = block_on(capacity.acquire()).unwrap();
        assert_eq!(stats(&subagents)["running"], 2);
        drop((before, subagents.clone()));
        assert_eq!(stats(&subagents)["running"], 1);
        drop(after);
        assert_eq!(stats(&subagents)["running"], 0);
    }

    #[test]
    fn after_a_shutdown_all_but_the_figures_is_closed() {
        let runtime = runtime(json!({}));
        let subagents = runtime.new_subagents("{}").unwrap();
        runtime.shutdown(Wait::Forever);
        let closed = |error: Error| error.code == ErrorCode::Closed;
        assert!(subagents.start().is_err_and(closed));
        assert!(subagents.stop(Wait::Forever).is_err_and(closed));
        assert!(runtime.new_subagents("{}").err().is_some_and(closed));
        assert_eq!(stats(&subagents)["running"], 0);
    }
}
