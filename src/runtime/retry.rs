//! The one layer where a failed model call is tried again: attempts, the waits between them, and models that stand in.
//!
//! It stands between the wrappers of middleware and the providers, so nothing above sees an attempt that failed: no message,
//! no tokens, no step. Dropping the call, which is what cancelling a run does, ends an attempt and a wait alike.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::ports::BoxFuture;
use crate::ports::model::{
    DeltaSink, DynModelProvider, FailedAttempt, ModelDelta, ModelError, ModelProvider, ModelReply,
    ModelRequest, NextAttempt,
};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::model::RetryConfig;

/// The share of a wait that chance may take away, as in the vendors' own clients. Small enough for waits to grow all the same.
const JITTER: f64 = 0.25;
/// The member of a reply's `response_metadata` that says which of several models it is from.
const ANSWERED_BY: &str = "answered_by";

/// What varies waits, so that callers which failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// Chance.
    Random,
    /// Nothing: deterministic mode.
    Fixed,
}

/// One model with what its configuration says about failures.
pub struct Candidate {
    /// What events and messages call it.
    pub name: String,
    /// The model.
    pub model: Arc<dyn DynModelProvider>,
    /// Attempts and waits.
    pub retry: RetryConfig,
}

/// A model that is tried again, and the models that stand in for it, as one model.
pub struct Retrying {
    candidates: Vec<Candidate>,
    jitter: Jitter,
}

impl Retrying {
    /// `first` is asked first, then each of `fallbacks` until one answers.
    pub fn new(first: Candidate, fallbacks: Vec<Candidate>, jitter: Jitter) -> Self {
        let mut candidates = vec![first];
        candidates.extend(fallbacks);
        Retrying { candidates, jitter }
    }

    /// What follows a failure, and why it is not another attempt where one might be expected.
    fn decide(&self, failed: &Failed<'_>) -> (NextAttempt<'_>, Option<String>) {
        let policy = &self.candidates[failed.place].retry;
        let error = &failed.failure.error;
        if failed.has_been_heard && !policy.retry_after_partial {
            let reason = "a part of the reply has reached the host and retry_after_partial is off";
            let is_expected = error.retryable && failed.attempt <= policy.max_retries;
            return (NextAttempt::Nothing, is_expected.then(|| reason.to_owned()));
        }
        let (wait, reason) = match self.wait(policy, failed) {
            Ok(wait) => (Some(wait), None),
            Err(reason) => (None, reason),
        };
        let next = match (wait, self.candidates.get(failed.place + 1)) {
            (Some(wait), _) => NextAttempt::Retry(wait),
            (None, Some(candidate)) if is_of_the_model(error.code) => {
                NextAttempt::Fallback(&candidate.name)
            }
            (None, _) => NextAttempt::Nothing,
        };
        (next, reason)
    }

    /// How long to wait before this model is tried again; `Err` with the reason, if it needs one, when it is not.
    fn wait(&self, policy: &RetryConfig, failed: &Failed<'_>) -> Result<Duration, Option<String>> {
        let ModelError {
            error, retry_after, ..
        } = failed.failure;
        if !error.retryable {
            return Err(None);
        }
        if failed.attempt > policy.max_retries {
            let many = failed.attempt > 1;
            return Err(many.then(|| format!("it was attempt {} of as many", failed.attempt)));
        }
        let wait = match retry_after {
            Some(asked) if *asked > Duration::from_millis(policy.max_retry_after_ms) => {
                return Err(Some(format!(
                    "the endpoint asks to wait {} ms, and max_retry_after_ms is {}",
                    asked.as_millis(),
                    policy.max_retry_after_ms
                )));
            }
            Some(asked) => *asked,
            None => back_off(policy, failed.attempt, self.jitter),
        };
        if failed.elapsed + wait > Duration::from_millis(policy.retry_deadline_ms) {
            return Err(Some(format!(
                "another attempt would begin {} ms after the first, and retry_deadline_ms is {}",
                (failed.elapsed + wait).as_millis(),
                policy.retry_deadline_ms
            )));
        }
        Ok(wait)
    }

    /// With several models, a reply says which one it is from.
    fn signed(&self, mut reply: ModelReply, candidate: &Candidate) -> ModelReply {
        if self.candidates.len() > 1 {
            let name = candidate.name.as_str();
            reply
                .response_metadata
                .insert(ANSWERED_BY.into(), name.into());
        }
        reply
    }
}

/// What is known when an attempt has failed.
struct Failed<'a> {
    failure: &'a ModelError,
    /// Which model.
    place: usize,
    /// Which attempt with it, from 1.
    attempt: u32,
    /// Time since its first attempt began.
    elapsed: Duration,
    /// Whether a part of the reply has reached somebody who cannot unsee it.
    has_been_heard: bool,
}

