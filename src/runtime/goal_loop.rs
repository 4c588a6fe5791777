//! After each turn of a run: the thread's goal is judged, and the run adds a turn, or ends.
//!
//! The rules are in `agent/goal`. Here is what waits: the store, the model that judges, the events. Whatever goes wrong here
//! ends the run as it would have ended without a goal: the turn before is stored and stands. Source: DeerFlow's run worker,
//! GOAL-12 to GOAL-24.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::guarded::Guarded;
use super::ids::Ids;
use super::worker::{RunTask, SilentSink};
use crate::agent::goal::{
    Blocker, Decision, Evaluation, Evidence, Goal, Judged, StandDown, Turn, continuation, decide,
    ends_with_answer, parse, question, signature,
};
use crate::agent::step::Outcome;
use crate::middleware::is_error_fallback;
use crate::ports::host::RunContext;
use crate::ports::model::{DynModelProvider, Purpose, Usage};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::Kind;
use crate::protocol::run::RunStatus;
use crate::protocol::warning::Warning;
use crate::state::Overlay;
use crate::state::channels::Channel;
use crate::state::ids::IdSource;
use crate::state::update::StateUpdate;

/// Who writes goals and continuations, in metadata and events.
const NODE: &str = "goal_evaluator";

/// What follows after a turn.
pub enum Next {
    /// The run ends as the turn did.
    End,
    /// The run was cancelled while its goal was judged.
    Cancelled,
    /// Another turn, begun by this.
    Turn(StateUpdate),
}

/// The goal side of one run.
pub struct GoalLoop {
    /// Turns that the run has added (GOAL-26).
    added: u64,
    /// The model that judges, once it was needed (GOAL-8).
    model: Option<Arc<dyn DynModelProvider>>,
}

/// Why nothing came of a judgement.
enum Stop {
    /// The run was cancelled.
    Cancelled,
    /// There is no goal any more, or another (GOAL-16, GOAL-24).
    GoalChanged,
    /// Nobody could judge (GOAL-15).
    Evaluator(String),
    /// The store failed, or another process wrote (GOAL-13, GOAL-17).
    Store(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Store(error)
    }
}

impl GoalLoop {
    /// Nothing was judged yet.
    pub fn new() -> Self {
        GoalLoop {
            added: 0,
            model: None,
        }
    }

    /// What follows after a turn that ended like `outcome` (GOAL-12). Costs a look at a channel when there is no goal.
    pub async fn after_turn(
        &mut self,
        task: &RunTask,
        context: &Arc<RunContext>,
        outcome: &Outcome,
        ids: &mut Ids,
    ) -> Next {
        if outcome.status != RunStatus::Success || task.shared.switch.is_cancelled() {
            return Next::End;
        }
        let Some(goal) = task.goal().filter(|_| !task.ended_in_fallback()) else {
            return Next::End;
        };
        match self.judge(task, context, &goal, ids).await {
            Ok(next) => next,
            Err(Stop::Cancelled) => Next::Cancelled,
            Err(stop) => {
                let reason = match stop {
                    Stop::Cancelled | Stop::GoalChanged => "goal_changed",
                    Stop::Evaluator(why) => {
                        let warning = Warning::GoalEvaluationFailed;
                        task.events.warn(warning, || why);
                        "evaluator_failed"
                    }
                    Stop::Store(error) if error.code == ErrorCode::ThreadStale => {
                        task.events.warn(Warning::ThreadStale, || error.message);
                        "thread_stale"
                    }
                    Stop::Store(error) => {
                        task.events.warn(Warning::GoalNotStored, || error.message);
                        "store_failed"
                    }
                };
                let told = Told {
                    reason: Some(reason.to_owned()),
                    ..Told::default()
                };
                task.tell("stopped", &goal, told);
                Next::End
            }
        }
    }

