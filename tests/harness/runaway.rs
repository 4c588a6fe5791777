//! Runs whose model and tools do anything at all: each ends once, in time, and passes no limit.
//!
//! The test is the host: it answers as the model and as the tools, so what it is asked for is what the limits let through.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fawn::adapters::store::memory::MemoryStore;
use fawn::ports::checkpoint::DynCheckpointStore;
use fawn::runtime::{Answer, Assembly, Queue, Runtime, Wait};
use futures_util::FutureExt;
use serde_json::{Value, json};

use crate::support::random::Random;
use crate::support::request_invariant;

/// Most steps of a run.
const STEPS: u64 = 24;
/// Attempts at one model call.
const ATTEMPTS: u64 = 3;
/// Delegations of one reply, and of one run.
const DELEGATIONS: (usize, usize) = (2, 5);
/// How often the same set of calls comes before the run is ended (MW-LOOP-5).
const SAME_CALLS: usize = 5;
/// Longer than any run takes, silences and all, on the slowest machine.
const DEADLINE: Duration = Duration::from_secs(60);

fn runtime(store: Arc<dyn DynCheckpointStore>) -> Runtime {
    let config = json!({
        "workers": 0,
        "models": [{
            "name": "main", "provider": "host", "model": "m", "deadline_ms": 3,
            "max_retries": ATTEMPTS - 1, "retry_base_delay_ms": 0, "retry_cap_delay_ms": 1,
        }],
        "tools": [
            {"name": "read", "deadline_ms": 3, "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            {"name": "strict", "deadline_ms": 3, "parameters": {
                "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}},
            {"name": "task", "deadline_ms": 3},
        ],
        "loop_detection": {"warn_threshold": 3, "hard_limit": SAME_CALLS},
        "title": {"enabled": false},
    });
    Runtime::with_store(&config.to_string(), store).unwrap_or_else(|error| panic!("{error:?}"))
}

fn agent(runtime: &Runtime, is_plan_mode: bool) -> Assembly {
    let request = json!({
        "factory": "lead",
        "recursion_limit": STEPS,
        "configurable": {
            "subagent_enabled": true, "is_plan_mode": is_plan_mode,
            "max_concurrent_subagents": DELEGATIONS.0, "max_total_subagents": DELEGATIONS.1,
        },
    });
    let assembly = runtime.new_assembly(&request.to_string());
    assembly.unwrap_or_else(|error| panic!("{error:?}"))
}

/// What a model says next, and how badly.
fn reply(random: &mut Random) -> Value {
    let call = |random: &mut Random| {
        let (name, args) = match random.below(8) {
            0 | 1 => ("task", json!({"description": "d", "prompt": "p"})),
            2 => ("strict", json!({"x": 1})),
            3 => ("nothing", json!({})),
            4 => (
                "write_todos",
                json!({"todos": [{"content": "c", "status": "pending"}]}),
            ),
            5 => ("ask_clarification", json!({"question": "which?"})),
            _ => ("read", json!({"n": random.below(3)})),
        };
        let id = match random.below(6) {
            0 => Value::Null,
            1 => json!("again"),
            _ => json!(format!("c{}", random.next())),
        };
        json!({"id": id, "name": name, "args": args})
    };
    let mut calls: Vec<Value> = match random.below(12) {
        0 => (0..random.below(40)).map(|_| call(random)).collect(),
        1..=7 => (0..1 + random.below(3)).map(|_| call(random)).collect(),
        _ => Vec::new(),
    };
    let text = ["", " ", "some words", "more"][random.below(4) as usize];
    if random.below(10) == 0 {
        calls.push(json!({"id": "i", "name": "read", "args": "{\"n\":"}));
    }
    let mut reply = json!({"content": text, "tool_calls": calls});
    if random.below(8) == 0 {
        let reason = ["length", "content_filter", "stop"][random.below(3) as usize];
        reply["response_metadata"] = json!({ "finish_reason": reason });
    }
    reply
}

/// What was asked for on behalf of one run.
#[derive(Default)]
struct Asked {
    model_calls: u64,
    /// Attempts at each turn, by the key that all attempts at it share.
    attempts: HashMap<String, u64>,
    delegations: usize,
    /// Delegations by message.
    replies: HashMap<String, usize>,
    ends: Vec<String>,
}

struct Host<'a> {
    runtime: &'a Runtime,
    queue: &'a Queue,
    random: Random,
    /// What the model keeps saying, if it does.
    stuck: Option<Value>,
    /// How often it has said that.
    repeated: usize,
    /// How runs ended, and what stopped them.
    ends: HashMap<String, u32>,
}

