//! What a host may ask about the goal of a thread (`fawn_thread_goal`), op by op.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::decode::{from_value, tagged};
use super::error::{Error, ErrorCode};

/// Longest name of a node, in bytes: as ids.
const MAX_NODE_BYTES: usize = super::run::MAX_ID_BYTES;

/// Input of `fawn_thread_goal`.
#[derive(Clone, Debug, PartialEq)]
pub enum GoalOp {
    /// Reads the goal.
    Get,
    /// Gives the thread a new goal, in place of one that it has.
    Set {
        /// What is to be reached.
        objective: String,
        /// Its limits, and when the write holds.
        write: GoalWrite,
    },
    /// Takes the goal away.
    Clear(GoalWrite),
    /// Does what a user wrote behind `/goal` (GOAL-4).
    Command {
        /// The rest of the line: blank reads, `clear`, `reset` and `off` clear, anything else is an objective.
        argument: String,
        /// As of the op that it comes to.
        write: GoalWrite,
    },
}

/// What belongs to a write of a goal.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoalWrite {
    /// How many turns a run may add on its own before it gives up: 0 to 8, numbers beyond are moved there. Default 8.
    #[serde(default)]
    pub max_continuations: Option<i64>,
    /// How many judgements in a row may see no progress before a run gives up; negative numbers are 0. Default 2.
    #[serde(default)]
    pub max_no_progress_continuations: Option<i64>,
    /// Writes only if this is the thread's newest checkpoint.
    #[serde(default)]
    pub expected_checkpoint_id: Option<String>,
    /// Who writes, for the checkpoint's metadata, 1 to 255 bytes. Default `goal`.
    #[serde(default)]
    #[schemars(length(min = 1, max = 255))]
    pub as_node: Option<String>,
}

impl GoalWrite {
    /// Who writes.
    pub fn node(&self) -> &str {
        self.as_node.as_deref().unwrap_or("goal")
    }

    fn checked(self) -> Result<Self, Error> {
        let fits = |node: &String| (1..=MAX_NODE_BYTES).contains(&node.len());
        match self.as_node.as_ref().is_none_or(fits) {
            true => Ok(self),
            false => Err(Error::at(
                ErrorCode::OutOfRange,
                "/as_node",
                format!("as_node must be 1 to {MAX_NODE_BYTES} bytes"),
            )),
        }
    }
}

impl GoalOp {
    /// Names of the ops.
    pub const NAMES: &[&str] = &["get", "set", "clear", "command"];

    /// Decodes an op.
    ///
    /// # Errors
    /// Those of decoding; `OutOfRange` at `/as_node`.
    pub fn decode(value: Value) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Get {}
        let (op, mut rest) = tagged(value, "op", Self::NAMES)?;
        Ok(match op.as_str() {
            "get" => {
                let Get {} = from_value(rest)?;
                GoalOp::Get
            }
            "set" => GoalOp::Set {
                objective: taken(&mut rest, "objective")?,
                write: write(rest)?,
            },
            "clear" => {
                for member in ["max_continuations", "max_no_progress_continuations"] {
                    if rest.get(member).is_some() {
                        return Err(Error::at(
                            ErrorCode::UnknownMember,
                            format!("/{member}"),
                            format!("{member} belongs to a goal that is set"),
                        ));
                    }
                }
                GoalOp::Clear(write(rest)?)
            }
            _ => GoalOp::Command {
                argument: taken(&mut rest, "argument")?,
                write: write(rest)?,
            },
        })
    }
}

/// Takes the text of a required member out of an op.
fn taken(rest: &mut Value, member: &str) -> Result<String, Error> {
    let found = rest
        .as_object_mut()
        .and_then(|members| members.shift_remove(member));
    match found {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(super::decode::wrong_type(&other, "text").below(&format!("/{member}"))),
        None => Err(Error::at(
            ErrorCode::MissingMember,
            format!("/{member}"),
            format!("{member:?} is missing"),
        )),
    }
}

fn write(rest: Value) -> Result<GoalWrite, Error> {
    from_value::<GoalWrite>(rest)?.checked()
}

/// The schema of [`GoalOp`].
pub fn goal_op() -> Value {
    let write = super::schema::of::<GoalWrite>();
    let of_write = |names: &[&str]| -> Map<String, Value> {
        let members = names.iter();
        members
            .map(|name| ((*name).to_owned(), write["properties"][name].clone()))
            .collect()
    };
    let limits = ["max_continuations", "max_no_progress_continuations"];
    let common = ["expected_checkpoint_id", "as_node"];
    let all = [limits, common].concat();
    let variant = |op: &str, about: &str, own: Value, names: &[&str]| {
        let mut properties = Map::from_iter([("op".to_owned(), json!({ "const": op }))]);
        let own = own.as_object().cloned().unwrap_or_default();
        let required: Vec<String> = own.keys().cloned().collect();
        properties.extend(own);
        properties.extend(of_write(names));
        json!({
            "description": about, "required": required, "properties": properties, "additionalProperties": false,
        })
    };
    json!({
        "type": "object",
        "required": ["op"],
        "oneOf": [
            variant("get", "Reads the goal. May be asked while a run is in flight.", json!({}), &[]),
            variant(
                "set",
                "Gives the thread a new goal, in place of one that it has: its counts begin at 0.",
                json!({"objective": {
                    "description": "What is to be reached: 1 to 4000 characters, once runs of white space are single spaces.",
                    "type": "string",
                }}),
                &all,
            ),
            variant("clear", "Takes the goal away. A thread that has none stays as it is.", json!({}), &common),
            variant(
                "command",
                "Does what a user wrote behind \"/goal\".",
                json!({"argument": {
                    "description": "Blank: get. clear, reset or off, in any case: clear. Anything else: set, with this as the objective.",
                    "type": "string",
                }}),
                &all,
            ),
        ],
    })
}

