//! Sees to it that a model which fails leaves a message, and that one which keeps failing is left in peace.
//!
//! Attempts are made further in, in one place (`runtime/retry.rs`), with models that stand in: what gets here has failed for
//! good. It becomes a message in the thread (see `stand_in`), and the run ends with the error all the same: the reply is marked
//! ([`super::is_error_fallback`]), and the run is told of it ([`RunSignals`](crate::ports::signals::RunSignals)). Failures that
//! pass are counted by a circuit breaker (see `circuit`), each assembly for itself. What ends a run whatever the model goes
//! through untouched, and a call that is dropped counts for nothing.
//!
//! Source: DeerFlow `LLMErrorHandlingMiddleware`, MW-LLM-5, 6 and 8. It retries there, outside of guards that have words for
//! one call only; not so here.

mod circuit;
mod stand_in;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use self::circuit::{Circuit, Effect, Ticket};
use super::message_marks::is_error_fallback;
use super::reply::members;
use super::{Hooks, Middleware, ModelResponse, NextModel};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::protocol::app_config::{CircuitBreakerConfig, LlmCallConfig};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::model_failure::{FailureReason, is_of_the_model};
use crate::protocol::warning::Warning;
use crate::state::transcript::Transcript;

/// Time since some moment.
type Clock = Box<dyn Fn() -> Duration + Send + Sync>;

/// See the module.
pub struct LlmErrorHandling {
    breaker: CircuitBreakerConfig,
    retries: Option<LlmCallConfig>,
    circuit: Mutex<Circuit>,
    clock: Clock,
}

impl LlmErrorHandling {
    /// The middleware, by the section `circuit_breaker`. `retries` is how the agent's models are tried again, for the
    /// descriptor; `None` where that is up to each model.
    pub fn new(breaker: CircuitBreakerConfig, retries: Option<LlmCallConfig>) -> Self {
        let begun = Instant::now();
        LlmErrorHandling::with_clock(breaker, retries, Box::new(move || begun.elapsed()))
    }

    fn with_clock(
        breaker: CircuitBreakerConfig,
        retries: Option<LlmCallConfig>,
        clock: Clock,
    ) -> Self {
        let recovery = Duration::from_secs(breaker.recovery_timeout_sec);
        LlmErrorHandling {
            circuit: Mutex::new(Circuit::new(breaker.failure_threshold, recovery)),
            breaker,
            retries,
            clock,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leave to make a call; `None` while the circuit is open.
    fn admit(&self) -> Option<Call<'_>> {
        let now = (self.clock)();
        let ticket = self.lock().admit(now)?;
        Some(Call {
            owner: self,
            ticket: Some(ticket),
        })
    }
}

/// A call that is under way. Dropping it, as cancelling a run does, is an outcome that does not count.
struct Call<'a> {
    owner: &'a LlmErrorHandling,
    ticket: Option<Ticket>,
}

impl Call<'_> {
    fn succeeded(mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.owner.lock().succeeded(ticket);
        }
    }

    fn failed(mut self) -> Effect {
        let now = (self.owner.clock)();
        match self.ticket.take() {
            Some(ticket) => self.owner.lock().failed(ticket, now),
            None => Effect::Counted,
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.owner.lock().released(ticket);
        }
    }
}

/// The request without a message that stands in for the very answer which is asked for again: a run that goes on after a
/// failure asks what the failed one asked.
fn without_stand_in(mut request: ModelRequest) -> ModelRequest {
    if let Some((last, before)) = request.messages.split_last()
        && is_error_fallback(last)
    {
        let transcript = Transcript::from(before.to_vec());
        transcript.note_sound(request.messages.sound_prefix().min(before.len()));
        request.messages = Arc::new(transcript);
    }
    request
}

impl Middleware for LlmErrorHandling {
    fn name(&self) -> &str {
        "llm_error_handling"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_model_call: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let breaker = &self.breaker;
        let mut policy = members([
            (
                "circuit_failure_threshold",
                breaker.failure_threshold.into(),
            ),
            (
                "circuit_recovery_timeout_sec",
                breaker.recovery_timeout_sec.into(),
            ),
        ]);
        if let Some(retries) = &self.retries {
            policy.extend(members([
                ("retry_max_attempts", retries.retry_max_attempts.into()),
                ("retry_base_delay_ms", retries.retry_base_delay_ms.into()),
                ("retry_cap_delay_ms", retries.retry_cap_delay_ms.into()),
                (
                    "burst_retry_base_delay_ms",
                    retries.burst_retry_base_delay_ms.into(),
                ),
            ]));
        }
        policy
    }

    fn wrap_model_call<'a>(
        &'a self,
        request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            let signals = request.run.facts.signals.clone();
            let Some(call) = self.admit() else {
                let text = "the circuit breaker is open: the model has failed too often of late";
                signals.note_turn(Some(
                    Error::new(ErrorCode::ModelUnavailable, text).retryable(),
                ));
                return Ok(stand_in::of_open_circuit(text).into());
            };
            let failure = match next.run(without_stand_in(request)).await {
                Ok(answer) => {
                    call.succeeded();
                    signals.note_turn(None);
                    return Ok(answer);
                }
                Err(failure) if !is_of_the_model(failure.error.code) => return Err(failure),
                Err(failure) => failure,
            };
            let reason = FailureReason::of(&failure.error);
            let counts = reason.may_pass(&failure.error) && reason != FailureReason::BurstRate;
            if counts && call.failed() == Effect::Opened {
                let seconds = self.breaker.recovery_timeout_sec;
                signals.warn(
                    Warning::CircuitOpened,
                    format!("the model has failed too often; it is not asked for {seconds} s"),
                );
            }
            let reply = stand_in::of_failure(&failure, reason);
            signals.note_turn(Some(failure.error));
            Ok(reply.into())
        })
    }
}

#[cfg(test)]
mod tests;
