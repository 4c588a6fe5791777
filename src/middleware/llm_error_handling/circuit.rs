//! The circuit breaker: whether a model that has failed is worth asking.
//!
//! It is closed while calls may go through. Enough failures in a row open it: nobody asks until it has been open for a while.
//! Then it is half open: one call, the probe, goes through, and what becomes of it closes or opens it. Time is an argument.
//!
//! Each call holds a [`Ticket`] of the turn of events in which it was let through. What became of a call counts in that turn
//! only: a reply that was asked for before the circuit opened says nothing about the model of now, and a probe that was given
//! up answers for no other (MW-LLM-8).
//!
//! Source: DeerFlow `LLMErrorHandlingMiddleware`, MW-LLM-6.

use std::time::Duration;

/// The leave to make one call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    generation: u64,
}

/// What a failure did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing that others see.
    Counted,
    /// It opened the circuit.
    Opened,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Circuit {
    /// Failures in a row that open it.
    threshold: u64,
    /// How long it stays open.
    recovery: Duration,
    state: State,
    /// Counts turns of events.
    generation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed { failures: u64 },
    Open { until: Duration },
    HalfOpen { is_probed: bool },
}

impl Circuit {
    /// A closed one.
    pub(super) fn new(threshold: u64, recovery: Duration) -> Self {
        Circuit {
            threshold,
            recovery,
            state: State::Closed { failures: 0 },
            generation: 0,
        }
    }

    /// Leave for a call at `now`; `None` while the model is not to be asked. Every ticket is handed to one of the three
    /// functions below.
    pub(super) fn admit(&mut self, now: Duration) -> Option<Ticket> {
        if let State::Open { until } = self.state
            && now >= until
        {
            self.turn(State::HalfOpen { is_probed: false });
        }
        match self.state {
            State::Closed { .. } => {}
            State::HalfOpen { is_probed: false } => self.turn(State::HalfOpen { is_probed: true }),
            State::HalfOpen { is_probed: true } | State::Open { .. } => return None,
        }
        Some(Ticket {
            generation: self.generation,
        })
    }

    /// The model answered.
    pub(super) fn succeeded(&mut self, ticket: Ticket) {
        if self.holds(&ticket) {
            match &mut self.state {
                State::Closed { failures } => *failures = 0,
                _ => self.turn(State::Closed { failures: 0 }),
            }
        }
    }

    /// The model failed for good, for a reason that passes.
    pub(super) fn failed(&mut self, ticket: Ticket, now: Duration) -> Effect {
        if !self.holds(&ticket) {
            return Effect::Counted;
        }
        if let State::Closed { failures } = &mut self.state {
            *failures += 1;
            if *failures < self.threshold {
                return Effect::Counted;
            }
        }
        let until = now.saturating_add(self.recovery);
        self.turn(State::Open { until });
        Effect::Opened
    }

    /// The call came to nothing that counts: it was cancelled, or failed for a reason of its own. Another may be the probe.
    pub(super) fn released(&mut self, ticket: Ticket) {
        if self.holds(&ticket) && matches!(self.state, State::HalfOpen { .. }) {
            self.turn(State::HalfOpen { is_probed: false });
        }
    }

    fn holds(&self, ticket: &Ticket) -> bool {
        ticket.generation == self.generation
    }