/// The schema of the answer of `fawn_thread_goal`.
pub fn goal_answer() -> Value {
    json!({
        "type": "object",
        "required": ["op", "goal", "checkpoint_id", "step"],
        "properties": {
            "op": {"description": "What was done; a command comes to one of these.", "enum": ["get", "set", "clear"]},
            "goal": goal("The thread's goal; null when it has none."),
            "checkpoint_id": {
                "description": "The newest checkpoint: of a write that changed something, the one that it made.",
                "type": ["string", "null"],
            },
            "step": {"description": "Of that checkpoint.", "type": ["integer", "null"]},
        },
    })
}

/// A goal as the channel `goal` holds it.
pub fn goal(about: &str) -> Value {
    json!({
        "description": format!("{about} The channel takes any value; one without an objective and the status active is judged by nobody."),
        "type": ["object", "null"],
        "properties": {
            "objective": {"description": "What is to be reached.", "type": "string"},
            "status": {"description": "Always active.", "type": "string"},
            "created_at": {"description": "When it was set; tells it from another of the same words.", "type": "string"},
            "updated_at": {"description": "When it was set or judged last.", "type": "string"},
            "continuation_count": {"description": "Turns that runs have added for it.", "type": "integer"},
            "max_continuations": {"type": "integer"},
            "no_progress_count": {"description": "Judgements in a row that saw no progress.", "type": "integer"},
            "max_no_progress_continuations": {"type": "integer"},
            "last_evaluation": evaluation("The last judgement; absent before the first."),
        },
    })
}

/// One judgement of a goal.
pub fn evaluation(about: &str) -> Value {
    json!({
        "description": about,
        "type": ["object", "null"],
        "properties": {
            "satisfied": {"type": "boolean"},
            "blocker": {
                "description": "What stands in the way: none, missing_evidence, needs_user_input, run_failed, external_wait or goal_not_met_yet, the only one for which a run goes on.",
                "type": "string",
            },
            "reason": {"type": "string"},
            "evidence_summary": {"type": "string"},
            "run_id": {"type": "string"},
            "evaluated_at": {"type": "string"},
            "progress_key": {"description": "Equal for two judgements between which nothing moved.", "type": "string"},
            "stand_down_reason": {
                "description": "Why the run did not go on: blocked:BLOCKER, max_continuations_reached, no_progress_detected, no_durable_end_of_turn, thread_changed_after_evaluation or thread_changed_before_continuation. Absent when it did.",
                "type": "string",
            },
            "relied_on_assumption": {
                "description": "Whether it counts as reached by way of an assumption that the agent has stated; only where nobody could be asked.",
                "type": "boolean",
            },
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    fn decoded(value: Value) -> Result<GoalOp, (ErrorCode, Option<String>)> {
        GoalOp::decode(value).map_err(|error| (error.code, error.path))
    }

    #[test]
    fn every_op_is_read_with_its_members() {
        assert_eq!(decoded(json!({"op": "get", "x-note": 1})), Ok(GoalOp::Get));
        let set = json!({
            "op": "set", "objective": "Ship it", "max_continuations": 99, "max_no_progress_continuations": -1,
            "expected_checkpoint_id": null, "as_node": "ui",
        });
        let write = GoalWrite {
            max_continuations: Some(99),
            max_no_progress_continuations: Some(-1),
            expected_checkpoint_id: None,
            as_node: Some("ui".to_owned()),
        };
        assert_eq!(write.node(), "ui");
        let objective = "Ship it".to_owned();
        assert_eq!(decoded(set), Ok(GoalOp::Set { objective, write }));
        let write = GoalWrite::default();
        assert_eq!(write.node(), "goal");
        assert_eq!(
            decoded(json!({"op": "clear"})),
            Ok(GoalOp::Clear(write.clone()))
        );
        let argument = String::new();
        assert_eq!(
            decoded(json!({"op": "command", "argument": ""})),
            Ok(GoalOp::Command { argument, write })
        );
    }

    #[test]
    fn faults_are_told_with_their_path() {
        use ErrorCode::{MissingMember, OutOfRange, UnknownMember, UnknownVariant, WrongType};
        for (value, code, path) in [
            (json!({}), MissingMember, "/op"),
            (json!({"op": "reset"}), UnknownVariant, "/op"),
            (
                json!({"op": "get", "objective": "x"}),
                UnknownMember,
                "/objective",
            ),
            (json!({"op": "set"}), MissingMember, "/objective"),
            (
                json!({"op": "set", "objective": 1}),
                WrongType,
                "/objective",
            ),
            (
                json!({"op": "set", "objective": null}),
                WrongType,
                "/objective",
            ),
            (
                json!({"op": "set", "objective": "x", "max_continuations": "8"}),
                WrongType,
                "/max_continuations",
            ),
            (
                json!({"op": "set", "objective": "x", "as_node": ""}),
                OutOfRange,
                "/as_node",
            ),
            (
                json!({"op": "clear", "max_continuations": 1}),
                UnknownMember,
                "/max_continuations",
            ),
            (
                json!({"op": "clear", "objective": "x"}),
                UnknownMember,
                "/objective",
            ),
            (json!({"op": "command"}), MissingMember, "/argument"),
        ] {
            assert_eq!(
                decoded(value.clone()),
                Err((code, Some(path.to_owned()))),
                "{value}"
            );
        }
    }
}
