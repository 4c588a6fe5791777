//! The goal of an open thread: what a host asks about it between runs, and what a run writes to it.
//!
//! A goal is set and taken away past the channel's reducer, by which no write can take one away (ST-8). Each write is a
//! checkpoint of its own, with the checkpoint that was read as its parent. Source: DeerFlow's goal writer, GOAL-20, GOAL-21.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::inject;
use super::sync::{block_on, lock};
use super::thread::{OpenThread, Resident, busy, decode_checkpoint};
use crate::agent::goal::{Command, Goal, command};
use crate::ports::checkpoint::{CheckpointMeta, NewCheckpoint, Source};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::goal::{GoalOp, GoalWrite};
use crate::protocol::json::parse;
use crate::state::Overlay;
use crate::state::channels::Channel;
use crate::state::delta::StateDelta;

impl OpenThread {
    /// `fawn_thread_goal`: reads, sets or clears the goal.
    ///
    /// # Errors
    /// Those of decoding; `OutOfRange` for an objective that is none; for writes also `ThreadBusy` while a run is in flight,
    /// `Conflict` when another checkpoint was expected, `UnknownCheckpoint` for an id that is none, and those of the store.
    pub fn goal(&self, json: &str) -> Result<String, Error> {
        let op = match GoalOp::decode(parse(json)?)? {
            GoalOp::Command { argument, write } => match command(&argument) {
                Command::Status => return self.read_goal(),
                Command::Clear => return self.write_goal("clear", None, &write),
                Command::Set => ("/argument", argument, write),
            },
            GoalOp::Get => return self.read_goal(),
            GoalOp::Clear(write) => return self.write_goal("clear", None, &write),
            GoalOp::Set { objective, write } => ("/objective", objective, write),
        };
        let (path, objective, write) = op;
        let goal = Goal::new(&objective, &write, self.services.clock.now())
            .map_err(|error| error.below(path))?;
        self.write_goal("set", Some(goal.to_value()), &write)
    }

    fn read_goal(&self) -> Result<String, Error> {
        let resident = self.fresh()?;
        Ok(answer("get", &resident))
    }

    /// Puts `goal` in the place of what the thread has.
    fn write_goal(
        &self,
        op: &'static str,
        goal: Option<Value>,
        write: &GoalWrite,
    ) -> Result<String, Error> {
        const EXPECTED: &str = "expected_checkpoint_id";
        let expected = decode_checkpoint(EXPECTED, write.expected_checkpoint_id.as_deref())?;
        // Held to the end, so that no run starts in between (RUN-24).
        let run = lock(&self.run);
        if run.as_ref().is_some_and(|run| !run.has_ended()) {
            return Err(busy(&self.id));
        }
        let mut resident = self.fresh()?;
        let head = resident.head.as_ref().map(|head| head.id);
        if expected.is_some() && expected != head {
            return Err(Error::at(
                ErrorCode::Conflict,
                format!("/{EXPECTED}"),
                "this is not the newest checkpoint of the thread",
            ));
        }
        let (overlay, delta) = staged(&resident, goal.clone())?;
        if delta.is_empty() {
            return Ok(answer(op, &resident));
        }
        inject::point("state");
        if head.is_none() {
            // A goal stands on a checkpoint: of a thread without one, the empty root comes first.
            let root = self.checkpoint(
                &resident,
                StateDelta::default(),
                Source::Input,
                None,
                Map::new(),
            );
            self.put_outside(&mut resident, root)?;
        }
        let metadata = metadata(write.node(), goal.as_ref());
        let checkpoint = self.checkpoint(&resident, delta, Source::Update, None, metadata);
        self.put_outside(&mut resident, checkpoint)?;
        resident.state.commit(overlay);
        Ok(answer(op, &resident))
    }

    /// Stores a checkpoint from outside of runs and makes it the newest.
    fn put_outside(&self, resident: &mut Resident, checkpoint: NewCheckpoint) -> Result<(), Error> {
        let meta = checkpoint.meta.clone();
        if let Err(error) = block_on(self.services.store.put(&self.id, checkpoint)) {
            let is_stale = error.code == ErrorCode::ThreadStale;
            resident.is_stale |= is_stale;
            // The next call reads the thread again.
            return Err(if is_stale { error.retryable() } else { error });
        }
        resident.head = Some(meta);
        Ok(())
    }

    /// The newest checkpoint as the store has it; reads the thread again when another process has written to it since. The
    /// caller is the run that holds the thread.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn sync(&self) -> Result<Option<Uuid>, Error> {
        let store = &self.services.store;
        let newest = crate::ports::checkpoint::HistoryQuery {
            limit: Some(1),
            before: None,
        };
        let newest = store.list(&self.id, newest).await?;
        let newest = newest.first().map(|meta| meta.id);
        if newest != self.head_id() {
            let stored = store.open(&self.id).await?;
            self.replace(stored);
        }
        Ok(self.head_id())
    }

    /// Whether steps of a run wait on a checkpoint that were never completed.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn has_pending_writes(&self, checkpoint: Uuid) -> Result<bool, Error> {
        let writes = self.services.store.writes(&self.id, checkpoint).await?;
        Ok(!writes.is_empty())
    }

    /// Writes the goal on behalf of the run that holds the thread; what the new checkpoint is.
    ///
    /// # Errors
    /// Those of the store: `ThreadStale` when another process has written. The thread is as it was then.
    pub(super) async fn write_goal_of_run(
        &self,
        goal: Option<Value>,
        run_id: &Arc<str>,
        node: &str,
    ) -> Result<CheckpointMeta, Error> {
        let metadata = metadata(node, goal.as_ref());
        let (overlay, checkpoint) = {
            let resident = self.fresh()?;
            let (overlay, delta) = staged(&resident, goal)?;
            let run_id = Some(run_id.clone());
            let checkpoint = self.checkpoint(&resident, delta, Source::Update, run_id, metadata);
            (overlay, checkpoint)
        };
        let meta = checkpoint.meta.clone();
        self.put(checkpoint).await?;
        self.commit(Some(meta.clone()), |state| state.commit(overlay));
        Ok(meta)
    }
}

/// The goal as a pending change.
fn staged(resident: &Resident, goal: Option<Value>) -> Result<(Overlay, StateDelta), Error> {
    let mut overlay = Overlay::new();
    resident.state.put(&mut overlay, Channel::Goal, goal)?;
    let delta = resident.state.delta(&overlay);
    Ok((overlay, delta))
}

/// Metadata of a goal's checkpoint: who wrote what.
fn metadata(node: &str, goal: Option<&Value>) -> Map<String, Value> {
    let writes = Map::from_iter([(node.to_owned(), json!({ "goal": goal }))]);
    Map::from_iter([
        ("as_node".to_owned(), node.into()),
        ("writes".to_owned(), Value::Object(writes)),
    ])
}

fn answer(op: &str, resident: &Resident) -> String {
    let overlay = Overlay::new();
    let goal = resident.state.view(&overlay).channel(Channel::Goal);
    let head = resident.head.as_ref();
    json!({
        "op": op,
        "goal": goal,
        "checkpoint_id": head.map(|head| head.id.to_string()),
        "step": head.map(|head| head.step),
    })
    .to_string()
}
