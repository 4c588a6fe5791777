//! Delegation as a whole: a lead agent's `task` calls, the runs of its subagents, and what a host hears of them.

use std::collections::HashMap;
use std::time::Duration;

use fawn::runtime::{Answer, Assembly, Queue, Run, Runtime, Subagents, Thread, Wait};
use serde_json::{Value, json};

use crate::support::request_invariant;

/// A runtime whose lead agent and subagents are models that the test answers as host: `main` and `worker`.
fn runtime(workers: u32, sections: Value) -> Runtime {
    let mut config = json!({
        "workers": workers,
        "models": [
            {"name": "main", "provider": "host", "model": "main"},
            {"name": "worker", "provider": "host", "model": "worker"},
        ],
        "title": {"enabled": false},
        "subagents": {"agents": {"general-purpose": {"model": "worker"}}},
        "tools": [{"name": "look", "description": "Looks"}],
    });
    let members = config.as_object_mut().unwrap();
    members.extend(sections.as_object().unwrap().clone());
    Runtime::new(&config.to_string()).unwrap_or_else(|error| panic!("{error:?}"))
}

fn lead(runtime: &Runtime, places: Option<&Subagents>) -> Assembly {
    let mut config = json!({
        "factory": "lead",
        "configurable": {"subagent_enabled": true, "thinking_enabled": false, "max_total_subagents": 50},
    });
    if places.is_some() {
        config["subagent_runtime"] = 1.into();
    }
    runtime
        .new_assembly_with(&config.to_string(), &|_| Ok(places.unwrap().clone()))
        .unwrap_or_else(|error| panic!("{error:?}"))
}

fn places(runtime: &Runtime, config: Value) -> Subagents {
    let config = json!({"config": config, "max_total_per_run": 50});
    runtime.new_subagents(&config.to_string()).unwrap()
}

fn task(id: &str) -> Value {
    task_for(id, "general-purpose")
}

fn task_for(id: &str, kind: &str) -> Value {
    json!({"name": "task", "id": id, "args": {"description": format!("Do {id}"), "prompt": format!("Work on {id}."), "subagent_type": kind}})
}

/// A run that the test drives.
struct Play {
    runtime: Runtime,
    thread: Thread,
    queue: Queue,
    run: Option<Run>,
    events: Vec<Value>,
}

impl Play {
    fn new(runtime: &Runtime) -> Self {
        Play {
            runtime: runtime.clone(),
            thread: runtime.open_thread("{}").unwrap(),
            queue: runtime.new_queue("{}").unwrap(),
            run: None,
            events: Vec::new(),
        }
    }

    fn start(&mut self, agent: &Assembly, text: &str) {
        let request = json!({"input": {"messages": [{"role": "user", "content": text}]}, "stream": ["updates", "custom"]});
        let run =
            self.runtime
                .start_run(agent, &self.thread, Some(&self.queue), &request.to_string());
        self.run = Some(run.unwrap());
    }

