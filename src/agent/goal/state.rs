//! A goal and its judgements as the channel `goal` holds them, and what may be an objective.
//!
//! The channel takes whatever is written to it, so reading is lenient: numbers that are none are their defaults, those out of
//! bounds are moved there, members that nobody here knows stay.

use serde_json::{Map, Value};

use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::goal::GoalWrite;
use crate::protocol::time::Timestamp;
use crate::state::python::{collapse_whitespace, is_space};

/// Longest objective, in characters (GOAL-3).
pub const MAX_OBJECTIVE_CHARS: usize = 4000;
/// Most turns that a run adds, and the default (GOAL-1, GOAL-3).
pub const MAX_CONTINUATIONS: u64 = 8;
/// How many judgements in a row may see no progress, unless the goal says otherwise (GOAL-1).
const DEFAULT_NO_PROGRESS: u64 = 2;
/// The only status (GOAL-1).
const ACTIVE: &str = "active";

/// What a user wrote behind `/goal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Tell how it stands.
    Status,
    /// Take the goal away.
    Clear,
    /// The words are an objective.
    Set,
}

/// What an argument of `/goal` comes to (GOAL-4).
pub fn command(argument: &str) -> Command {
    let word = argument.trim_matches(is_space).to_lowercase();
    match word.as_str() {
        "" => Command::Status,
        "clear" | "reset" | "off" => Command::Clear,
        _ => Command::Set,
    }
}

/// What stands between a thread and its goal (GOAL-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// Nothing: it is reached.
    None,
    /// The conversation does not show how it stands.
    MissingEvidence,
    /// The user has to say or do something.
    NeedsUserInput,
    /// The run did not come to an end that counts.
    RunFailed,
    /// Something outside has to happen first.
    ExternalWait,
    /// More work; the only one for which a run goes on.
    GoalNotMetYet,
}

impl Blocker {
    const ALL: [Blocker; 6] = [
        Blocker::None,
        Blocker::MissingEvidence,
        Blocker::NeedsUserInput,
        Blocker::RunFailed,
        Blocker::ExternalWait,
        Blocker::GoalNotMetYet,
    ];

    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Blocker::None => "none",
            Blocker::MissingEvidence => "missing_evidence",
            Blocker::NeedsUserInput => "needs_user_input",
            Blocker::RunFailed => "run_failed",
            Blocker::ExternalWait => "external_wait",
            Blocker::GoalNotMetYet => "goal_not_met_yet",
        }
    }

    /// The blocker of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Blocker::ALL
            .into_iter()
            .find(|blocker| blocker.name() == name)
    }
}

/// One judgement (GOAL-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// Whether the goal is reached.
    pub satisfied: bool,
    /// What stands in the way.
    pub blocker: Blocker,
    /// Why, on one line.
    pub reason: String,
    /// What shows it, on one line.
    pub evidence_summary: String,
    /// Whether it counts as reached by way of an assumption that the agent has stated (GOAL-25).
    pub relied_on_assumption: bool,
}

impl Evaluation {
    /// A judgement that no model made: the goal is not reached.
    pub fn unmet(blocker: Blocker, reason: &str) -> Self {
        Evaluation {
            satisfied: false,
            blocker,
            reason: reason.to_owned(),
            evidence_summary: String::new(),
            relied_on_assumption: false,
        }
    }
}

/// The run and the moment of a judgement.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The run.
    pub run_id: &'a str,
    /// When.
    pub at: Timestamp,
}

/// An active goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// As the channel holds it; `objective` is text that is not blank.
    members: Map<String, Value>,
}

