//! Configuration of what happens when a model call fails: attempts, waits and their bounds.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{MAX_WAIT_MS, within};
use crate::protocol::error::Error;

/// Most attempts after the first that a configuration may ask for.
pub const MAX_RETRIES: u32 = 100;

/// How a failed call of a model is tried again, as far as its configuration says. Members of the model's own configuration,
/// whatever its provider.
///
/// Tried again is what may pass: 408, 409, 425, 429 and 5xx answers, connections that break, timeouts, streams that end
/// early or are garbled, and what the endpoint itself marks with `x-should-retry`. Waits grow: `retry_base_delay_ms` doubles
/// with each attempt up to `retry_cap_delay_ms`, less a random quarter at most; where the endpoint says how long to wait
/// (`retry-after-ms`, `retry-after`), that is done exactly.
///
/// Where the model is that of a lead agent, the section `llm_call` says what is not said here, and DeerFlow's rules hold: see
/// [`RetryRules::ByReason`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryConfig {
    /// Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients; in lead
    /// agents one less than `llm_call.retry_max_attempts`.
    #[serde(
        default,
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "u32", range(max = 100))]
    pub max_retries: Option<u32>,
    /// The first wait, in milliseconds. Default 500; in lead agents `llm_call.retry_base_delay_ms`.
    #[serde(
        default,
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "u64", range(max = 86_400_000))]
    pub retry_base_delay_ms: Option<u64>,
    /// The longest wait of our own choosing, in milliseconds. Default 8,000; in lead agents `llm_call.retry_cap_delay_ms`.
    #[serde(
        default,
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "u64", range(max = 86_400_000))]
    pub retry_cap_delay_ms: Option<u64>,
    /// The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
    /// at all: to come earlier would be in vain. Default 120,000.
    #[serde(
        default,
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "u64", range(max = 86_400_000))]
    pub max_retry_after_ms: Option<u64>,
    /// No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
    /// Default 1,800,000.
    #[serde(
        default,
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "u64", range(min = 1, max = 86_400_000))]
    pub retry_deadline_ms: Option<u64>,
    /// Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
    /// streamed of the message is void. Default false: the call fails, and the part is kept.
    #[serde(
        default,
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "bool")]
    pub retry_after_partial: Option<bool>,
}

/// A member that is there has a value: null is none.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// How a failed call of a model is tried again: everything settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts, the first included; at least 1.
    pub max_attempts: u32,
    /// See [`RetryConfig::retry_base_delay_ms`].
    pub base_delay_ms: u64,
    /// See [`RetryConfig::retry_cap_delay_ms`].
    pub cap_delay_ms: u64,
    /// See [`RetryConfig::max_retry_after_ms`].
    pub max_retry_after_ms: u64,
    /// See [`RetryConfig::retry_deadline_ms`].
    pub deadline_ms: u64,
    /// See [`RetryConfig::retry_after_partial`].
    pub after_partial: bool,
    /// What may pass, and how waits grow.
    pub rules: RetryRules,
}

/// What is tried again, and how waits grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryRules {
    /// What the provider marks as passing. Waits double.
    Marked,
    /// DeerFlow's, for lead agents (MW-LLM-1 to 3): what its class says may pass
    /// ([`FailureReason`](crate::protocol::model_failure::FailureReason)). A wait is drawn between the base and three times the
    /// wait before it, up to the cap. Streams that fall silent and rates that grow too fast get two attempts at most; the
    /// latter begin with a base of their own.
    ByReason {
        /// The first wait where a rate grew too fast, in milliseconds.
        burst_base_delay_ms: u64,
    },
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            max_attempts: 3,
            base_delay_ms: 500,
            cap_delay_ms: 8_000,
            max_retry_after_ms: 120_000,
            deadline_ms: 1_800_000,
            after_partial: false,
            rules: RetryRules::Marked,
        }
    }
}

