//! Sections that bound what a run does: tokens, loops, cut replies, model calls.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::feature::{Feature, OpaqueSettings, between, least, not_blank, within};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;
use crate::protocol::model::{MAX_RETRIES, MAX_WAIT_MS, RetryPolicy, RetryRules};

/// Counts tokens (MW-TKU).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenUsageConfig {
    /// Whether it does. Default true.
    pub enabled: Option<bool>,
}

impl Feature for TokenUsageConfig {
    const ON_BY_DEFAULT: bool = true;
    fn switch(&self) -> Option<bool> {
        self.enabled
    }
}

/// Bounds the tokens of a run (MW-TBG).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenBudgetConfig {
    /// Whether it does. Default false.
    pub enabled: Option<bool>,
    /// Most tokens, read and written. Default 200000.
    #[schemars(range(min = 1000))]
    pub max_tokens: u64,
    /// Most tokens read.
    #[schemars(range(min = 1))]
    pub max_input_tokens: Option<u64>,
    /// Most tokens written.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u64>,
    /// The part after which the model is warned, 0 to 1. Default 0.8.
    #[schemars(range(min = 0, max = 1))]
    pub warn_threshold: f64,
    /// The part after which the run is stopped, 0 to 1 and not below the warning. Default 1.
    #[schemars(range(min = 0, max = 1))]
    pub hard_stop_threshold: f64,
}

impl Default for TokenBudgetConfig {
    fn default() -> Self {
        TokenBudgetConfig {
            enabled: None,
            max_tokens: 200_000,
            max_input_tokens: None,
            max_output_tokens: None,
            warn_threshold: 0.8,
            hard_stop_threshold: 1.0,
        }
    }
}

impl Feature for TokenBudgetConfig {
    const ON_BY_DEFAULT: bool = false;
    fn switch(&self) -> Option<bool> {
        self.enabled
    }
}

impl TokenBudgetConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        within("/max_tokens", self.max_tokens, 1_000, u64::MAX)?;
        least("/max_input_tokens", self.max_input_tokens, 1)?;
        least("/max_output_tokens", self.max_output_tokens, 1)?;
        between("/warn_threshold", self.warn_threshold, 0.0, 1.0)?;
        between("/hard_stop_threshold", self.hard_stop_threshold, 0.0, 1.0)?;
        if self.hard_stop_threshold < self.warn_threshold {
            let text = "hard_stop_threshold must not be below warn_threshold";
            return Err(Error::at(ErrorCode::Conflict, "/hard_stop_threshold", text));
        }
        Ok(())
    }
}

/// Stops models that repeat themselves (MW-LOOP).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoopDetectionConfig {
    /// Whether it does. Default true.
    pub enabled: Option<bool>,
    /// Replies with the same calls before the model is warned. Default 3.
    #[schemars(range(min = 1))]
    pub warn_threshold: u64,
    /// Replies with the same calls before it is stopped. Default 5.
    #[schemars(range(min = 1))]
    pub hard_limit: u64,
    /// Replies that are looked at. Default 20.
    #[schemars(range(min = 1))]
    pub window_size: u64,
    /// Runs that are remembered. Default 100.
    #[schemars(range(min = 1))]
    pub max_tracked_threads: u64,
    /// Calls of one tool before the model is warned. Default 30.
    #[schemars(range(min = 1))]
    pub tool_freq_warn: u64,
    /// Calls of one tool before it is stopped. Default 50.
    #[schemars(range(min = 1))]
    pub tool_freq_hard_limit: u64,
    /// The last two, by tool.
    pub tool_freq_overrides: BTreeMap<String, ToolFrequencyConfig>,
}

/// How often one tool may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolFrequencyConfig {
    /// Calls before the model is warned.
    #[schemars(range(min = 1))]
    pub warn: u64,
    /// Calls before it is stopped; not below `warn`.
    #[schemars(range(min = 1))]
    pub hard_limit: u64,
}

impl Default for LoopDetectionConfig {
    fn default() -> Self {
        LoopDetectionConfig {
            enabled: None,
            warn_threshold: 3,
            hard_limit: 5,
            window_size: 20,
            max_tracked_threads: 100,
            tool_freq_warn: 30,
            tool_freq_hard_limit: 50,
            tool_freq_overrides: BTreeMap::new(),
        }
    }
}

impl Feature for LoopDetectionConfig {
    const ON_BY_DEFAULT: bool = true;
    fn switch(&self) -> Option<bool> {
        self.enabled
    }
}

impl LoopDetectionConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        within("/window_size", self.window_size, 1, u64::MAX)?;
        within(
            "/max_tracked_threads",
            self.max_tracked_threads,
            1,
            u64::MAX,
        )?;
        ordered(
            ("/warn_threshold", self.warn_threshold),
            ("/hard_limit", self.hard_limit),
        )?;
        ordered(
            ("/tool_freq_warn", self.tool_freq_warn),
            ("/tool_freq_hard_limit", self.tool_freq_hard_limit),
        )?;
        for (tool, frequency) in &self.tool_freq_overrides {
            let checked = ordered(
                ("/warn", frequency.warn),
                ("/hard_limit", frequency.hard_limit),
            );
            let at = format!("/tool_freq_overrides/{}", pointer_token(tool));
            checked.map_err(|error| error.below(&at))?;
        }
        Ok(())
    }
}