    fn turn(&mut self, state: State) {
        self.state = state;
        self.generation += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn circuit() -> Circuit {
        Circuit::new(3, at(60))
    }

    fn let_through(circuit: &mut Circuit, seconds: u64) -> Ticket {
        circuit.admit(at(seconds)).expect("a call that may be made")
    }

    /// A circuit that opened at this time.
    fn open(seconds: u64) -> Circuit {
        let mut circuit = circuit();
        for nth in 1..=3 {
            let ticket = let_through(&mut circuit, seconds);
            let effect = circuit.failed(ticket, at(seconds));
            assert_eq!(effect == Effect::Opened, nth == 3);
        }
        circuit
    }

    #[test]
    fn llm_6_failures_in_a_row_open_it_and_a_success_between_begins_anew() {
        let mut circuit = circuit();
        for _ in 0..2 {
            for _ in 0..2 {
                let ticket = let_through(&mut circuit, 0);
                assert_eq!(circuit.failed(ticket, at(0)), Effect::Counted);
            }
            let ticket = let_through(&mut circuit, 0);
            circuit.succeeded(ticket);
        }
        // What does not count changes nothing.
        let ticket = let_through(&mut circuit, 0);
        circuit.released(ticket);
        let mut circuit = open(100);
        for seconds in [100, 101, 159] {
            assert_eq!(circuit.admit(at(seconds)), None, "{seconds}");
        }
        assert!(circuit.admit(at(160)).is_some());
    }

    #[test]
    fn llm_6_after_a_while_one_call_goes_through_and_its_success_closes_it() {
        let mut circuit = open(0);
        let probe = let_through(&mut circuit, 60);
        assert_eq!(circuit.admit(at(61)), None, "one probe at a time");
        circuit.succeeded(probe);
        let tickets: Vec<Ticket> = (0..5).map(|_| let_through(&mut circuit, 62)).collect();
        // It counts from nothing again.
        let effects: Vec<Effect> = tickets
            .into_iter()
            .map(|ticket| circuit.failed(ticket, at(63)))
            .collect();
        assert_eq!(
            effects[..3],
            [Effect::Counted, Effect::Counted, Effect::Opened]
        );
        assert_eq!(effects[3..], [Effect::Counted; 2], "it is open already");
    }

    #[test]
    fn llm_6_a_probe_that_fails_opens_it_for_another_while() {
        let mut circuit = open(0);
        let probe = let_through(&mut circuit, 70);
        assert_eq!(circuit.failed(probe, at(75)), Effect::Opened);
        assert_eq!(circuit.admit(at(134)), None);
        assert!(circuit.admit(at(135)).is_some());
    }

    #[test]
    fn llm_6_a_probe_that_comes_to_nothing_lets_another_go() {
        let mut circuit = open(0);
        for seconds in [60, 61, 62] {
            let probe = let_through(&mut circuit, seconds);
            circuit.released(probe);
        }
        let probe = let_through(&mut circuit, 63);
        circuit.succeeded(probe);
        assert!(circuit.admit(at(63)).is_some());
    }

    #[test]
    fn llm_8_what_was_asked_in_an_earlier_turn_of_events_counts_for_nothing() {
        let mut circuit = circuit();
        let mut early: Vec<Ticket> = (0..6).map(|_| let_through(&mut circuit, 0)).collect();
        for ticket in early.drain(..3) {
            circuit.failed(ticket, at(1));
        }
        // Late answers of calls from before it opened: neither close it, nor keep it open longer, nor free the probe.
        circuit.succeeded(early.remove(0));
        assert_eq!(circuit.admit(at(2)), None);
        assert_eq!(circuit.failed(early.remove(0), at(50)), Effect::Counted);
        let probe = let_through(&mut circuit, 61);
        circuit.released(early.remove(0));
        assert_eq!(circuit.admit(at(61)), None, "the probe is still out");
        circuit.succeeded(probe);
        assert!(circuit.admit(at(61)).is_some());
    }

    #[test]
    fn bounds_hold_at_both_ends() {
        let mut circuit = Circuit::new(1, Duration::ZERO);
        let ticket = let_through(&mut circuit, 5);
        assert_eq!(circuit.failed(ticket, at(5)), Effect::Opened);
        assert!(circuit.admit(at(5)).is_some(), "no time to wait");
        let mut circuit = Circuit::new(1, Duration::MAX);
        let ticket = let_through(&mut circuit, 5);
        circuit.failed(ticket, at(5));
        assert_eq!(circuit.admit(at(u64::MAX)), None);
    }
}