impl RetryConfig {
    /// Names of the members, which are taken out of a model's configuration before its provider reads the rest.
    pub const MEMBERS: &[&str] = &[
        "max_retries",
        "retry_base_delay_ms",
        "retry_cap_delay_ms",
        "max_retry_after_ms",
        "retry_deadline_ms",
        "retry_after_partial",
    ];

    /// What the model says, and `otherwise` where it says nothing. What is said counts, also if it is what would hold anyway
    /// (L7).
    pub fn policy(&self, otherwise: &RetryPolicy) -> RetryPolicy {
        RetryPolicy {
            max_attempts: self
                .max_retries
                .map_or(otherwise.max_attempts, |retries| retries.saturating_add(1)),
            base_delay_ms: self.retry_base_delay_ms.unwrap_or(otherwise.base_delay_ms),
            cap_delay_ms: self.retry_cap_delay_ms.unwrap_or(otherwise.cap_delay_ms),
            max_retry_after_ms: self
                .max_retry_after_ms
                .unwrap_or(otherwise.max_retry_after_ms),
            deadline_ms: self.retry_deadline_ms.unwrap_or(otherwise.deadline_ms),
            after_partial: self.retry_after_partial.unwrap_or(otherwise.after_partial),
            rules: otherwise.rules,
        }
    }

    /// Checks bounds.
    ///
    /// # Errors
    /// `OutOfRange` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        let most_retries = u64::from(MAX_RETRIES);
        for (path, value, least, most) in [
            (
                "/max_retries",
                self.max_retries.map(u64::from),
                0,
                most_retries,
            ),
            (
                "/retry_base_delay_ms",
                self.retry_base_delay_ms,
                0,
                MAX_WAIT_MS,
            ),
            (
                "/retry_cap_delay_ms",
                self.retry_cap_delay_ms,
                0,
                MAX_WAIT_MS,
            ),
            (
                "/max_retry_after_ms",
                self.max_retry_after_ms,
                0,
                MAX_WAIT_MS,
            ),
            ("/retry_deadline_ms", self.retry_deadline_ms, 1, MAX_WAIT_MS),
        ] {
            if let Some(value) = value {
                within(path, value, least, most)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_list_of_members_is_whole() {
        let schema = schemars::schema_for!(RetryConfig).to_value();
        let members: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(members, RetryConfig::MEMBERS);
    }

    #[test]
    fn an_empty_object_says_nothing_and_null_is_no_word() {
        let empty: RetryConfig = serde_json::from_value(json!({})).unwrap();
        assert_eq!(empty, RetryConfig::default());
        assert!(empty.validate().is_ok());
        assert_eq!(json!(empty), json!({}));
        assert_eq!(
            empty.policy(&RetryPolicy::default()),
            RetryPolicy::default()
        );
        assert!(serde_json::from_value::<RetryConfig>(json!({"max_retries": null})).is_err());
    }

    #[test]
    fn l7_what_a_model_says_counts_also_where_it_is_the_default() {
        let otherwise = RetryPolicy {
            max_attempts: 9,
            base_delay_ms: 1,
            cap_delay_ms: 2,
            rules: RetryRules::ByReason {
                burst_base_delay_ms: 7,
            },
            ..RetryPolicy::default()
        };
        let config: RetryConfig =
            serde_json::from_value(json!({"max_retries": 2, "retry_base_delay_ms": 500})).unwrap();
        let expected = RetryPolicy {
            max_attempts: 3,
            base_delay_ms: 500,
            ..otherwise.clone()
        };
        assert_eq!(config.policy(&otherwise), expected);
    }

    #[test]
    fn bounds_are_refused_with_their_path() {
        for (member, value) in [
            ("max_retries", 101),
            ("retry_base_delay_ms", 86_400_001),
            ("retry_cap_delay_ms", 86_400_001),
            ("max_retry_after_ms", 86_400_001),
            ("retry_deadline_ms", 0),
        ] {
            let config: Value = json!({ member: value });
            let config: RetryConfig = serde_json::from_value(config).unwrap();
            let path = config.validate().unwrap_err().path.unwrap();
            assert_eq!(path, format!("/{member}"));
        }
    }
}
