//! The one layer where a failed model call is tried again: attempts, the waits between them, and models that stand in.
//!
//! It stands between the wrappers of middleware and the providers, so nothing above sees an attempt that failed: no message,
//! no tokens, no step, and no words of a guard that were used up. Dropping the call, which is what cancelling a run
//! does, ends an attempt, a wait and the wait for a place alike.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::in_flight::InFlight;
use crate::ports::BoxFuture;
use crate::ports::model::{
    DeltaSink, DynModelProvider, FailedAttempt, ModelDelta, ModelError, ModelProvider, ModelReply,
    ModelRequest, NextAttempt,
};
use crate::protocol::error::Error;
use crate::protocol::model::{RetryPolicy, RetryRules};
use crate::protocol::model_failure::{FailureReason, is_of_the_model};

/// Most attempts where a stream fell silent or a rate grew too fast, by DeerFlow's rules (MW-LLM-2).
const FEW_ATTEMPTS: u32 = 2;
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
    pub retry: RetryPolicy,
}

/// A model that is tried again, and the models that stand in for it, as one model.
pub struct Retrying {
    candidates: Vec<Candidate>,
    jitter: Jitter,
    /// Where attempts take a place, if there are not any number of them.
    in_flight: Option<Arc<InFlight>>,
}

impl Retrying {
    /// `first` is asked first, then each of `fallbacks` until one answers. Each attempt takes a place of `in_flight`.
    pub fn new(
        first: Candidate,
        fallbacks: Vec<Candidate>,
        jitter: Jitter,
        in_flight: Option<Arc<InFlight>>,
    ) -> Self {
        let mut candidates = vec![first];
        candidates.extend(fallbacks);
        Retrying {
            candidates,
            jitter,
            in_flight,
        }
    }

    /// What follows a failure, and why it is not another attempt where one might be expected.
    fn decide(&self, failed: &Failed<'_>) -> (NextAttempt<'_>, Option<String>) {
        let policy = &self.candidates[failed.place].retry;
        if failed.has_been_heard && !policy.after_partial {
            let reason = "a part of the reply has reached the host and retry_after_partial is off";
            let is_expected = failed.may_pass() && failed.attempt < failed.max_attempts();
            return (NextAttempt::Nothing, is_expected.then(|| reason.to_owned()));
        }
        let (wait, reason) = match self.wait(failed) {
            Ok(wait) => (Some(wait), None),
            Err(reason) => (None, reason),
        };
        let next = match (wait, self.candidates.get(failed.place + 1)) {
            (Some(wait), _) => NextAttempt::Retry(wait),
            (None, Some(candidate)) if is_of_the_model(failed.failure.error.code) => {
                NextAttempt::Fallback(&candidate.name)
            }
            (None, _) => NextAttempt::Nothing,
        };
        (next, reason)
    }