    fn op(&self, op: Value) -> Value {
        let answer = self.run.as_ref().unwrap().submit(&op.to_string()).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    fn finish(&self, call: &Value, answer: &Value) {
        let id = call["call_id"].as_u64().unwrap();
        self.runtime.finish(id, &answer.to_string()).unwrap();
    }

    /// Takes events up to and with the first that `stops`; host calls in between are the test's to answer.
    fn until(&mut self, stops: impl Fn(&Value) -> bool) -> Value {
        loop {
            let Answer::Done(events) = self
                .queue
                .take(Wait::For(Duration::from_secs(20)), 1)
                .unwrap()
            else {
                panic!("no events; so far {:#?}", self.events);
            };
            let mut events: Vec<Value> = serde_json::from_str(&events).unwrap();
            let event = events.remove(0);
            if event["type"] == "host_call" {
                request_invariant::check_call(&event["data"]);
            }
            self.events.push(event.clone());
            if stops(&event) {
                return event;
            }
        }
    }

    /// The next question to the host, with its envelope.
    fn call(&mut self) -> Value {
        self.until(|event| event["type"] == "host_call")
    }

    /// Answers models by name and tools by theirs until the run is over; its result.
    fn finish_run(&mut self, mut answer: impl FnMut(&Value) -> Value) -> Value {
        loop {
            let event =
                self.until(|event| event["type"] == "host_call" || event["type"] == "run_end");
            if event["type"] == "run_end" {
                self.run = None;
                return event["data"].clone();
            }
            let said = answer(&event);
            self.finish(&event["data"], &said);
        }
    }

    fn of(&self, kind: &str) -> Vec<&Value> {
        let events = self.events.iter().filter(|event| event["type"] == kind);
        events.map(|event| &event["data"]).collect()
    }

    fn state(&self) -> Value {
        let state: Value = serde_json::from_str(&self.thread.state("{}").unwrap()).unwrap();
        state["values"].clone()
    }

    /// The results of `task` calls, by call.
    fn results(&self) -> HashMap<String, Value> {
        let state = self.state();
        let messages = state["messages"].as_array().unwrap().iter();
        let tools = messages.filter(|message| message["type"] == "tool");
        tools
            .map(|message| {
                let id = message["tool_call_id"].as_str().unwrap();
                (id.to_owned(), message.clone())
            })
            .collect()
    }
}

fn says(text: &str) -> Value {
    json!({"ok": {"content": text, "usage": {"input_tokens": 7, "output_tokens": 3}}})
}

fn calls(calls: Value) -> Value {
    json!({"ok": {"content": "", "tool_calls": calls}})
}

/// A lead agent that delegates `tasks` once and then says "Done.".
fn delegating(tasks: Value) -> impl FnMut(&Value) -> Option<Value> {
    let mut asked = false;
    move |event: &Value| {
        let is_lead = event["data"]["kind"] == "model" && event["data"]["name"] == "main";
        is_lead.then(|| match std::mem::replace(&mut asked, true) {
            false => calls(tasks.clone()),
            true => says("Done."),
        })
    }
}

#[test]
fn sub_2_43_48_a_delegation_comes_back_as_a_task_message_with_its_facts() {
    for workers in [0, 2] {
        let runtime = runtime(workers, json!({}));
        let agent = lead(&runtime, None);
        let mut play = Play::new(&runtime);
        play.start(&agent, "Go");
        let mut lead = delegating(json!([task("t1")]));
        let end = play.finish_run(|event| lead(event).unwrap_or_else(|| says("  It is blue. ")));
        assert_eq!(end["status"], "success", "{end}");
        let result = &play.results()["t1"];
        assert_eq!(result["name"], "task");
        assert_eq!(result["content"], "Task Succeeded. Result:   It is blue. ");
        let facts = &result["additional_kwargs"];
        assert_eq!(facts["subagent_status"], "completed");
        assert_eq!(facts["subagent_result_brief"], "It is blue.");
        assert_eq!(facts["subagent_model_name"], "worker");
        assert_eq!(
            facts["subagent_token_usage"],
            json!({"input_tokens": 7, "output_tokens": 3, "total_tokens": 10})
        );
        assert_eq!(play.state()["delegations"][0]["status"], "completed");
    }
}

#[test]
fn sub_55_the_tokens_of_a_delegation_count_once_everywhere() {
    let runtime = runtime(0, json!({}));
    let agent = lead(&runtime, None);
    let mut play = Play::new(&runtime);
    play.start(&agent, "Go");
    let mut lead = delegating(json!([task("t1"), task("t2")]));
    let mut looked = HashMap::new();
    let end = play.finish_run(|event| {
        if let Some(answer) = lead(event) {
            return answer;
        }
        if event["data"]["kind"] == "tool" {
            return json!({"ok": "seen"});
        }
        let task = event["task_id"].as_str().unwrap().to_owned();
        match looked.insert(task, ()) {
            None => json!({"ok": {"content": "", "tool_calls": [{"name": "look", "args": {}, "id": "l"}],
                                  "usage": {"input_tokens": 7, "output_tokens": 3}}}),
            Some(()) => says("Seen."),
        }
    });
    let each = json!({"input_tokens": 14, "output_tokens": 6, "total_tokens": 20});
    for event in play.of("task_completed") {
        assert_eq!(event["usage"], each);
    }
    for result in play.results().values() {
        assert_eq!(result["additional_kwargs"]["subagent_token_usage"], each);
    }
    assert_eq!(
        end["subagent_usage"],
        json!({"input_tokens": 28, "output_tokens": 12, "total_tokens": 40})
    );
    // The usage of the agent's own turns is its own.
    assert_eq!(end["usage"]["total_tokens"], 10);
}

#[test]
fn sub_49_50_events_tell_of_the_beginning_each_step_and_the_end() {
    let runtime = runtime(0, json!({}));
    let agent = lead(&runtime, None);
    let mut play = Play::new(&runtime);
    play.start(&agent, "Go");
    let mut lead = delegating(json!([task("t1")]));
    let mut looked = false;
    play.finish_run(|event| {
        lead(event).unwrap_or_else(|| match (event["data"]["kind"] == "tool", looked) {
            (true, _) => {
                assert_eq!(event["task_id"], "t1");
                json!({"ok": "seen"})
            }
            (false, false) => {
                looked = true;
                calls(json!([{"name": "look", "args": {}, "id": "l1"}]))
            }
            (false, true) => says("It is blue."),
        })
    });
    assert_eq!(
        play.of("task_started"),
        [
            &json!({"task_id": "t1", "subagent_type": "general-purpose", "description": "Do t1", "model_name": "worker"})
        ]
    );
    let steps = play.of("task_running");
    let told: Vec<_> = steps
        .iter()
        .map(|step| {
            (
                step["message"]["type"].as_str().unwrap(),
                &step["message_index"],
            )
        })
        .collect();
    assert_eq!(
        told,
        [("ai", &json!(1)), ("tool", &json!(2)), ("ai", &json!(3))]
    );
    assert_eq!(steps[2]["usage"]["total_tokens"], 10, "cumulative");
    let place = |what: &dyn Fn(&Value) -> bool| play.events.iter().position(what).unwrap();
    let first = place(&|event| event["type"] == "task_running");
    let second_question =
        place(&|event| event["type"] == "host_call" && event["data"]["kind"] == "tool");
    assert!(first < second_question, "a step is told of when it is done");
    let ended = play.of("task_completed")[0];
    assert_eq!(ended["result"], "It is blue.");
    assert!(ended["stop_reason"].is_null() && ended.get("stop_reason").is_some());
    // What a subagent writes is told by its steps alone: events of the run are the agent's.
    let told = play.of("update").into_iter().chain(play.of("message"));
    for update in told {
        assert!(!update.to_string().contains("\"seen\""), "{update:#}");
    }
    let numbers: Vec<u64> = play
        .events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert!(
        numbers.is_sorted_by(|a, b| a < b),
        "one count for run and subagents: {numbers:?}"
    );
}

#[test]
fn sub_21_u4_a_child_leaves_no_checkpoint_and_no_message_on_the_thread() {
    let runtime = runtime(0, json!({}));
    let agent = lead(&runtime, None);
    let mut history = Vec::new();
    for tasks in [
        json!([{"name": "look", "args": {}, "id": "l1"}]),
        json!([task("t1"), task("t2")]),
    ] {
        let mut play = Play::new(&runtime);
        play.start(&agent, "Go");
        let mut lead = delegating(tasks);
        play.finish_run(|event| {
            lead(event).unwrap_or_else(|| match event["data"]["kind"] == "tool" {
                true => json!({"ok": "seen"}),
                false => says("Fine."),
            })
        });
        let list: Vec<Value> = serde_json::from_str(&play.thread.history("{}").unwrap()).unwrap();
        history.push(list.len());
        let messages = play.state()["messages"].as_array().unwrap().len();
        assert!(messages <= 6, "{:#?}", play.state());
    }
    assert!(
        history[1] <= history[0] + 2,
        "only the ledger adds: {history:?}"
    );
}

#[test]
fn u9_a_forged_task_call_of_a_child_is_an_error_result_and_starts_nobody() {
    let runtime = runtime(0, json!({}));
    let agent = lead(&runtime, None);
    let mut play = Play::new(&runtime);
    play.start(&agent, "Go");
    let mut lead = delegating(json!([task("t1")]));
    let mut forged = false;
    play.finish_run(|event| {
        lead(event).unwrap_or_else(|| match std::mem::replace(&mut forged, true) {
            false => {
                let tools = event["data"]["args"]["tools"].to_string();
                assert!(!tools.contains("\"task\""), "{tools}");
                calls(json!([task("n1")]))
            }
            true => says("I did it myself."),
        })
    });
    assert_eq!(play.of("task_started").len(), 1);
    let steps = play.of("task_running");
    let refused = &steps[1]["message"];
    assert_eq!(
        (&refused["type"], &refused["status"]),
        (&json!("tool"), &json!("error"))
    );
}

#[test]
fn sub_30_a_delegation_whose_time_is_over_ends_timed_out_and_its_calls_are_void() {
    let sections = json!({"subagents": {"agents": {"general-purpose": {"model": "worker", "timeout_seconds": 1}}}});
    let runtime = runtime(0, sections);
    let agent = lead(&runtime, None);
    let mut play = Play::new(&runtime);
    play.start(&agent, "Go");
    let first = play.call();
    play.finish(&first["data"], &calls(json!([task("t1")])));
    let of_child = play.call();
    assert_eq!(of_child["task_id"], "t1");
    play.until(|event| event["type"] == "task_timed_out");
    let void = play.of("host_call_cancelled");
    assert_eq!(void[0]["call_id"], of_child["data"]["call_id"]);
    let end = play.finish_run(|_| says("It took too long."));
    assert_eq!(end["status"], "success");
    let result = &play.results()["t1"];
    assert_eq!(result["additional_kwargs"]["subagent_status"], "timed_out");
    assert_eq!(
        result["content"],
        "Task timed out. Error: Execution timed out after 1 seconds"
    );
    assert_eq!(play.state()["delegations"][0]["status"], "timed_out");
}

#[test]
fn rt_31_36_without_a_place_a_delegation_fails_by_name() {
    let runtime = runtime(0, json!({}));
    let places = places(&runtime, json!({"max_running": 2, "max_queued": 0}));
    let agent = lead(&runtime, Some(&places));
    let (mut first, mut second) = (Play::new(&runtime), Play::new(&runtime));
    first.start(&agent, "Go");
    let call = first.call();
    first.finish(&call["data"], &calls(json!([task("t1"), task("t2")])));
    let held = [first.call(), first.call()];
    second.start(&agent, "Go");
    let mut lead = delegating(json!([task("t3")]));
    second.finish_run(|event| lead(event).unwrap());
    let result = &second.results()["t3"];
    assert_eq!(
        result["content"],
        "Task failed. Error: Subagent execution capacity is full (2 running, 0 queued)"
    );
    assert_eq!(second.of("task_failed").len(), 1);
    for call in held {
        first.finish(&call["data"], &says("Held."));
    }
    first.finish_run(|_| says("Done."));
}

#[test]
fn rt_42_43_a_host_ends_one_delegation_whether_it_waits_or_works() {
    let runtime = runtime(0, json!({}));
    let places = places(&runtime, json!({"max_running": 1}));
    let config = json!({"factory": "lead", "subagent_runtime": 1, "configurable": {"subagent_enabled": true, "thinking_enabled": false}});
    let agent = runtime
        .new_assembly_with(&config.to_string(), &|_| Ok(places.clone()))
        .unwrap();
    let (mut working, mut waiting) = (Play::new(&runtime), Play::new(&runtime));
    working.start(&agent, "Go");
    let call = working.call();
    working.finish(&call["data"], &calls(json!([task("t1")])));
    let of_child = working.call();
    waiting.start(&agent, "Go");
    let call = waiting.call();
    waiting.finish(&call["data"], &calls(json!([task("t1")])));
    waiting.until(|event| event["type"] == "task_started");
    assert_eq!(
        waiting.op(json!({"op": "cancel_task", "task_id": "t9"})),
        json!({"cancelled": false})
    );
    assert_eq!(
        waiting.op(json!({"op": "cancel_task", "task_id": "t1", "reason": "too slow"})),
        json!({"cancelled": true})
    );
    let end = waiting.finish_run(|event| {
        assert_eq!(event["data"]["name"], "main", "a queued child never runs");
        says("Noted.")
    });
    assert_eq!(end["status"], "success");
    assert_eq!(
        waiting.results()["t1"]["content"],
        "Task cancelled by user. Error: Cancelled by user"
    );
    assert_eq!(
        working.op(json!({"op": "cancel_task", "task_id": "t1"})),
        json!({"cancelled": true})
    );
    let end = working.finish_run(|_| says("Noted."));
    assert_eq!(end["status"], "success");
    assert_eq!(
        working.of("host_call_cancelled")[0]["call_id"],
        of_child["data"]["call_id"]
    );
    let facts = &working.results()["t1"]["additional_kwargs"];
    assert_eq!(facts["subagent_status"], "cancelled");
    // It alone was ended, which a watcher can tell from the end of the run.
    for (play, reason) in [(&waiting, json!("too slow")), (&working, Value::Null)] {
        let [event] = play.of("task_cancelled")[..] else {
            panic!("one end");
        };
        let told = (&event["error"], &event["scope"], &event["reason"]);
        assert_eq!(told, (&json!("Cancelled by user"), &json!("task"), &reason));
    }
    let stats: Value = serde_json::from_str(&places.stats()).unwrap();
    assert_eq!(
        (&stats["running"], &stats["queued"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn sub_42_u7_a_cancelled_run_ends_its_subagents_at_once_and_leaves_nothing_behind() {
    for workers in [0, 2] {
        let runtime = runtime(workers, json!({}));
        let places = places(&runtime, json!({"max_running": 2}));
        let agent = lead(&runtime, Some(&places));
        let mut play = Play::new(&runtime);
        play.start(&agent, "Go");
        let call = play.call();
        play.finish(&call["data"], &calls(json!([task("t1"), task("t2")])));
        play.call();
        play.call();
        play.op(json!({"op": "cancel", "reason": "enough"}));
        let end = play.finish_run(|_| panic!("nothing is asked any more"));
        assert_eq!(end["status"], "interrupted");
        let ended = play.of("task_cancelled");
        assert_eq!(ended.len(), 2);
        for event in ended {
            let told = (&event["scope"], &event["reason"]);
            assert_eq!(told, (&json!("run"), &json!("enough")));
        }
        assert_eq!(play.of("host_call_cancelled").len(), 2);
        let stats: Value = serde_json::from_str(&runtime.stats("[]")).unwrap();
        assert_eq!(stats["open_calls"], 0);
        let stats: Value = serde_json::from_str(&places.stats()).unwrap();
        assert_eq!(
            (&stats["running"], &stats["queued"]),
            (&json!(0), &json!(0))
        );
        assert!(play.results().is_empty(), "the calls stay open");
        // The user says something else: what nobody answered is not waited for.
        play.start(&agent, "Never mind");
        play.finish_run(|_| says("As you like."));
        let statuses: Vec<_> = play.state()["delegations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["status"].clone())
            .collect();
        assert_eq!(statuses, ["cancelled", "cancelled"]);
    }
}

/// Nobody hears of the work any more: neither the subagent nor its agent goes on, and a later run delegates again.
#[test]
fn a_freed_queue_ends_a_run_whose_subagent_asks_and_the_task_call_stays_open() {
    for workers in [0, 2] {
        let runtime = runtime(workers, json!({}));
        let agent = lead(&runtime, None);
        let mut play = Play::new(&runtime);
        play.start(&agent, "Go");
        let call = play.call();
        play.finish(&call["data"], &calls(json!([task("t1")])));
        let call = play.call();
        play.finish(
            &call["data"],
            &calls(json!([{"name": "look", "args": {}, "id": "l1"}])),
        );
        assert_eq!(play.call()["data"]["name"], "look");
        play.queue.close();
        let Answer::Done(end) = play.run.take().unwrap().wait(Wait::Forever).unwrap() else {
            panic!("no result");
        };
        let end: Value = serde_json::from_str(&end).unwrap();
        assert_eq!(end["error"]["code"], "queue_closed", "{end}");
        assert!(play.results().is_empty(), "the call stays open");

        play.queue = runtime.new_queue("{}").unwrap();
        let run = runtime.start_run(&agent, &play.thread, Some(&play.queue), "{}");
        play.run = Some(run.unwrap());
        let call = play.call();
        assert_eq!(call["data"]["name"], "worker", "nobody asks the lead again");
        play.finish(&call["data"], &says("Seen."));
        assert_eq!(play.finish_run(|_| says("Done."))["status"], "success");
        let kwargs = &play.results()["t1"]["additional_kwargs"];
        assert_eq!(kwargs["subagent_status"], "completed");
    }
}

#[test]
fn u8_sub_58_a_child_that_goes_round_in_circles_is_stopped_and_its_agent_hears_of_it() {
    let runtime = runtime(0, json!({}));
    let agent = lead(&runtime, None);
    let mut play = Play::new(&runtime);
    play.start(&agent, "Go");
    let mut lead = delegating(json!([task("t1")]));
    let mut replies = 0;
    play.finish_run(|event| {
        lead(event).unwrap_or_else(|| match event["data"]["kind"] == "tool" {
            true => json!({"ok": "the same"}),
            false => {
                replies += 1;
                json!({"ok": {"content": "Again.", "tool_calls": [{"name": "look", "args": {}, "id": format!("l{replies}")}]}})
            }
        })
    });
    assert_eq!(replies, 5);
    let facts = &play.results()["t1"]["additional_kwargs"];
    assert_eq!(
        (&facts["subagent_status"], &facts["subagent_stop_reason"]),
        (&json!("completed"), &json!("loop_capped"))
    );
    assert_eq!(play.of("task_completed")[0]["stop_reason"], "loop_capped");
}

#[test]
fn sub_36_a_child_out_of_turns_says_what_it_has() {
    let custom = |turns: u64| json!({"description": "d", "system_prompt": "Work.", "model": "worker", "max_turns": turns});
    let sections = json!({"subagents": {"custom_agents": {"brief": custom(2)}}});
    let runtime = runtime(0, sections);
    let agent = lead(&runtime, None);
    for (text, status, content) in [
        (
            "Half.",
            "completed",
            "Task Succeeded (capped: turn budget). Result: Half.",
        ),
        (
            "",
            "failed",
            "Task failed. (capped: turn budget) Error: Reached max_turns=2",
        ),
    ] {
        let mut play = Play::new(&runtime);
        play.start(&agent, "Go");
        let mut lead = delegating(json!([task_for("t1", "brief")]));
        let mut replies = 0;
        play.finish_run(|event| {
            lead(event).unwrap_or_else(|| match event["data"]["kind"] == "tool" {
                true => json!({"ok": "seen"}),
                false => {
                    replies += 1;
                    json!({"ok": {"content": text, "tool_calls": [{"name": "look", "args": {"n": replies}, "id": format!("l{replies}")}]}})
                }
            })
        });
        assert_eq!(replies, 2, "turns, not steps");
        let result = &play.results()["t1"];
        assert_eq!(result["additional_kwargs"]["subagent_status"], status);
        assert_eq!(
            result["additional_kwargs"]["subagent_stop_reason"],
            "turn_capped"
        );
        println!("{}", result["content"]);
        if status == "completed" {
            assert_eq!(result["content"], content);
        }
    }
}

#[test]
fn a_shutdown_ends_subagents_and_nothing_is_left() {
    for workers in [0, 2] {
        let runtime = runtime(workers, json!({}));
        let agent = lead(&runtime, None);
        let mut play = Play::new(&runtime);
        play.start(&agent, "Go");
        let call = play.call();
        play.finish(
            &call["data"],
            &calls(json!([task("t1"), task("t2"), task("t3")])),
        );
        play.call();
        let Answer::Done(_) = runtime.shutdown(Wait::For(Duration::from_secs(20))) else {
            panic!("it goes down");
        };
        let stats: Value = serde_json::from_str(&runtime.stats("[]")).unwrap();
        assert_eq!(
            (&stats["open_calls"], &stats["runs"]["active"]),
            (&json!(0), &json!(0))
        );
    }
}

/// The keys of the calls of `look` in the events of `play`, in order.
fn keys_of_looks(play: &Play) -> Vec<String> {
    let calls = play.of("host_call").into_iter();
    let looks = calls.filter(|call| call["kind"] == "tool");
    looks
        .map(|call| call["idempotency_key"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_subagent_that_begins_anew_asks_its_host_with_the_keys_it_had() {
    let runtime = runtime(0, json!({}));
    let agent = lead(&runtime, None);
    let mut play = Play::new(&runtime);
    let look = |id: &str, of: u64| calls(json!([{"name": "look", "args": {"of": of}, "id": id}]));
    play.start(&agent, "Go");
    let call = play.call();
    play.finish(&call["data"], &calls(json!([task("t1")])));
    let call = play.call();
    play.finish(&call["data"], &look("l1", 1));
    let call = play.call();
    play.finish(&call["data"], &json!({"ok": "seen"}));
    let call = play.call();
    play.finish(&call["data"], &look("l2", 1));
    play.call();
    play.op(json!({"op": "cancel"}));
    play.finish_run(|_| panic!("nothing is asked any more"));
    let first = keys_of_looks(&play);
    assert_eq!(first.len(), 2);
    assert_ne!(first[0], first[1], "the same question again is another one");

    // The run goes on. The model of the new execution names its calls otherwise, and asks for something else in the end.
    play.events.clear();
    let run = play
        .runtime
        .start_run(&agent, &play.thread, Some(&play.queue), "{}");
    play.run = Some(run.unwrap());
    let mut replies = [look("x1", 1), look("x2", 1), look("l2", 2)].into_iter();
    let mut worker = |event: &Value| match event["data"]["kind"] == "tool" {
        true => json!({"ok": "seen"}),
        false => replies.next().unwrap_or_else(|| says("Seen.")),
    };
    play.finish_run(|event| match event["data"]["name"] == "main" {
        true => says("Done."),
        false => worker(event),
    });
    let again = keys_of_looks(&play);
    assert_eq!(again.len(), 3);
    assert_eq!(again[..2], first);
    assert!(!first.contains(&again[2]));

    // The next turn has a call of the same id, whose work asks for the same.
    play.events.clear();
    play.start(&agent, "Once more");
    let mut lead = delegating(json!([task("t1")]));
    let mut replies = [look("l1", 1)].into_iter();
    play.finish_run(|event| {
        lead(event).unwrap_or_else(|| match event["data"]["kind"] == "tool" {
            true => json!({"ok": "seen"}),
            false => replies.next().unwrap_or_else(|| says("Seen.")),
        })
    });
    let [other] = &keys_of_looks(&play)[..] else {
        panic!("one call");
    };
    assert!(!first.contains(other) && !again.contains(other));
}

#[test]
fn equal_calls_of_two_subagents_have_keys_of_their_own() {
    let runtime = runtime(2, json!({}));
    let agent = lead(&runtime, None);
    let mut play = Play::new(&runtime);
    play.start(&agent, "Go");
    let mut lead = delegating(json!([task("t1"), task("t2")]));
    let mut looked = HashMap::new();
    let twice =
        json!([{"name": "look", "args": {}, "id": "l1"}, {"name": "look", "args": {}, "id": "l2"}]);
    play.finish_run(|event| {
        lead(event).unwrap_or_else(|| match event["data"]["kind"] == "tool" {
            true => json!({"ok": "seen"}),
            false => match looked.insert(event["task_id"].to_string(), ()) {
                None => calls(twice.clone()),
                Some(()) => says("Seen."),
            },
        })
    });
    let mut keys = keys_of_looks(&play);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4, "{keys:#?}");
}
