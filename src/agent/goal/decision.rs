//! What follows from a judgement: the goal is reached, the run goes on, or it stands down and says why.
//!
//! Source: DeerFlow's run worker, GOAL-10, GOAL-11, GOAL-18, GOAL-26.

use std::fmt;

use serde_json::{Map, Value};

use super::state::{Blocker, Evaluation, Goal, MAX_CONTINUATIONS, Turn};
use crate::protocol::json::quote;

/// Why a run ends although the goal is not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandDown {
    /// More work does not help (GOAL-18).
    Blocked(Blocker),
    /// The goal, or the run, has had its turns (GOAL-18, GOAL-26).
    MaxContinuations,
    /// Nothing moved for too long (GOAL-18).
    NoProgress,
    /// The turn did not end with an answer that is stored (GOAL-14).
    NoDurableEndOfTurn,
    /// Somebody wrote to the thread while it was judged (GOAL-16).
    ChangedAfterEvaluation,
    /// Somebody wrote to the thread before the next turn could begin (GOAL-19).
    ChangedBeforeContinuation,
}

impl fmt::Display for StandDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StandDown::Blocked(blocker) => return write!(f, "blocked:{}", blocker.name()),
            StandDown::MaxContinuations => "max_continuations_reached",
            StandDown::NoProgress => "no_progress_detected",
            StandDown::NoDurableEndOfTurn => "no_durable_end_of_turn",
            StandDown::ChangedAfterEvaluation => "thread_changed_after_evaluation",
            StandDown::ChangedBeforeContinuation => "thread_changed_before_continuation",
        })
    }
}

/// What follows from a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The goal is reached and goes away (GOAL-17).
    Achieved,
    /// The run ends.
    StandDown(StandDown),
    /// The run adds a turn (GOAL-19).
    Continue,
}

/// A judgement with what it says about progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The judgement.
    pub evaluation: Evaluation,
    /// Equal for two judgements between which nothing moved (GOAL-10).
    pub progress_key: String,
    /// Judgements in a row that saw no progress, this one included (GOAL-11).
    pub no_progress_count: u64,
}

impl Judged {
    /// Weighs a judgement of `goal`. `answer_signature` is that of the answer that was judged, empty when there was none.
    pub fn new(goal: &Goal, evaluation: Evaluation, answer_signature: &str) -> Self {
        let progress_key = progress_key(&evaluation, answer_signature);
        let no_progress_count = if evaluation.satisfied {
            0
        } else if goal.last_progress_key() == Some(&*progress_key) {
            goal.no_progress_count().saturating_add(1)
        } else {
            0
        };
        Judged {
            evaluation,
            progress_key,
            no_progress_count,
        }
    }

