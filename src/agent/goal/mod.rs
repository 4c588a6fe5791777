//! The goal of a thread: what it holds, how it is judged after a turn, and what follows. Pure; `runtime/goal_loop.rs` does
//! what has to be done.
//!
//! A goal belongs to a thread, whichever assembly runs on it. After each turn that ended well the run reads the goal, shows a
//! model the end of the conversation, and either takes the goal away because it is reached, adds a turn of its own, or
//! stands down and says why. Source: DeerFlow's goal runtime and run worker, GOAL-1 to GOAL-26.

mod continuation;
mod decision;
mod evaluator;
mod evidence;
mod state;

pub use continuation::{CONTINUATION_MARK, continuation};
pub use decision::{Decision, Judged, StandDown, decide};
pub use evaluator::{Evaluator, parse, question};
pub use evidence::{Evidence, ends_with_answer, signature};
pub use state::{
    Blocker, Command, Evaluation, Goal, MAX_CONTINUATIONS, MAX_OBJECTIVE_CHARS, Turn, command,
};