impl Host<'_> {
    fn answer(&mut self, data: &Value, asked: &mut Asked) {
        let id = data["call_id"].as_u64().unwrap();
        let answer = match data["kind"].as_str() {
            Some("model") => {
                request_invariant::check_call(data);
                asked.model_calls += 1;
                let key = data["idempotency_key"].as_str().unwrap().to_owned();
                *asked.attempts.entry(key).or_default() += 1;
                self.as_model(id)
            }
            _ => {
                if data["name"] == "task" {
                    let key = data["idempotency_key"].as_str().unwrap();
                    let (message, _) = key.rsplit_once('/').unwrap();
                    asked.delegations += 1;
                    *asked.replies.entry(message.to_owned()).or_default() += 1;
                }
                self.as_tool()
            }
        };
        if let Some(answer) = answer {
            // A call whose deadline has passed is gone, which is fine.
            self.runtime.finish(id, &answer.to_string()).unwrap();
        }
    }

    fn as_model(&mut self, id: u64) -> Option<Value> {
        let fault = self.random.below(40);
        if let 0 | 1 = fault {
            // A part of a reply, and then what follows.
            let _ = self.runtime.emit(id, r#"{"text": "a part "}"#);
        }
        match fault {
            0 => Some(json!({"error": {"message": "connection lost", "retryable": true}})),
            1 => Some(json!({"error": {"message": "500 internal error", "retryable": false}})),
            2 => Some(
                json!({"error": {"message": "429 rate limit", "retryable": true, "retry_after_ms": 1}}),
            ),
            3 => Some(json!({"error": {"message": "500 internal error", "retryable": true}})),
            4 => Some(json!({"error": {"message": "401 unauthorized"}})),
            // Silence costs real time.
            5 if self.random.below(8) == 0 => None,
            _ => {
                let reply = match &self.stuck {
                    Some(stuck) => stuck.clone(),
                    None => reply(&mut self.random),
                };
                self.repeated += usize::from(self.stuck.is_some());
                if self.stuck.is_none() && self.random.below(12) == 0 {
                    self.repeated = 1;
                    self.stuck = Some(reply.clone());
                }
                Some(json!({ "ok": reply }))
            }
        }
    }

    fn as_tool(&mut self) -> Option<Value> {
        match self.random.below(12) {
            0 => Some(json!({"error": {"message": "it failed: rate limit"}})),
            1 if self.random.below(20) == 0 => None,
            2 => Some(json!({"ok": {"content": "Error: not found"}})),
            _ => Some(json!({"ok": "a result"})),
        }
    }

    /// One run on a fresh thread, to its end.
    fn run(&mut self, assembly: &Assembly, store: &dyn DynCheckpointStore) {
        let begun = Instant::now();
        let thread = self.runtime.open_thread("{}").unwrap();
        let input = json!({"input": {"messages": [{"role": "user", "content": "do it"}]}});
        let run = self
            .runtime
            .start_run(assembly, &thread, Some(self.queue), &input.to_string())
            .unwrap();
        (self.stuck, self.repeated) = (None, 0);
        let cancels_at = (self.random.below(25) == 0).then(|| self.random.below(30));
        let mut asked = Asked::default();
        let mut seen = 0;
        while asked.ends.is_empty() {
            let Answer::Done(events) = self.queue.take(Wait::For(DEADLINE), 16).unwrap() else {
                panic!("the run goes on for ever");
            };
            for event in serde_json::from_str::<Vec<Value>>(&events).unwrap() {
                seen += 1;
                if Some(seen) == cancels_at {
                    run.submit(r#"{"op": "cancel"}"#).unwrap();
                }
                match event["type"].as_str().unwrap() {
                    "host_call" => self.answer(&event["data"], &mut asked),
                    "run_end" => asked
                        .ends
                        .push(event["data"]["status"].as_str().unwrap().to_owned()),
                    _ => assert!(asked.ends.is_empty(), "an event after the end: {event}"),
                }
            }
        }
        assert!(begun.elapsed() < DEADLINE);
        let Answer::Done(result) = run.wait(Wait::For(Duration::ZERO)).unwrap() else {
            panic!("the run has ended and has no result");
        };
        let result: Value = serde_json::from_str(&result).unwrap();
        assert_eq!(
            asked.ends,
            [result["status"].as_str().unwrap()],
            "exactly one end"
        );
        self.check(&asked, &result);
        let deleted = store.delete(thread.id()).now_or_never();
        deleted.expect("the memory store answers at once").unwrap();
        for end in [
            &result["status"],
            &result["stop_reason"],
            &result["error"]["code"],
        ] {
            if let Some(end) = end.as_str() {
                *self.ends.entry(end.to_owned()).or_default() += 1;
            }
        }
    }

    fn check(&self, asked: &Asked, result: &Value) {
        let turns = asked.attempts.len() as u64;
        assert!(
            turns <= STEPS,
            "{turns} model calls of {STEPS} steps: {result}"
        );
        for (turn, attempts) in &asked.attempts {
            assert!(
                *attempts <= ATTEMPTS,
                "{attempts} attempts at {turn}: {result}"
            );
        }
        assert!(asked.model_calls <= STEPS * ATTEMPTS);
        assert!(
            asked.delegations <= DELEGATIONS.1,
            "{} delegations: {result}",
            asked.delegations
        );
        for delegations in asked.replies.values() {
            assert!(
                *delegations <= DELEGATIONS.0,
                "{delegations} delegations at once: {result}"
            );
        }
        assert!(
            self.repeated <= SAME_CALLS,
            "the model said the same {} times: {result}",
            self.repeated
        );
    }
}

#[test]
fn whatever_model_and_tools_do_each_run_ends_once_and_within_its_limits() {
    let runs = std::env::var("FAWN_RUNAWAY").ok();
    let runs = runs.and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let store: Arc<dyn DynCheckpointStore> = Arc::new(MemoryStore::new());
    let runtime = runtime(store.clone());
    let queue = runtime.new_queue("{}").unwrap();
    let agents = [agent(&runtime, false), agent(&runtime, true)];
    let mut host = Host {
        runtime: &runtime,
        queue: &queue,
        random: Random::new(20_000),
        stuck: None,
        repeated: 0,
        ends: HashMap::new(),
    };
    for run in 0..runs {
        host.run(&agents[run % 2], store.as_ref());
    }
    for end in [
        "success",
        "error",
        "interrupted",
        "loop_capped",
        "subagent_limit_capped",
        "model_length_capped",
        "safety_capped",
        "recursion_limit",
        "model_host",
    ] {
        let ends = &host.ends;
        assert!(
            runs < 20_000 || ends.contains_key(end),
            "some runs end so: {ends:?}"
        );
    }
}