    /// What `last_evaluation` holds (GOAL-2).
    pub fn to_members(&self, turn: Turn<'_>, stood_down: Option<StandDown>) -> Map<String, Value> {
        let evaluation = &self.evaluation;
        let members = [
            ("satisfied", Value::from(evaluation.satisfied)),
            ("blocker", evaluation.blocker.name().into()),
            ("reason", evaluation.reason.as_str().into()),
            (
                "evidence_summary",
                evaluation.evidence_summary.as_str().into(),
            ),
            ("run_id", turn.run_id.into()),
            ("evaluated_at", turn.at.to_string().into()),
            ("progress_key", self.progress_key.as_str().into()),
            (
                "relied_on_assumption",
                evaluation.relied_on_assumption.into(),
            ),
        ];
        let stood_down = stood_down.map(|why| ("stand_down_reason", why.to_string().into()));
        let members = members.into_iter().chain(stood_down);
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// The goal with this judgement on it: `continued` says whether a turn follows, which counts (GOAL-19).
    pub fn on(
        &self,
        goal: &Goal,
        turn: Turn<'_>,
        stood_down: Option<StandDown>,
        continued: bool,
    ) -> Goal {
        let count = goal
            .continuation_count()
            .saturating_add(u64::from(continued));
        let evaluation = self.to_members(turn, stood_down);
        goal.judged(evaluation, count, self.no_progress_count, turn.at)
    }
}

/// The text by which judgements are compared (GOAL-10): what a model words anew each time is no part of it.
fn progress_key(evaluation: &Evaluation, answer_signature: &str) -> String {
    format!(
        "{{\"blocker\": \"{}\", \"evidence_signature\": {}, \"satisfied\": {}}}",
        evaluation.blocker.name(),
        quote(answer_signature),
        evaluation.satisfied,
    )
}

/// What follows from a judgement of `goal` after a turn of a run that has added `added` turns already. A goal that a tool has
/// replaced meanwhile counts anew, the run does not.
pub fn decide(goal: &Goal, judged: &Judged, added: u64) -> Decision {
    let blocker = judged.evaluation.blocker;
    if judged.evaluation.satisfied {
        Decision::Achieved
    } else if blocker != Blocker::GoalNotMetYet {
        Decision::StandDown(StandDown::Blocked(blocker))
    } else if goal.continuation_count() >= goal.max_continuations() || added >= MAX_CONTINUATIONS {
        Decision::StandDown(StandDown::MaxContinuations)
    } else if judged.no_progress_count >= goal.max_no_progress() {
        Decision::StandDown(StandDown::NoProgress)
    } else {
        Decision::Continue
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::goal::GoalWrite;
    use crate::protocol::time::Timestamp;

    const TURN: Turn<'_> = Turn {
        run_id: "r",
        at: Timestamp(0),
    };

    fn goal() -> Goal {
        Goal::new("x", &GoalWrite::default(), Timestamp(0)).unwrap()
    }

    fn with(members: Value) -> Goal {
        let mut goal = goal().to_value();
        for (name, value) in members.as_object().unwrap() {
            goal[name] = value.clone();
        }
        Goal::read(&goal).unwrap()
    }

    fn unmet() -> Evaluation {
        Evaluation::unmet(Blocker::GoalNotMetYet, "more to do")
    }

    fn met() -> Evaluation {
        Evaluation {
            satisfied: true,
            blocker: Blocker::None,
            ..unmet()
        }
    }

    #[test]
    fn v50_the_third_judgement_of_the_same_answer_sees_no_progress() {
        let mut goal = goal();
        let mut seen = Vec::new();
        for reason in ["one", "two", "three"] {
            // The reason differs each time and counts for nothing.
            let evaluation = Evaluation {
                reason: reason.to_owned(),
                ..unmet()
            };
            let judged = Judged::new(&goal, evaluation, "same");
            let decision = decide(&goal, &judged, 0);
            seen.push((judged.no_progress_count, decision));
            goal = judged.on(&goal, TURN, None, decision == Decision::Continue);
        }
        assert_eq!(
            seen,
            [
                (0, Decision::Continue),
                (1, Decision::Continue),
                (2, Decision::StandDown(StandDown::NoProgress)),
            ]
        );
        assert_eq!(goal.continuation_count(), 2);
    }

    #[test]
    fn v51_a_run_stands_down_before_an_unknown_blocker() {
        let said = json!(r#"{"satisfied": false, "blocker": "weird"}"#);
        let evaluation = super::super::evaluator::parse(&said, false).unwrap();
        let judged = Judged::new(&goal(), evaluation, "s");
        let Decision::StandDown(why) = decide(&goal(), &judged, 0) else {
            panic!("it went on");
        };
        assert_eq!(why.to_string(), "blocked:missing_evidence");
    }

    #[test]
    fn goal_10_the_key_is_sorted_json_without_what_is_worded_freely() {
        let judged = Judged::new(&goal(), unmet(), "abc");
        assert_eq!(
            judged.progress_key,
            r#"{"blocker": "goal_not_met_yet", "evidence_signature": "abc", "satisfied": false}"#
        );
        let other = Evaluation {
            evidence_summary: "other".to_owned(),
            ..unmet()
        };
        assert_eq!(
            Judged::new(&goal(), other, "abc").progress_key,
            judged.progress_key
        );
        assert_ne!(
            Judged::new(&goal(), unmet(), "abd").progress_key,
            judged.progress_key
        );
    }

    #[test]
    fn goal_11_progress_and_success_begin_the_count_anew() {
        let key = Judged::new(&goal(), unmet(), "same").progress_key;
        let stuck = with(json!({"no_progress_count": 1, "last_evaluation": {"progress_key": key}}));
        let count =
            |evaluation, signature| Judged::new(&stuck, evaluation, signature).no_progress_count;
        assert_eq!(count(unmet(), "same"), 2);
        assert_eq!(count(unmet(), "moved"), 0);
        assert_eq!(count(met(), "same"), 0);
    }

    #[test]
    fn goal_18_reasons_to_stand_down_in_their_order() {
        let of = |goal: &Goal, evaluation, added| {
            let judged = Judged::new(goal, evaluation, "s");
            match decide(goal, &judged, added) {
                Decision::StandDown(why) => why.to_string(),
                other => format!("{other:?}"),
            }
        };
        let key = Judged::new(&goal(), unmet(), "s").progress_key;
        let last = json!({"progress_key": key});
        let full =
            with(json!({"continuation_count": 8, "no_progress_count": 5, "last_evaluation": last}));
        let stuck =
            with(json!({"continuation_count": 7, "no_progress_count": 1, "last_evaluation": last}));
        assert_eq!(of(&full, met(), 8), "Achieved");
        let waits = Evaluation::unmet(Blocker::ExternalWait, "");
        assert_eq!(of(&full, waits, 0), "blocked:external_wait");
        assert_eq!(of(&full, unmet(), 0), "max_continuations_reached");
        assert_eq!(of(&stuck, unmet(), 0), "no_progress_detected");
        assert_eq!(of(&goal(), unmet(), 7), "Continue");
        assert_eq!(
            of(&with(json!({"max_continuations": 0})), unmet(), 0),
            "max_continuations_reached"
        );
        let impatient = with(json!({"max_no_progress_continuations": 0}));
        assert_eq!(of(&impatient, unmet(), 0), "no_progress_detected");
    }

    #[test]
    fn goal_26_a_run_adds_eight_turns_at_most_whatever_the_goal_says() {
        let judged = Judged::new(&goal(), unmet(), "s");
        assert_eq!(decide(&goal(), &judged, 7), Decision::Continue);
        assert_eq!(
            decide(&goal(), &judged, MAX_CONTINUATIONS),
            Decision::StandDown(StandDown::MaxContinuations)
        );
    }

    #[test]
    fn goal_2_an_evaluation_has_these_members() {
        let judged = Judged::new(&goal(), unmet(), "s");
        let goal = judged.on(&goal(), TURN, Some(StandDown::NoProgress), false);
        assert_eq!(
            goal.to_value()["last_evaluation"],
            json!({
                "satisfied": false, "blocker": "goal_not_met_yet", "reason": "more to do",
                "evidence_summary": "", "run_id": "r", "evaluated_at": "1970-01-01T00:00:00.000000Z",
                "progress_key": judged.progress_key, "stand_down_reason": "no_progress_detected",
                "relied_on_assumption": false,
            })
        );
        let members = judged.to_members(TURN, None);
        assert!(!members.contains_key("stand_down_reason"));
    }
}
