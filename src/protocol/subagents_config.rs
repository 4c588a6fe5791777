//! A subagents object as JSON: its configuration, which takes what it does not say from its runtime's, and its figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::app_config::{AdmissionPolicy, MAX_TOTAL_SUBAGENTS, SubagentRuntimeConfig};
use super::error::{Error, ErrorCode};

/// Configuration of a subagents object (RT-1, RT-6). What is absent is as the configuration of the runtime has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewSubagents {
    /// How many subagents run at once. Default: the runtime's section `subagent_runtime`.
    pub config: Option<CapacityConfig>,
    /// Most delegations of one run of an assembly that names the object, 1 to 50, unless the request says otherwise: the option
    /// `max_total_subagents` of a lead agent comes first, more or less (RT-40). Default: the runtime's
    /// `subagents.max_total_per_run`.
    #[schemars(range(min = 1, max = 50))]
    pub max_total_per_run: Option<u64>,
    /// Durable batches. Not available in this version.
    #[schemars(with = "()")]
    pub batch_config: Option<Value>,
}

/// How many subagents of a subagents object run at once. What is absent is as the runtime's section `subagent_runtime` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CapacityConfig {
    /// How many run at once, 1 to 64.
    #[schemars(range(min = 1, max = 64))]
    pub max_running: Option<u64>,
    /// How many may wait, 0 to 10000.
    #[schemars(range(max = 10_000))]
    pub max_queued: Option<u64>,
    /// What happens when all places are taken.
    pub admission_policy: Option<AdmissionPolicy>,
    /// Longest wait, in seconds, 1 to 86400.
    #[schemars(range(min = 1, max = 86_400))]
    pub queue_timeout_seconds: Option<u64>,
}

/// A configuration to which nothing is to be added (RT-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSubagents {
    /// How many subagents run at once.
    pub config: SubagentRuntimeConfig,
    /// Most delegations of one run, 1 to 50.
    pub max_total_per_run: u64,
}

impl NewSubagents {
    /// Fills in what is absent from a runtime's section `subagent_runtime` and its `subagents.max_total_per_run`, and checks the
    /// whole (RT-2).
    ///
    /// # Errors
    /// `Unsupported` at `/batch_config`; `OutOfRange` at the member.
    pub fn resolve(
        &self,
        section: &SubagentRuntimeConfig,
        max_total_per_run: u64,
    ) -> Result<ResolvedSubagents, Error> {
        if self.batch_config.is_some() {
            return Err(Error::at(
                ErrorCode::Unsupported,
                "/batch_config",
                "durable batches are not available in this version",
            ));
        }
        let own = self.config.clone().unwrap_or_default();
        let config = SubagentRuntimeConfig {
            max_running: own.max_running.unwrap_or(section.max_running),
            max_queued: own.max_queued.unwrap_or(section.max_queued),
            admission_policy: own.admission_policy.unwrap_or(section.admission_policy),
            queue_timeout_seconds: own
                .queue_timeout_seconds
                .unwrap_or(section.queue_timeout_seconds),
        };
        config.validate().map_err(|error| error.below("/config"))?;
        let max_total_per_run = self.max_total_per_run.unwrap_or(max_total_per_run);
        if !(1..=MAX_TOTAL_SUBAGENTS).contains(&max_total_per_run) {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/max_total_per_run",
                format!("{max_total_per_run} is not within 1 to {MAX_TOTAL_SUBAGENTS}"),
            ));
        }
        Ok(ResolvedSubagents {
            config,
            max_total_per_run,
        })
    }

    /// Checks it by itself: a runtime's configuration is sound before an object is made with it.
    ///
    /// # Errors
    /// Those of [`NewSubagents::resolve`].
    pub fn validate(&self) -> Result<(), Error> {
        self.resolve(&SubagentRuntimeConfig::default(), 1).map(drop)
    }
}

/// The subagents of an object at this moment (RT-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SubagentsStats {
    /// How many may run at once.
    pub max_running: u64,
    /// How many do.
    pub running: u64,
    /// How many may wait.
    pub max_queued: u64,
    /// How many do.
    pub queued: u64,
    /// What happens when all places are taken.
    pub admission_policy: AdmissionPolicy,
    /// Most delegations of one run.
    pub max_total_per_run: u64,
    /// Whether the object was started and not stopped since.
    pub started: bool,
}