    async fn judge(
        &mut self,
        task: &RunTask,
        context: &Arc<RunContext>,
        seen: &Goal,
        ids: &mut Ids,
    ) -> Result<Next, Stop> {
        let head = task.thread.sync().await?.ok_or(Stop::GoalChanged)?;
        let goal = task.goal_like(seen)?;
        let is_durable = !task.thread.has_pending_writes(head).await?;
        let (has_answer, evidence, before) = task.thread.with_state(|state| {
            let overlay = Overlay::new();
            let view = state.view(&overlay);
            let has_answer = ends_with_answer(&view);
            (has_answer, Evidence::of(&view), signature(&view))
        });
        if !is_durable || !has_answer {
            let why = "The turn did not end with a stored answer of the agent.";
            let evaluation = Evaluation::unmet(Blocker::RunFailed, why);
            let judgement = Judgement::unasked(&goal, evaluation, evidence.as_ref());
            let why = StandDown::NoDurableEndOfTurn;
            return task.stand_down(&goal, &judgement, why).await;
        }
        task.tell("evaluating", &goal, Told::default());
        let judgement = self
            .evaluate(task, context, &goal, evidence.as_ref())
            .await?;

        let changed = task.thread.sync().await? != Some(head);
        let goal = task.goal_like(&goal)?;
        if changed {
            let why = StandDown::ChangedAfterEvaluation;
            return task.stand_down(&goal, &judgement, why).await;
        }
        match decide(&goal, &judgement.judged, self.added) {
            Decision::Achieved => {
                task.write_goal(None).await?;
                task.tell("satisfied", &goal, task.told(&judgement, None));
                Ok(Next::End)
            }
            Decision::StandDown(why) => task.stand_down(&goal, &judgement, why).await,
            Decision::Continue => {
                let continued = judgement.judged.on(&goal, task.turn(), None, true);
                let written = task.write_goal(Some(continued.to_value())).await?;
                let newest = task.thread.sync().await?;
                if newest != Some(written) {
                    let goal = task.goal_like(&continued)?;
                    let now = task
                        .thread
                        .with_state(|state| signature(&state.view(&Overlay::new())));
                    if now != before {
                        let why = StandDown::ChangedBeforeContinuation;
                        return task.stand_down(&goal, &judgement, why).await;
                    }
                }
                task.tell("continuing", &goal, task.told(&judgement, None));
                self.added += 1;
                let message = continuation(&goal, &judgement.judged.evaluation, ids.next_id());
                Ok(Next::Turn(
                    StateUpdate::messages(vec![message]).written_by(NODE),
                ))
            }
        }
    }

    async fn evaluate(
        &mut self,
        task: &RunTask,
        context: &Arc<RunContext>,
        goal: &Goal,
        evidence: Option<&Evidence>,
    ) -> Result<Judgement, Stop> {
        let Some(evidence) = evidence else {
            // GOAL-7
            let why = "The conversation has no words of the agent.";
            let evaluation = Evaluation::unmet(Blocker::MissingEvidence, why);
            return Ok(Judgement::unasked(goal, evaluation, None));
        };
        let failed = |error: Error| {
            Stop::Evaluator(format!("the goal could not be judged: {}", error.message))
        };
        let unattended = task.assembly.evaluator().unattended;
        let model = self.model(task).map_err(failed)?;
        let (mut request, _) = question(goal, evidence, unattended).into_request(context.clone());
        request.purpose = Purpose::Goal;
        let mut sink = SilentSink {
            events: &task.events,
        };
        let call = Guarded::new(model.call_boxed(&request, &mut sink));
        let reply = tokio::select! {
            biased;
            () = task.shared.switch.cancelled() => return Err(Stop::Cancelled),
            reply = call => reply,
        };
        let reply = reply
            .map_err(|panic| Stop::Evaluator(format!("judging the goal panicked: {panic}")))?
            .map_err(|failure| failed(failure.error))?;
        let evaluation = parse(&reply.content, unattended).map_err(failed)?;
        Ok(Judgement {
            judged: Judged::new(goal, evaluation, &evidence.answer_signature),
            usage: reply.usage,
        })
    }