impl ModelProvider for Retrying {
    async fn call(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let mut earlier = Vec::new();
        let (mut place, mut attempt, mut begun) = (0, 1, Instant::now());
        loop {
            let candidate = &self.candidates[place];
            let mut watched = Watched {
                sink: &mut *sink,
                has_pushed: false,
            };
            let result = if attempt == 1 {
                candidate.model.call_boxed(request, &mut watched).await
            } else {
                let mut again = request.clone();
                again.attempt += attempt - 1;
                candidate.model.call_boxed(&again, &mut watched).await
            };
            let has_pushed = watched.has_pushed;
            let mut failure = match result {
                Ok(reply) => return Ok(self.signed(reply, candidate)),
                Err(failure) => failure,
            };
            let (next, reason) = self.decide(&Failed {
                failure: &failure,
                place,
                attempt,
                elapsed: begun.elapsed(),
                has_been_heard: has_pushed && sink.is_heard(),
            });
            sink.attempt_failed(&FailedAttempt {
                model: &candidate.name,
                attempt,
                max_attempts: candidate.retry.max_retries.saturating_add(1),
                error: &failure.error,
                next,
            });
            if has_pushed && next != NextAttempt::Nothing {
                sink.reset();
            }
            match next {
                NextAttempt::Retry(wait) => {
                    attempt += 1;
                    tokio::time::sleep(wait).await;
                }
                NextAttempt::Fallback(_) => {
                    earlier.push(account(&candidate.name, &failure.error, reason));
                    (place, attempt, begun) = (place + 1, 1, Instant::now());
                }
                NextAttempt::Nothing => {
                    let reason = reason.map(|reason| format!("not tried again: {reason}"));
                    failure.error.cause.extend(reason);
                    failure.error.cause.append(&mut earlier);
                    return Err(failure);
                }
            }
        }
    }
}

/// What became of a model that another one stood in for, for the error that says all have failed.
fn account(name: &str, error: &Error, reason: Option<String>) -> String {
    let mut text = format!("{name} before it: {}: {}", error.code.name(), error.message);
    if let Some(reason) = reason {
        text.push_str(&format!(" (not tried again: {reason})"));
    }
    text
}

/// Whether another model may do better. What ends the run whatever the model, such as a queue that was freed, is not the
/// model's failure.
fn is_of_the_model(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ModelAuth
            | ErrorCode::ModelRequest
            | ErrorCode::ModelRateLimit
            | ErrorCode::ModelServer
            | ErrorCode::ModelConnection
            | ErrorCode::ModelTimeout
            | ErrorCode::ModelProtocol
            | ErrorCode::ModelTruncated
            | ErrorCode::ModelHost
            | ErrorCode::ScriptExhausted
            | ErrorCode::DeadlineExceeded
    )
}

/// The wait after attempt number `attempt`, from 1: the base, doubled with each attempt up to the cap, less the jitter.
fn back_off(policy: &RetryConfig, attempt: u32, jitter: Jitter) -> Duration {
    let doubled = 2f64.powi(i32::try_from(attempt - 1).unwrap_or(i32::MAX));
    // Bounds of the configuration keep both within what a float holds exactly.
    let whole = (policy.retry_base_delay_ms as f64 * doubled).min(policy.retry_cap_delay_ms as f64);
    let chance = match jitter {
        Jitter::Fixed => 0.0,
        Jitter::Random => chance(),
    };
    Duration::from_secs_f64(whole * (1.0 - JITTER * chance) / 1000.0)
}

/// A random number from 0 up to 1. The low half of a random UUID is random but for its two highest bits.
fn chance() -> f64 {
    let bits = Uuid::new_v4().as_u64_pair().1 as u32;
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

/// Passes deltas on and notes that there were some.
struct Watched<'a> {
    sink: &'a mut dyn DeltaSink,
    has_pushed: bool,
}

impl DeltaSink for Watched<'_> {
    fn push(&mut self, delta: ModelDelta) {
        self.has_pushed = true;
        self.sink.push(delta);
    }

    fn pressure(&mut self) -> Option<BoxFuture<'static, ()>> {
        self.sink.pressure()
    }

    fn is_heard(&self) -> bool {
        self.sink.is_heard()
    }

    fn reset(&mut self) {
        self.sink.reset();
    }

    fn attempt_failed(&mut self, attempt: &FailedAttempt<'_>) {
        self.sink.attempt_failed(attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(base: u64, cap: u64) -> RetryConfig {
        RetryConfig {
            retry_base_delay_ms: base,
            retry_cap_delay_ms: cap,
            ..RetryConfig::default()
        }
    }

    #[test]
    fn waits_double_up_to_the_cap() {
        let policy = policy(500, 8_000);
        let waits: Vec<u128> = (1..=7)
            .map(|attempt| back_off(&policy, attempt, Jitter::Fixed).as_millis())
            .collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(
            back_off(&policy, u32::MAX, Jitter::Fixed).as_millis(),
            8_000
        );
    }

    #[test]
    fn jitter_takes_a_quarter_at_most_and_differs() {
        let policy = policy(1_000, 8_000);
        let waits: Vec<u128> = (0..100)
            .map(|_| back_off(&policy, 1, Jitter::Random).as_micros())
            .collect();
        assert!(
            waits
                .iter()
                .all(|wait| (750_000..=1_000_000).contains(wait))
        );
        assert!(waits.iter().any(|wait| wait / 1000 != waits[0] / 1000));
    }

    #[test]
    fn a_base_above_the_cap_gives_the_cap() {
        assert_eq!(
            back_off(&policy(9_000, 100), 1, Jitter::Fixed).as_millis(),
            100
        );
        assert_eq!(back_off(&policy(0, 100), 5, Jitter::Fixed), Duration::ZERO);
        let day = 86_400_000;
        assert_eq!(
            back_off(&policy(day, day), 101, Jitter::Fixed).as_millis(),
            u128::from(day)
        );
    }
}
