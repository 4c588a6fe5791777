//! Configuration of what happens when a model call fails: attempts, waits and their bounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_WAIT_MS, within};
use crate::protocol::error::Error;

/// Most attempts after the first that a configuration may ask for.
pub const MAX_RETRIES: u32 = 100;

/// How a failed call of a model is tried again. Members of the model's own configuration, whatever its provider.
///
/// Tried again is what may pass: 408, 409, 425, 429 and 5xx answers, connections that break, timeouts, streams that end
/// early or are garbled, and what the endpoint itself marks with `x-should-retry`. Waits grow: `retry_base_delay_ms` doubles
/// with each attempt up to `retry_cap_delay_ms`, less a random quarter at most; where the endpoint says how long to wait
/// (`retry-after-ms`, `retry-after`), that is done exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryConfig {
    /// Attempts after the first, 0 to 100. Default 2, as in LangChain's chat models and the vendors' own clients.
    #[serde(default = "default_max_retries")]
    #[schemars(range(max = 100))]
    pub max_retries: u32,
    /// The first wait, in milliseconds. Default 500.
    #[serde(default = "default_retry_base_delay_ms")]
    #[schemars(range(max = 86_400_000))]
    pub retry_base_delay_ms: u64,
    /// The longest wait of our own choosing, in milliseconds. Default 8,000.
    #[serde(default = "default_retry_cap_delay_ms")]
    #[schemars(range(max = 86_400_000))]
    pub retry_cap_delay_ms: u64,
    /// The longest wait that the endpoint may ask for, in milliseconds. When it asks for more, the model is not tried again
    /// at all: to come earlier would be in vain. Default 120,000.
    #[serde(default = "default_max_retry_after_ms")]
    #[schemars(range(max = 86_400_000))]
    pub max_retry_after_ms: u64,
    /// No attempt begins later than this after the first began, in milliseconds; a wait that would end later is not begun.
    /// Default 1,800,000.
    #[serde(default = "default_retry_deadline_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub retry_deadline_ms: u64,
    /// Whether to go on after a part of the reply has reached the host. A `stream_reset` event then says that what was
    /// streamed of the message is void. Default false: the run fails, and keeps the part.
    #[serde(default)]
    pub retry_after_partial: bool,
}

fn default_max_retries() -> u32 {
    2
}
fn default_retry_base_delay_ms() -> u64 {
    500
}
fn default_retry_cap_delay_ms() -> u64 {
    8_000
}
fn default_max_retry_after_ms() -> u64 {
    120_000
}
fn default_retry_deadline_ms() -> u64 {
    1_800_000
}

impl Default for RetryConfig {
    fn default() -> Self {
        RetryConfig {
            max_retries: default_max_retries(),
            retry_base_delay_ms: default_retry_base_delay_ms(),
            retry_cap_delay_ms: default_retry_cap_delay_ms(),
            max_retry_after_ms: default_max_retry_after_ms(),
            retry_deadline_ms: default_retry_deadline_ms(),
            retry_after_partial: false,
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

    /// Checks bounds.
    ///
    /// # Errors
    /// `OutOfRange` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        let max_retries = u64::from(self.max_retries);
        within("/max_retries", max_retries, 0, u64::from(MAX_RETRIES))?;
        for (path, value) in [
            ("/retry_base_delay_ms", self.retry_base_delay_ms),
            ("/retry_cap_delay_ms", self.retry_cap_delay_ms),
            ("/max_retry_after_ms", self.max_retry_after_ms),
        ] {
            within(path, value, 0, MAX_WAIT_MS)?;
        }
        within("/retry_deadline_ms", self.retry_deadline_ms, 1, MAX_WAIT_MS)
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
    fn an_empty_object_has_every_default() {
        let empty: RetryConfig = serde_json::from_value(json!({})).unwrap();
        assert_eq!(empty, RetryConfig::default());
        assert!(empty.validate().is_ok());
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