    fn model(&mut self, task: &RunTask) -> Result<Arc<dyn DynModelProvider>, Error> {
        if let Some(model) = &self.model {
            return Ok(model.clone());
        }
        let model = match &task.assembly.evaluator().model {
            Some(make) => make()?,
            None => task.assembly.model.clone(),
        };
        self.model = Some(model.clone());
        Ok(model)
    }
}

/// A judgement and what it cost.
struct Judgement {
    judged: Judged,
    usage: Option<Usage>,
}

impl Judgement {
    /// One that no model made.
    fn unasked(goal: &Goal, evaluation: Evaluation, evidence: Option<&Evidence>) -> Self {
        let signature = evidence.map_or("", |evidence| &evidence.answer_signature);
        Judgement {
            judged: Judged::new(goal, evaluation, signature),
            usage: None,
        }
    }
}

/// What an event says besides its status.
#[derive(Default)]
struct Told {
    reason: Option<String>,
    evaluation: Option<Map<String, Value>>,
    usage: Option<Usage>,
}

impl RunTask {
    /// The active goal of the thread, if there is one (GOAL-13).
    fn goal(&self) -> Option<Goal> {
        self.thread.with_state(|state| {
            let overlay = Overlay::new();
            let view = state.view(&overlay);
            view.channel(Channel::Goal).and_then(Goal::read)
        })
    }

    /// The goal as it is now, if it is still `known`.
    fn goal_like(&self, known: &Goal) -> Result<Goal, Stop> {
        let goal = self.goal().filter(|goal| goal.is_same(known));
        goal.ok_or(Stop::GoalChanged)
    }

    /// Whether the newest answer only stands in for one that never came (RUN-35).
    fn ended_in_fallback(&self) -> bool {
        self.thread.with_state(|state| {
            let overlay = Overlay::new();
            let view = state.view(&overlay);
            let newest = view
                .messages()
                .rev()
                .find(|message| message.kind() == Kind::Ai);
            newest.is_some_and(is_error_fallback)
        })
    }

    fn turn(&self) -> Turn<'_> {
        Turn {
            run_id: &self.shared.run_id,
            at: self.events.now(),
        }
    }

    fn told(&self, judgement: &Judgement, why: Option<StandDown>) -> Told {
        Told {
            reason: why.map(|why| why.to_string()),
            evaluation: Some(judgement.judged.to_members(self.turn(), why)),
            usage: judgement.usage.clone(),
        }
    }

    /// Stores a judgement that ends the run, and why.
    async fn stand_down(
        &self,
        goal: &Goal,
        judgement: &Judgement,
        why: StandDown,
    ) -> Result<Next, Stop> {
        let judged = judgement.judged.on(goal, self.turn(), Some(why), false);
        self.write_goal(Some(judged.to_value())).await?;
        self.tell("stood_down", goal, self.told(judgement, Some(why)));
        Ok(Next::End)
    }

    /// Stores the goal and tells of it (GOAL-22).
    async fn write_goal(&self, goal: Option<Value>) -> Result<Uuid, Error> {
        let run_id = &self.shared.run_id;
        let meta = self.thread.write_goal_of_run(goal, run_id, NODE).await?;
        self.tell_values();
        self.events.checkpoint(&meta);
        Ok(meta.id)
    }

    /// `goal`: `status`, and the goal as the channel has it now.
    fn tell(&self, status: &str, judged: &Goal, told: Told) {
        self.events.goal(|| {
            let goal = self.thread.with_state(|state| {
                let overlay = Overlay::new();
                let view = state.view(&overlay);
                view.channel(Channel::Goal)
                    .filter(|goal| goal.is_object())
                    .cloned()
            });
            json!({
                "status": status,
                "objective": judged.objective(),
                "reason": told.reason,
                "goal": goal,
                "evaluation": told.evaluation,
                "usage": told.usage.map(|usage| usage.to_value()),
            })
        });
    }
}