/// What starting and stopping answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SubagentsLife {
    /// Whether the object is started now.
    pub started: bool,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::super::decode::from_value;
    use super::*;

    fn resolve(value: Value) -> Result<ResolvedSubagents, Error> {
        let section = SubagentRuntimeConfig {
            max_running: 7,
            max_queued: 8,
            admission_policy: AdmissionPolicy::Reject,
            queue_timeout_seconds: 9,
        };
        from_value::<NewSubagents>(value)?.resolve(&section, 11)
    }

    #[test]
    fn rt_6_what_is_absent_is_the_runtimes() {
        let whole = |running, queued, policy, seconds, total| ResolvedSubagents {
            config: SubagentRuntimeConfig {
                max_running: running,
                max_queued: queued,
                admission_policy: policy,
                queue_timeout_seconds: seconds,
            },
            max_total_per_run: total,
        };
        let of_runtime = whole(7, 8, AdmissionPolicy::Reject, 9, 11);
        for absent in [
            json!({}),
            json!({"config": null, "max_total_per_run": null, "batch_config": null}),
            json!({"config": {}, "x-note": 1}),
        ] {
            assert_eq!(resolve(absent).unwrap(), of_runtime);
        }
        assert_eq!(
            resolve(json!({"config": {"max_running": 1}, "max_total_per_run": 50})).unwrap(),
            whole(1, 8, AdmissionPolicy::Reject, 9, 50)
        );
        let all = json!({"max_running": 64, "max_queued": 0, "admission_policy": "queue", "queue_timeout_seconds": 86_400});
        assert_eq!(
            resolve(json!({"config": all})).unwrap(),
            whole(64, 0, AdmissionPolicy::Queue, 86_400, 11)
        );
    }

    #[test]
    fn rt_2_what_is_out_of_bounds_is_refused_at_its_place() {
        for (value, code, path) in [
            (
                json!({"max_total_per_run": 0}),
                ErrorCode::OutOfRange,
                "/max_total_per_run",
            ),
            (
                json!({"max_total_per_run": 51}),
                ErrorCode::OutOfRange,
                "/max_total_per_run",
            ),
            (
                json!({"max_total_per_run": true}),
                ErrorCode::WrongType,
                "/max_total_per_run",
            ),
            (
                json!({"config": {"max_running": 0}}),
                ErrorCode::OutOfRange,
                "/config/max_running",
            ),
            (
                json!({"config": {"max_running": 65}}),
                ErrorCode::OutOfRange,
                "/config/max_running",
            ),
            (
                json!({"config": {"max_running": true}}),
                ErrorCode::WrongType,
                "/config/max_running",
            ),
            (
                json!({"config": {"max_queued": 10_001}}),
                ErrorCode::OutOfRange,
                "/config/max_queued",
            ),
            (
                json!({"config": {"queue_timeout_seconds": 0}}),
                ErrorCode::OutOfRange,
                "/config/queue_timeout_seconds",
            ),
            (
                json!({"config": {"admission_policy": "drop"}}),
                ErrorCode::UnknownVariant,
                "/config/admission_policy",
            ),
            (
                json!({"config": {"running": 1}}),
                ErrorCode::UnknownMember,
                "/config/running",
            ),
            (
                json!({"batch_repository": {}}),
                ErrorCode::UnknownMember,
                "/batch_repository",
            ),
        ] {
            let error = resolve(value.clone()).expect_err(&value.to_string());
            assert_eq!(
                (error.code, error.path.as_deref()),
                (code, Some(path)),
                "{value}"
            );
        }
    }

    #[test]
    fn any_batch_configuration_is_told_to_be_unavailable() {
        for batches in [
            json!({}),
            json!({"enabled": false}),
            json!(false),
            json!([1]),
        ] {
            let error =
                resolve(json!({"batch_config": batches, "max_total_per_run": 0})).unwrap_err();
            assert_eq!(error.code, ErrorCode::Unsupported);
            assert_eq!(error.path.as_deref(), Some("/batch_config"));
            assert_eq!(
                error.message,
                "durable batches are not available in this version"
            );
        }
    }
}