impl Goal {
    /// A new goal (GOAL-1).
    ///
    /// # Errors
    /// `OutOfRange` for an objective that is blank or longer than [`MAX_OBJECTIVE_CHARS`]; the place is the caller's.
    pub fn new(objective: &str, write: &GoalWrite, at: Timestamp) -> Result<Self, Error> {
        let objective = collapse_whitespace(objective, MAX_OBJECTIVE_CHARS + 1);
        let chars = objective.chars().count();
        if chars == 0 || chars > MAX_OBJECTIVE_CHARS {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "",
                format!(
                    "an objective has 1 to {MAX_OBJECTIVE_CHARS} characters besides repeated white space"
                ),
            ));
        }
        let floored = |limit: Option<i64>, default| match limit {
            None => default,
            Some(limit) => u64::try_from(limit).unwrap_or(0),
        };
        let continuations = floored(write.max_continuations, MAX_CONTINUATIONS);
        let no_progress = floored(write.max_no_progress_continuations, DEFAULT_NO_PROGRESS);
        let at = at.to_string();
        let members = [
            ("objective", Value::from(objective)),
            ("status", ACTIVE.into()),
            ("created_at", at.clone().into()),
            ("updated_at", at.into()),
            ("continuation_count", 0.into()),
            (
                "max_continuations",
                continuations.min(MAX_CONTINUATIONS).into(),
            ),
            ("no_progress_count", 0.into()),
            ("max_no_progress_continuations", no_progress.into()),
        ];
        let members = members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        Ok(Goal {
            members: members.collect(),
        })
    }

    /// The active goal that a channel holds; `None` for whatever is none (GOAL-13).
    pub fn read(value: &Value) -> Option<Self> {
        let members = value.as_object()?;
        let objective = members.get("objective")?.as_str()?;
        let is_active = members.get("status").and_then(Value::as_str) == Some(ACTIVE);
        (is_active && !objective.chars().all(is_space)).then(|| Goal {
            members: members.clone(),
        })
    }

    /// The value for the channel.
    pub fn to_value(&self) -> Value {
        Value::Object(self.members.clone())
    }

    /// What is to be reached.
    pub fn objective(&self) -> &str {
        self.text("objective").unwrap_or_default()
    }

    /// Turns that were added for it so far.
    pub fn continuation_count(&self) -> u64 {
        self.number("continuation_count", 0)
    }

    /// How many may be.
    pub fn max_continuations(&self) -> u64 {
        self.number("max_continuations", MAX_CONTINUATIONS)
            .min(MAX_CONTINUATIONS)
    }

    /// Judgements in a row that saw no progress.
    pub fn no_progress_count(&self) -> u64 {
        self.number("no_progress_count", 0)
    }

    /// How many may.
    pub fn max_no_progress(&self) -> u64 {
        self.number("max_no_progress_continuations", DEFAULT_NO_PROGRESS)
    }

    /// The progress key of the last judgement.
    pub fn last_progress_key(&self) -> Option<&str> {
        self.members
            .get("last_evaluation")?
            .get("progress_key")?
            .as_str()
    }

    /// Whether both are one goal, and not one that took the other's place (GOAL-24).
    pub fn is_same(&self, other: &Goal) -> bool {
        let same = |name| self.members.get(name) == other.members.get(name);
        same("objective") && same("created_at")
    }

    /// The goal after a judgement. Counts are as given; everything else that it holds stays.
    pub fn judged(
        &self,
        evaluation: Map<String, Value>,
        continuation_count: u64,
        no_progress_count: u64,
        at: Timestamp,
    ) -> Goal {
        let mut members = self.members.clone();
        for (name, value) in [
            ("updated_at", Value::from(at.to_string())),
            ("continuation_count", continuation_count.into()),
            ("no_progress_count", no_progress_count.into()),
            ("last_evaluation", Value::Object(evaluation)),
        ] {
            members.insert(name.to_owned(), value);
        }
        Goal { members }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name)?.as_str()
    }

    /// A count: no less than 0, whatever was written; `default` for what is no number.
    fn number(&self, name: &str, default: u64) -> u64 {
        let Some(value) = self.members.get(name) else {
            return default;
        };
        // A cast from a float stays within bounds.
        let whole = value.as_f64().map(|number| number as u64);
        value.as_u64().or(whole).unwrap_or(default)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::*;

    fn at() -> Timestamp {
        Timestamp::parse("2026-01-01T00:00:00Z").unwrap()
    }

    fn limits(continuations: i64, no_progress: i64) -> GoalWrite {
        GoalWrite {
            max_continuations: Some(continuations),
            max_no_progress_continuations: Some(no_progress),
            ..GoalWrite::default()
        }
    }

    #[test]
    fn goal_1_a_new_goal_has_these_members() {
        let goal = Goal::new("Ship it", &GoalWrite::default(), at()).unwrap();
        assert_eq!(
            goal.to_value().to_string(),
            json!({
                "objective": "Ship it", "status": "active",
                "created_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-01T00:00:00.000000Z",
                "continuation_count": 0, "max_continuations": 8,
                "no_progress_count": 0, "max_no_progress_continuations": 2,
            })
            .to_string()
        );
        assert_eq!(Goal::read(&goal.to_value()), Some(goal));
    }

    #[test]
    fn goal_3_objectives_are_one_line_of_bounded_length() {
        let make = |text: &str| Goal::new(text, &GoalWrite::default(), at());
        let goal = make("  all\n\ttests\u{1c}pass ").unwrap();
        assert_eq!(goal.objective(), "all tests pass");
        let longest = "ä".repeat(MAX_OBJECTIVE_CHARS);
        assert_eq!(make(&longest).unwrap().objective(), longest);
        for text in ["", " \n\u{3000}", &format!("{longest}ä")] {
            assert_eq!(make(text).unwrap_err().code, ErrorCode::OutOfRange);
        }
        // White space does not count towards the length.
        assert!(make(&format!("a{}b", " ".repeat(9000))).is_ok());
    }

    #[test]
    fn goal_3_limits_are_moved_into_their_bounds() {
        let of = |continuations, no_progress| {
            let goal = Goal::new("x", &limits(continuations, no_progress), at()).unwrap();
            (goal.max_continuations(), goal.max_no_progress())
        };
        assert_eq!(of(3, 5), (3, 5));
        assert_eq!(of(9, 100), (8, 100));
        assert_eq!(of(-1, -7), (0, 0));
        assert_eq!(of(i64::MAX, i64::MIN), (8, 0));
    }

    #[test]
    fn goal_4_arguments_of_the_command() {
        for (argument, comes_to) in [
            ("", Command::Status),
            (" \t\n", Command::Status),
            ("clear", Command::Clear),
            (" RESET ", Command::Clear),
            ("Off", Command::Clear),
            ("clear the table", Command::Set),
            ("status", Command::Set),
            ("offline", Command::Set),
        ] {
            assert_eq!(command(argument), comes_to, "{argument:?}");
        }
    }

    #[test]
    fn goal_13_what_is_no_active_goal_is_none() {
        for value in [
            json!(null),
            json!(5),
            json!("Ship it"),
            json!([]),
            json!({}),
            json!({"objective": "x"}),
            json!({"objective": "x", "status": "done"}),
            json!({"objective": "x", "status": ["active"]}),
            json!({"objective": " ", "status": "active"}),
            json!({"objective": 1, "status": "active"}),
        ] {
            assert_eq!(Goal::read(&value), None, "{value}");
        }
    }

    #[test]
    fn hostile_counts_are_moved_into_their_bounds() {
        let goal = Goal::read(&json!({
            "objective": "x", "status": "active", "continuation_count": -3, "max_continuations": 1e300,
            "no_progress_count": "many", "max_no_progress_continuations": null, "last_evaluation": "none",
        }))
        .unwrap();
        assert_eq!(
            (goal.continuation_count(), goal.max_continuations()),
            (0, 8)
        );
        assert_eq!((goal.no_progress_count(), goal.max_no_progress()), (0, 2));
        assert_eq!(goal.last_progress_key(), None);
        let goal =
            Goal::read(&json!({"objective": "x", "status": "active", "max_continuations": 2.5}));
        assert_eq!(goal.unwrap().max_continuations(), 2);
    }

    #[test]
    fn goal_24_a_goal_is_told_from_another_of_the_same_words() {
        let one = json!({"objective": "x", "status": "active", "created_at": "1", "continuation_count": 1});
        let one = Goal::read(&one).unwrap();
        let with = |objective: &str, created: &str| {
            let goal = json!({"objective": objective, "status": "active", "created_at": created});
            Goal::read(&goal).unwrap()
        };
        assert!(one.is_same(&with("x", "1")));
        assert!(!one.is_same(&with("x", "2")));
        assert!(!one.is_same(&with("y", "1")));
    }

    #[test]
    fn a_judgement_keeps_members_that_nobody_here_knows() {
        let goal =
            json!({"objective": "x", "status": "active", "created_at": "1", "colour": "red"});
        let goal = Goal::read(&goal).unwrap();
        let judged = goal.judged(Map::new(), 3, 1, at()).to_value();
        assert_eq!(judged["colour"], "red");
        assert_eq!(judged["continuation_count"], 3);
        assert_eq!(judged["no_progress_count"], 1);
        assert_eq!(judged["updated_at"], "2026-01-01T00:00:00.000000Z");
    }
}
