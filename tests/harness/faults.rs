//! A store that fails at the n-th write, at every n: a run ends with a typed error, and memory never knows more than the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fawn::adapters::store::memory::MemoryStore;
use fawn::ports::checkpoint::{
    CheckpointMeta, CheckpointStore, HistoryQuery, NewCheckpoint, PendingWrite, StoredCheckpoint,
};
use fawn::protocol::error::{Error, ErrorCode};
use fawn::runtime::{Answer, Runtime, Wait};
use fawn::state::delta::StateDelta;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::parts::{ScriptModel, answer, calls, parts, says, tool};

/// Fails the write of number `fails_at`, counted from 1.
struct Failing {
    inner: MemoryStore,
    writes: AtomicUsize,
    fails_at: usize,
}

impl CheckpointStore for Failing {
    async fn open(&self, thread_id: &str) -> Result<Option<StoredCheckpoint>, Error> {
        CheckpointStore::open(&self.inner, thread_id).await
    }
    async fn load(&self, thread_id: &str, id: Uuid) -> Result<Option<StoredCheckpoint>, Error> {
        CheckpointStore::load(&self.inner, thread_id, id).await
    }
    async fn put(&self, thread_id: &str, checkpoint: NewCheckpoint) -> Result<(), Error> {
        if self.writes.fetch_add(1, Ordering::Relaxed) + 1 == self.fails_at {
            return Err(Error::new(ErrorCode::Store, "the disk is full"));
        }
        CheckpointStore::put(&self.inner, thread_id, checkpoint).await
    }
    async fn list(
        &self,
        thread_id: &str,
        query: HistoryQuery,
    ) -> Result<Vec<CheckpointMeta>, Error> {
        CheckpointStore::list(&self.inner, thread_id, query).await
    }
    async fn deltas(
        &self,
        thread_id: &str,
        after: Uuid,
        upto: Uuid,
    ) -> Result<Option<Vec<StateDelta>>, Error> {
        CheckpointStore::deltas(&self.inner, thread_id, after, upto).await
    }
    async fn put_writes(
        &self,
        thread_id: &str,
        checkpoint: Uuid,
        writes: Vec<PendingWrite>,
    ) -> Result<(), Error> {
        CheckpointStore::put_writes(&self.inner, thread_id, checkpoint, writes).await
    }
    async fn writes(&self, thread_id: &str, checkpoint: Uuid) -> Result<Vec<PendingWrite>, Error> {
        CheckpointStore::writes(&self.inner, thread_id, checkpoint).await
    }
    async fn delete(&self, thread_id: &str) -> Result<(), Error> {
        CheckpointStore::delete(&self.inner, thread_id).await
    }
}

#[test]
fn at_every_failing_write_the_run_ends_and_a_second_run_completes_what_was_stored() {
    // Input, model, tools, model: four writes.
    for fails_at in 1..=5 {
        let store = Failing {
            inner: MemoryStore::new(),
            writes: AtomicUsize::new(0),
            fails_at,
        };
        let runtime = Runtime::with_store(r#"{"workers":0}"#, Arc::new(store)).unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let counter = ran.clone();
        let mut parts = parts(ScriptModel::new(vec![
            calls(&[("f", "c1", json!({}))]),
            says("done"),
        ]));
        parts.tools = vec![tool("f", move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            async { answer("result") }
        })];
        let agent = runtime.compose(parts).unwrap();
        let thread = runtime.open_thread(r#"{"thread_id":"t"}"#).unwrap();
        let go = |request: Value| -> Value {
            let run = runtime
                .start_run(&agent, &thread, None, &request.to_string())
                .unwrap();
            let Ok(Answer::Done(result)) = run.wait(Wait::Forever) else {
                panic!("no result")
            };
            serde_json::from_str(&result).unwrap()
        };
        let texts = || -> Vec<String> {
            let state: Value = serde_json::from_str(&thread.state("{}").unwrap()).unwrap();
            let messages = state["values"]["messages"].as_array().unwrap().clone();
            messages
                .iter()
                .map(|m| m["content"].as_str().unwrap().to_owned())
                .collect()
        };
        let all = ["hello", "", "result", "done"];
        let first = go(json!({"input": {"messages": ["hello"]}}));
        if fails_at > 4 {
            assert_eq!(first["status"], "success");
            continue;
        }
        assert_eq!(first["error"]["code"], "store", "{first}");
        assert_eq!(
            texts(),
            all[..fails_at - 1],
            "what the store has, and no more"
        );
        // Going on does only what is missing.
        let before = ran.load(Ordering::Relaxed);
        let input = if fails_at == 1 {
            json!({"input": {"messages": ["hello"]}})
        } else {
            json!({})
        };
        assert_eq!(go(input)["status"], "success");
        assert_eq!(texts(), all);
        let again = ran.load(Ordering::Relaxed) - before;
        assert_eq!(
            again,
            usize::from(fails_at <= 3),
            "a stored result is not made again"
        );
    }
}