    /// How long to wait before this model is tried again; `Err` with the reason, if it needs one, when it is not.
    fn wait(&self, failed: &Failed<'_>) -> Result<Duration, Option<String>> {
        let policy = failed.policy;
        if !failed.may_pass() {
            return Err(None);
        }
        if failed.attempt >= failed.max_attempts() {
            let many = failed.attempt > 1;
            return Err(many.then(|| format!("it was attempt {} of as many", failed.attempt)));
        }
        let wait = match failed.failure.retry_after {
            Some(asked) if asked > Duration::from_millis(policy.max_retry_after_ms) => {
                return Err(Some(format!(
                    "the endpoint asks to wait {} ms, and max_retry_after_ms is {}",
                    asked.as_millis(),
                    policy.max_retry_after_ms
                )));
            }
            Some(asked) => asked,
            None => failed.back_off(match self.jitter {
                Jitter::Fixed => 0.0,
                Jitter::Random => chance(),
            }),
        };
        if failed.elapsed + wait > Duration::from_millis(policy.deadline_ms) {
            return Err(Some(format!(
                "another attempt would begin {} ms after the first, and retry_deadline_ms is {}",
                (failed.elapsed + wait).as_millis(),
                policy.deadline_ms
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
    /// Its class.
    reason: FailureReason,
    /// Of the model that failed.
    policy: &'a RetryPolicy,
    /// Which model.
    place: usize,
    /// Which attempt with it, from 1.
    attempt: u32,
    /// Time since its first attempt began.
    elapsed: Duration,
    /// The wait before this attempt, if there was one.
    waited: Option<Duration>,
    /// Whether a part of the reply has reached somebody who cannot unsee it.
    has_been_heard: bool,
}

impl Failed<'_> {
    fn may_pass(&self) -> bool {
        match self.policy.rules {
            RetryRules::Marked => self.failure.error.retryable,
            RetryRules::ByReason { .. } => self.reason.may_pass(&self.failure.error),
        }
    }

    /// How many attempts this failure leaves to its model (MW-LLM-2).
    fn max_attempts(&self) -> u32 {
        let is_stubborn = self.failure.has_stalled || self.reason == FailureReason::BurstRate;
        match self.policy.rules {
            RetryRules::ByReason { .. } if is_stubborn => {
                self.policy.max_attempts.min(FEW_ATTEMPTS)
            }
            _ => self.policy.max_attempts,
        }
    }

    /// The wait of our own choosing. `chance` is from 0 up to 1; at 0 it decides nothing.
    fn back_off(&self, chance: f64) -> Duration {
        let policy = self.policy;
        let cap = policy.cap_delay_ms as f64;
        // Bounds of the configuration keep all of these within what a float holds exactly.
        let wait_ms = match policy.rules {
            // The base, doubled with each attempt up to the cap, less the jitter.
            RetryRules::Marked => {
                let doubled = 2f64.powi(i32::try_from(self.attempt - 1).unwrap_or(i32::MAX));
                (policy.base_delay_ms as f64 * doubled).min(cap) * (1.0 - JITTER * chance)
            }
            // MW-LLM-3: between the base and three times the wait before, so that waits grow and callers drift apart.
            RetryRules::ByReason {
                burst_base_delay_ms,
            } => {
                let base = match self.reason {
                    FailureReason::BurstRate => burst_base_delay_ms as f64,
                    _ => policy.base_delay_ms as f64,
                };
                let before = self
                    .waited
                    .map_or(base, |waited| waited.as_secs_f64() * 1000.0);
                let highest = (3.0 * before).max(base).min(cap);
                let lowest = base.min(cap);
                (lowest + (highest - lowest) * chance).floor()
            }
        };
        Duration::from_secs_f64(wait_ms / 1000.0)
    }
}

impl ModelProvider for Retrying {
    async fn call(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let mut earlier = Vec::new();
        let (mut place, mut attempt, mut begun) = (0, 1, Instant::now());
        let mut waited = None;
        loop {
            let candidate = &self.candidates[place];
            let in_flight = match &self.in_flight {
                Some(places) => places.enter().await,
                None => None,
            };
            if attempt == 1 {
                begun = Instant::now();
            }
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
            // Not held while the call waits to try again (MW-LLM-7).
            drop(in_flight);
            let mut failure = match result {
                Ok(reply) => return Ok(self.signed(reply, candidate)),
                Err(failure) => failure,
            };
            let failed = Failed {
                failure: &failure,
                reason: FailureReason::of(&failure.error),
                policy: &candidate.retry,
                place,
                attempt,
                elapsed: begun.elapsed(),
                waited,
                has_been_heard: has_pushed && sink.is_heard(),
            };
            let (next, reason) = self.decide(&failed);
            sink.attempt_failed(&FailedAttempt {
                model: &candidate.name,
                attempt,
                max_attempts: failed.max_attempts(),
                reason: failed.reason,
                error: &failure.error,
                next,
            });
            if has_pushed && next != NextAttempt::Nothing {
                sink.reset();
            }
            match next {
                NextAttempt::Retry(wait) => {
                    attempt += 1;
                    waited = Some(wait);
                    tokio::time::sleep(wait).await;
                }
                NextAttempt::Fallback(_) => {
                    earlier.push(account(&candidate.name, &failure.error, reason));
                    (place, attempt, waited) = (place + 1, 1, None);
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

    fn arrived(&mut self) -> Option<Box<ModelReply>> {
        self.sink.arrived()
    }

    fn attempt_failed(&mut self, attempt: &FailedAttempt<'_>) {
        self.sink.attempt_failed(attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::error::ErrorCode;

    /// The wait after attempt number `attempt`, by these rules.
    fn back_off(rules: RetryRules, bounds: (u64, u64), attempt: u32, chance: f64) -> u128 {
        waits_after(rules, bounds, attempt, None, chance).as_millis()
    }

    fn waits_after(
        rules: RetryRules,
        (base, cap): (u64, u64),
        attempt: u32,
        waited: Option<Duration>,
        chance: f64,
    ) -> Duration {
        let failure = Error::new(ErrorCode::ModelServer, "down").retryable();
        let policy = RetryPolicy {
            base_delay_ms: base,
            cap_delay_ms: cap,
            rules,
            ..RetryPolicy::default()
        };
        failed(&failure.into(), &policy, attempt, waited).back_off(chance)
    }

    fn failed<'a>(
        failure: &'a ModelError,
        policy: &'a RetryPolicy,
        attempt: u32,
        waited: Option<Duration>,
    ) -> Failed<'a> {
        Failed {
            failure,
            reason: FailureReason::of(&failure.error),
            policy,
            place: 0,
            attempt,
            elapsed: Duration::ZERO,
            waited,
            has_been_heard: false,
        }
    }

    const BY_REASON: RetryRules = RetryRules::ByReason {
        burst_base_delay_ms: 5_000,
    };

    #[test]
    fn waits_double_up_to_the_cap() {
        let wait = |attempt| back_off(RetryRules::Marked, (500, 8_000), attempt, 0.0);
        let waits: Vec<u128> = (1..=7).map(wait).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(wait(u32::MAX), 8_000);
    }

    #[test]
    fn jitter_takes_a_quarter_at_most_and_differs() {
        let waits: Vec<u128> = (0..100)
            .map(|_| back_off(RetryRules::Marked, (1_000, 8_000), 1, chance()))
            .collect();
        assert!(waits.iter().all(|wait| (750..=1_000).contains(wait)));
        assert!(waits.iter().any(|wait| *wait != waits[0]));
    }

    #[test]
    fn llm_3_a_base_above_the_cap_gives_the_cap() {
        for rules in [RetryRules::Marked, BY_REASON] {
            assert_eq!(back_off(rules, (9_000, 100), 1, 0.0), 100);
            assert_eq!(back_off(rules, (0, 100), 5, 0.0), 0);
            let day = 86_400_000;
            assert_eq!(back_off(rules, (day, day), 101, 0.0), u128::from(day));
        }
        assert_eq!(back_off(BY_REASON, (9_000, 100), 1, 0.9), 100);
    }

    #[test]
    fn llm_3_waits_are_drawn_between_the_base_and_three_times_the_one_before() {
        let wait = |waited: Option<u64>, chance| {
            let waited = waited.map(Duration::from_millis);
            waits_after(BY_REASON, (1_000, 8_000), 2, waited, chance).as_millis()
        };
        let almost_one = 1.0 - f64::EPSILON;
        assert_eq!((wait(None, 0.0), wait(None, 0.5)), (1_000, 2_000));
        assert!((2_999..=3_000).contains(&wait(None, almost_one)));
        assert_eq!(wait(Some(2_000), 0.5), 3_500);
        assert_eq!(wait(Some(5_000), 0.5), 4_500, "the cap is the bound");
        assert_eq!(
            wait(Some(10), almost_one),
            1_000,
            "a short wait before lowers nothing"
        );
        let mut waited = None;
        for _ in 0..1_000 {
            let drawn = waits_after(BY_REASON, (1_000, 8_000), 2, waited, chance());
            let bound = waited.map_or(3_000, |it: Duration| 3 * it.as_millis());
            assert!((1_000..=bound.min(8_000)).contains(&drawn.as_millis()));
            waited = Some(drawn);
        }
    }

    #[test]
    fn llm_2_and_3_a_rate_that_grew_too_fast_has_its_own_base_and_two_attempts() {
        let burst = Error::new(ErrorCode::ModelRateLimit, "burst rate")
            .retryable()
            .into();
        let mut policy = RetryPolicy {
            max_attempts: 5,
            rules: BY_REASON,
            ..RetryPolicy::default()
        };
        let first = failed(&burst, &policy, 1, None);
        assert_eq!(first.back_off(0.0).as_millis(), 5_000);
        assert_eq!(first.max_attempts(), 2);
        let stalled = ModelError {
            has_stalled: true,
            ..Error::new(ErrorCode::ModelTimeout, "silent")
                .retryable()
                .into()
        };
        assert_eq!(failed(&stalled, &policy, 1, None).max_attempts(), 2);
        let server = Error::new(ErrorCode::ModelServer, "down")
            .retryable()
            .into();
        assert_eq!(failed(&server, &policy, 1, None).max_attempts(), 5);
        policy.max_attempts = 1;
        assert_eq!(failed(&burst, &policy, 1, None).max_attempts(), 1);
        // Without DeerFlow's rules all failures are alike.
        policy = RetryPolicy::default();
        for failure in [&burst, &stalled] {
            let first = failed(failure, &policy, 1, None);
            assert_eq!((first.max_attempts(), first.may_pass()), (3, true));
            assert_eq!(first.back_off(0.0).as_millis(), 500);
        }
    }

    #[test]
    fn llm_1_classes_decide_in_lead_agents_and_marks_elsewhere() {
        let quota = Error::new(ErrorCode::ModelRateLimit, "quota used up")
            .retryable()
            .into();
        let busy = Error::new(ErrorCode::ModelRequest, "please try again").into();
        let mut policy = RetryPolicy::default();
        assert!(failed(&quota, &policy, 1, None).may_pass());
        assert!(!failed(&busy, &policy, 1, None).may_pass());
        policy.rules = BY_REASON;
        assert!(!failed(&quota, &policy, 1, None).may_pass());
        assert!(failed(&busy, &policy, 1, None).may_pass());
    }
}