/// Two bounds from 1, of which the second is not below the first.
fn ordered(warn: (&str, u64), stop: (&str, u64)) -> Result<(), Error> {
    within(warn.0, warn.1, 1, u64::MAX)?;
    within(stop.0, stop.1, 1, u64::MAX)?;
    if stop.1 < warn.1 {
        let text = format!("{} is below the warning at {}", stop.1, warn.1);
        return Err(Error::at(ErrorCode::Conflict, stop.0, text));
    }
    Ok(())
}

/// Recognises replies that a provider cut for safety (MW-SAF).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SafetyFinishReasonConfig {
    /// Whether it does. Default true.
    pub enabled: Option<bool>,
    /// What recognises them, as DeerFlow names the classes. Default: all that there are; an empty list is refused.
    #[schemars(length(min = 1))]
    pub detectors: Option<Vec<SafetyDetectorConfig>>,
}

/// Something that recognises a cut reply.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SafetyDetectorConfig {
    /// How DeerFlow names its class.
    #[serde(rename = "use")]
    #[schemars(length(min = 1))]
    pub class: String,
    /// Its settings.
    #[serde(default)]
    pub config: OpaqueSettings,
}

impl Feature for SafetyFinishReasonConfig {
    const ON_BY_DEFAULT: bool = true;
    fn switch(&self) -> Option<bool> {
        self.enabled
    }
}

impl SafetyFinishReasonConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let Some(detectors) = &self.detectors else {
            return Ok(());
        };
        if detectors.is_empty() {
            let text = "give at least one, or enabled: false";
            return Err(Error::at(ErrorCode::OutOfRange, "/detectors", text));
        }
        for (place, detector) in detectors.iter().enumerate() {
            not_blank(&format!("/detectors/{place}/use"), &detector.class)?;
        }
        Ok(())
    }
}

/// How many model calls run at once, and how they are tried again, in lead agents (MW-LLM). What a model's own configuration
/// says about its retries wins.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LlmCallConfig {
    /// Most at once in a runtime, 0 for any number; calls beyond it wait in the order in which they came. It bounds attempts:
    /// who waits to try again holds no place, while a host model does until it has answered, also if it waits for other runs
    /// of the runtime. The first number that the runtime or one of its lead agents has counts for as long as the runtime lives.
    /// Default 0.
    pub max_concurrent_calls: u64,
    /// Attempts, the first included, 1 to 101. Default 3.
    #[schemars(range(min = 1, max = 101))]
    pub retry_max_attempts: u64,
    /// The first wait, in milliseconds; later ones are drawn between it and three times the one before. Default 1000.
    #[schemars(range(max = 86_400_000))]
    pub retry_base_delay_ms: u64,
    /// The longest wait of our own choosing, in milliseconds. Default 8000.
    #[schemars(range(max = 86_400_000))]
    pub retry_cap_delay_ms: u64,
    /// The first wait where an endpoint is called too fast, in milliseconds. Default 5000.
    #[schemars(range(max = 86_400_000))]
    pub burst_retry_base_delay_ms: u64,
}

impl Default for LlmCallConfig {
    fn default() -> Self {
        LlmCallConfig {
            max_concurrent_calls: 0,
            retry_max_attempts: 3,
            retry_base_delay_ms: 1_000,
            retry_cap_delay_ms: 8_000,
            burst_retry_base_delay_ms: 5_000,
        }
    }
}

impl Feature for LlmCallConfig {
    const ON_BY_DEFAULT: bool = true;
    fn switch(&self) -> Option<bool> {
        None
    }
}

impl LlmCallConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let most = u64::from(MAX_RETRIES) + 1;
        within("/retry_max_attempts", self.retry_max_attempts, 1, most)?;
        for (path, delay) in [
            ("/retry_base_delay_ms", self.retry_base_delay_ms),
            ("/retry_cap_delay_ms", self.retry_cap_delay_ms),
            ("/burst_retry_base_delay_ms", self.burst_retry_base_delay_ms),
        ] {
            within(path, delay, 0, MAX_WAIT_MS)?;
        }
        Ok(())
    }

    /// How calls of a lead agent's models are tried again where the models say nothing of their own.
    pub fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy {
            max_attempts: u32::try_from(self.retry_max_attempts).unwrap_or(u32::MAX),
            base_delay_ms: self.retry_base_delay_ms,
            cap_delay_ms: self.retry_cap_delay_ms,
            rules: RetryRules::ByReason {
                burst_base_delay_ms: self.burst_retry_base_delay_ms,
            },
            ..RetryPolicy::default()
        }
    }
}

/// Stops calling a model that keeps failing (MW-LLM-6). Each assembly counts for itself.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CircuitBreakerConfig {
    /// Failures in a row that open it: calls that failed for good for a reason that passes. Default 5.
    #[schemars(range(min = 1))]
    pub failure_threshold: u64,
    /// How long it stays open, in seconds; then one call is let through to see. Default 60.
    pub recovery_timeout_sec: u64,
}

impl Default for CircuitBreakerConfig {
    fn default() -> Self {
        CircuitBreakerConfig {
            failure_threshold: 5,
            recovery_timeout_sec: 60,
        }
    }
}

impl Feature for CircuitBreakerConfig {
    const ON_BY_DEFAULT: bool = true;
    fn switch(&self) -> Option<bool> {
        None
    }
}

impl CircuitBreakerConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        within("/failure_threshold", self.failure_threshold, 1, u64::MAX)
    }
}
