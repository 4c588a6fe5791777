//! The host as a middleware: every verdict at every hook, silence, nonsense, cancels, and what it costs.

use std::time::Duration;

use fawn::protocol::error::{Error, ErrorCode};
use fawn::runtime::{Answer, Assembly, Queue, Run, Runtime, Thread, Wait};
use serde_json::{Value, json};

const LONG: Wait = Wait::For(Duration::from_secs(20));
const HOOKS: [&str; 6] = [
    "before_agent",
    "before_model",
    "wrap_model_call",
    "after_model",
    "wrap_tool_call",
    "after_agent",
];

/// A runtime with an agent that calls `f`, then `g`, and then is done.
struct Stage {
    runtime: Runtime,
    agent: Assembly,
    thread: Thread,
    queue: Queue,
}

/// What a run did.
#[derive(Debug)]
struct Told {
    events: Vec<Value>,
    /// The host calls of middlewares, in order.
    asked: Vec<Value>,
    /// The tool calls that reached the host, with their arguments.
    ran: Vec<String>,
}

impl Told {
    fn end(&self) -> &Value {
        &self.events.last().unwrap()["data"]
    }

    fn status(&self) -> &str {
        self.end()["status"].as_str().unwrap()
    }

    /// Where the host was asked: `name:hook`, with the phase of tool calls.
    fn points(&self) -> Vec<String> {
        let point = |call: &Value| {
            let args = &call["args"];
            let hook = args["hook"].as_str().unwrap();
            let phase = args["phase"].as_str().map(|phase| format!(":{phase}"));
            let name = call["name"].as_str().unwrap();
            format!("{name}:{hook}{}", phase.unwrap_or_default())
        };
        self.asked.iter().map(point).collect()
    }
}

/// What the host does about a question.
enum Do {
    Say(Value),
    /// Nothing, until the deadline.
    Nothing,
    Cancel,
}

fn script() -> Value {
    json!({"provider": "scripted", "replies": [
        {"content": "First.", "tool_calls": [{"name": "f", "args": {"n": 1}, "id": "c1"}]},
        {"tool_calls": [{"name": "g", "args": {"n": 2}, "id": "c2"}]},
        {"content": "Done."},
    ]})
}

fn tools() -> Value {
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    json!([
        {"name": "f", "description": "f", "parameters": schema},
        {"name": "g", "description": "g", "parameters": schema},
    ])
}

/// A middleware of the host for a chain.
fn gate(name: &str, host: Value) -> Value {
    json!({"name": name, "host": host})
}

/// One that is asked at one hook.
fn gate_at(hook: &str) -> Value {
    gate("gate", json!({"hooks": [hook]}))
}

impl Stage {
    fn new(middleware: Value) -> Stage {
        Stage::with(json!({}), script(), middleware)
    }

    fn with(runtime: Value, model: Value, middleware: Value) -> Stage {
        let agent = json!({"model": model, "tools": tools(), "middleware": middleware});
        Stage::composed(runtime, agent).unwrap_or_else(|error| panic!("{error:?}"))
    }

    fn composed(mut runtime: Value, agent: Value) -> Result<Stage, Error> {
        runtime["testing"] =
            json!({"clock": "2026-01-01T00:00:00Z", "ids": "sequential", "workers": 0});
        let runtime = Runtime::new(&runtime.to_string())?;
        Ok(Stage {
            agent: runtime.new_assembly(&agent.to_string())?,
            thread: runtime.open_thread(r#"{"thread_id": "t"}"#)?,
            queue: runtime.new_queue(r#"{"subscribe": ["log"]}"#)?,
            runtime,
        })
    }

    fn start(&self, request: &Value) -> Run {
        let request = request.to_string();
        self.runtime
            .start_run(&self.agent, &self.thread, Some(&self.queue), &request)
            .unwrap()
    }

    /// A run that says hello, with `decide` for the questions to middlewares.
    fn play(&self, decide: impl FnMut(&Value) -> Do) -> Told {
        let hello =
            json!({"input": {"messages": [{"role": "user", "content": "hello", "id": "h"}]}});
        self.play_on(&hello, decide)
    }

    /// The thread goes on from where it stands.
    fn go_on(&self, decide: impl FnMut(&Value) -> Do) -> Told {
        self.play_on(&json!({}), decide)
    }

    fn play_on(&self, request: &Value, mut decide: impl FnMut(&Value) -> Do) -> Told {
        let run = self.start(request);
        let mut told = Told {
            events: Vec::new(),
            asked: Vec::new(),
            ran: Vec::new(),
        };
        loop {
            let Ok(Answer::Done(batch)) = self.queue.take(LONG, 1) else {
                panic!("no events after {:#?}", told.events)
            };
            let event = serde_json::from_str::<Vec<Value>>(&batch)
                .unwrap()
                .remove(0);
            told.events.push(event.clone());
            let data = &event["data"];
            if event["type"] == "run_end" {
                drop(run);
                return told;
            }
            if event["type"] != "host_call" {
                continue;
            }
            let id = data["call_id"].as_u64().unwrap();
            if data["kind"] == "tool" {
                let name = data["name"].as_str().unwrap();
                told.ran.push(format!("{name}{}", data["args"]["n"]));
                let answer = json!({ "ok": format!("{name} did it") });
                self.runtime.finish(id, &answer.to_string()).unwrap();
                continue;
            }
            assert_eq!(data["kind"], "middleware", "{data}");
            told.asked.push(data.clone());
            match decide(data) {
                Do::Say(verdict) => {
                    let answer = json!({ "ok": verdict }).to_string();
                    self.runtime
                        .finish(id, &answer)
                        .unwrap_or_else(|error| panic!("{answer}: {error:?}"));
                }
                Do::Nothing => {}
                Do::Cancel => {
                    run.submit(r#"{"op": "cancel", "reason": "enough"}"#)
                        .unwrap();
                }
            }
        }
    }

    fn state(&self) -> Value {
        let state: Value = serde_json::from_str(&self.thread.state("{}").unwrap()).unwrap();
        state["values"].clone()
    }

    /// The messages: type, content, and how many calls an ai message has.
    fn texts(&self) -> Vec<String> {
        let state = self.state();
        let messages = state["messages"].as_array().unwrap().iter();
        messages
            .map(|message| {
                let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
                let calls = if calls > 0 {
                    format!(" +{calls}")
                } else {
                    String::new()
                };
                let content = message["content"].as_str().unwrap();
                format!("{}:{content}{calls}", message["type"].as_str().unwrap())
            })
            .collect()
    }
}

fn go() -> Do {
    Do::Say(json!({"verdict": "continue"}))
}

fn say(verdict: Value) -> impl FnMut(&Value) -> Do {
    // The first question gets the verdict, the others go on.
    let mut verdict = Some(verdict);
    move |_| verdict.take().map_or_else(go, Do::Say)
}

/// What a whole run leaves when nobody interferes.
const WHOLE: [&str; 6] = [
    "human:hello",
    "ai:First. +1",
    "tool:f did it",
    "ai: +1",
    "tool:g did it",
    "ai:Done.",
];

#[test]
fn every_hook_asks_where_it_stands_and_continue_changes_nothing() {
    for (hook, times) in HOOKS.into_iter().zip([1, 3, 3, 3, 2, 1]) {
        let stage = Stage::new(json!([gate_at(hook)]));
        let told = stage.play(|_| go());
        assert_eq!(told.status(), "success", "{hook}");
        assert_eq!(stage.texts(), WHOLE, "{hook}");
        assert_eq!(told.asked.len(), times, "{hook}");
        assert_eq!(told.end()["steps"], 5, "{hook}: questions are no steps");
        let keys: std::collections::HashSet<_> = told
            .asked
            .iter()
            .map(|call| call["idempotency_key"].as_str().unwrap())
            .collect();
        assert_eq!(
            keys.len(),
            times,
            "{hook}: each question has a key of its own"
        );
    }
}

#[test]
fn ex_3_a_change_of_a_state_hook_is_seen_by_the_next_hook() {
    for (hook, at) in [
        ("before_agent", "human:hello"),
        ("before_model", "human:hello"),
        ("after_model", "ai:First. +1"),
        ("after_agent", "ai:Done."),
    ] {
        // After hooks run from the inside out.
        let mut chain = vec![
            gate("a", json!({"hooks": [hook]})),
            gate(
                "b",
                json!({"hooks": [hook], "reads": ["title", "goal"], "messages": 1}),
            ),
        ];
        if hook.starts_with("after") {
            chain.reverse();
        }
        // Endpoints take nothing between a call and its result.
        chain.push(json!("dangling_tool_call"));
        let stage = Stage::new(Value::Array(chain));
        let told = stage.play(say(json!({
            "verdict": "change",
            "update": {"title": "from the host", "messages": [{"role": "user", "content": "by the way", "id": "x"}]},
        })));
        assert_eq!(told.status(), "success", "{hook}: {}", told.end());
        let seen = &told.asked[1];
        assert_eq!(seen["name"], "b");
        assert_eq!(
            seen["args"]["channels"],
            json!({"title": "from the host"}),
            "{hook}"
        );
        assert_eq!(
            seen["args"]["messages"][0]["content"], "by the way",
            "{hook}"
        );
        let texts = stage.texts();
        let place = texts.iter().position(|text| text == at).unwrap();
        assert_eq!(texts[place + 1], "human:by the way", "{hook}: {texts:?}");
        let wrote = told
            .events
            .iter()
            .any(|event| event["type"] == "update" && event["data"]["node"] == format!("a.{hook}"));
        assert!(wrote, "{hook}");
    }
}

#[test]
fn a_change_may_jump() {
    // The end, from each state hook: what comes after is passed by, `after_agent` is not.
    for (hook, texts) in [
        ("before_agent", vec!["human:hello"]),
        ("before_model", vec!["human:hello"]),
        ("after_model", vec!["human:hello", "ai:First. +1"]),
    ] {
        let stage = Stage::new(json!([gate(
            "gate",
            json!({"hooks": [hook, "after_agent"]})
        )]));
        let told = stage.play(say(json!({"verdict": "change", "jump_to": "end"})));
        assert_eq!(
            (told.status(), stage.texts()),
            ("success", texts.iter().map(|t| (*t).to_owned()).collect()),
            "{hook}"
        );
        assert_eq!(told.points().last().unwrap(), "gate:after_agent");
    }
    // Back to the model, with a reply that was taken back.
    let stage = Stage::new(json!([gate_at("after_agent")]));
    let told = stage.play(say(json!({
        "verdict": "change", "jump_to": "model",
        "update": {"messages": [{"role": "user", "content": "again"}]},
    })));
    assert_eq!(told.status(), "error", "the script has no fourth reply");
    assert_eq!(stage.texts().last().unwrap(), "human:again");
    // To calls that are not there.
    let stage = Stage::new(json!([gate_at("before_model")]));
    let told = stage.play(say(json!({"verdict": "change", "jump_to": "tools"})));
    assert_eq!(told.end()["error"]["code"], "middleware");
    assert_eq!(stage.texts(), ["human:hello"]);
}

#[test]
fn a_model_call_can_be_changed_answered_denied_and_ended() {
    let request = |verdict: Value| {
        let stage = Stage::composed(
            json!({}),
            json!({"model": {"provider": "host"}, "tools": tools(), "middleware": [gate(
                "gate", json!({"hooks": ["wrap_model_call", "after_model", "after_agent"], "reads": ["goal"]}),
            )]}),
        )
        .unwrap();
        let run = stage.start(&json!({"input": {"messages": ["hello"]}}));
        let mut requests = Vec::new();
        let mut points = Vec::new();
        let end = loop {
            let Ok(Answer::Done(batch)) = stage.queue.take(LONG, 1) else {
                panic!("no events")
            };
            let event = serde_json::from_str::<Vec<Value>>(&batch)
                .unwrap()
                .remove(0);
            let data = event["data"].clone();
            if event["type"] == "run_end" {
                break data;
            }
            if event["type"] == "host_call" {
                let answer = match data["args"]["hook"].as_str() {
                    None => {
                        requests.push(data["args"].clone());
                        json!("From the model.")
                    }
                    Some("wrap_model_call") => {
                        assert_eq!(data["args"]["tools"], json!(["f", "g"]));
                        assert_eq!(data["args"]["system_hash"], Value::Null);
                        assert_eq!(data["args"]["messages"][0]["content"], "hello");
                        verdict.clone()
                    }
                    Some(hook) => {
                        points.push(hook.to_owned());
                        json!({"verdict": "continue"})
                    }
                };
                let id = data["call_id"].as_u64().unwrap();
                stage
                    .runtime
                    .finish(id, &json!({ "ok": answer }).to_string())
                    .unwrap();
            }
        };
        drop(run);
        (requests, points, end, stage.texts())
    };
    let (requests, points, end, texts) = request(json!({
        "verdict": "change", "append": ["Mind <system-reminder>the rules</system-reminder>."], "without_tools": ["g"],
    }));
    let [hello, note] = &requests[0]["messages"].as_array().unwrap()[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(hello["content"], "hello");
    assert_eq!(
        (
            &note["type"],
            &note["name"],
            &note["additional_kwargs"]["hide_from_ui"]
        ),
        (&json!("human"), &json!("gate"), &json!(true))
    );
    let words = note["content"].as_str().unwrap();
    assert!(
        words.starts_with("Mind ") && !words.contains("<system-reminder>"),
        "{words}"
    );
    assert_eq!(requests[0]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(
        texts,
        ["human:hello", "ai:From the model."],
        "EX-9: the request is not stored"
    );
    assert_eq!(
        (points, end["status"].clone()),
        (
            vec!["after_model".into(), "after_agent".into()],
            json!("success")
        )
    );

    let (requests, points, end, texts) =
        request(json!({"verdict": "change", "reply": {"content": "Mine."}}));
    assert_eq!(
        (requests.len(), &texts[1][..], end["status"].as_str()),
        (0, "ai:Mine.", Some("success"))
    );
    assert_eq!(points, ["after_model", "after_agent"], "a reply is a reply");

    for (verdict, said) in [
        (
            json!({"verdict": "deny", "reason": "Not today."}),
            "ai:Not today.",
        ),
        (
            json!({"verdict": "end", "message": "Enough."}),
            "ai:Enough.",
        ),
        (json!({"verdict": "end"}), "ai:The run was ended here."),
    ] {
        let (requests, points, end, texts) = request(verdict.clone());
        assert_eq!(
            (requests.len(), texts.len(), &texts[1][..]),
            (0, 2, said),
            "{verdict}"
        );
        assert_eq!(end["status"], "success");
        assert_eq!(
            end["message"]["response_metadata"]["host_middleware"]["name"],
            "gate"
        );
        assert_eq!(points, ["after_agent"], "{verdict}: the run is over");
    }
}

#[test]
fn a_tool_call_can_be_changed_before_and_after() {
    let both = gate(
        "gate",
        json!({"hooks": ["wrap_tool_call"], "when": "both", "tools": ["f"], "reads": ["todos"]}),
    );
    let stage = Stage::new(json!([both]));
    let told = stage.play(|call| {
        Do::Say(match call["args"]["phase"].as_str().unwrap() {
            "before" => json!({"verdict": "change", "args": {"n": 7}}),
            _ => json!({"verdict": "change", "content": "made better"}),
        })
    });
    assert_eq!(told.ran, ["f7", "g2"], "only f is asked about");
    assert_eq!(
        told.points(),
        ["gate:wrap_tool_call:before", "gate:wrap_tool_call:after"]
    );
    let [before, after] = &told.asked[..] else {
        panic!()
    };
    assert_eq!(
        before["args"]["call"],
        json!({"id": "c1", "name": "f", "args": {"n": 1}})
    );
    assert_eq!(before["tool_call_id"], "c1");
    assert_eq!(before["args"]["thread_id"], "t");
    assert_eq!(before["args"]["run_id"], told.events[0]["run_id"]);
    assert_eq!(before["args"]["channels"], json!({}));
    assert!(before["args"].get("messages").is_none());
    assert_eq!(
        after["args"]["call"]["args"]["n"], 7,
        "the call as it was made"
    );
    assert_eq!(
        after["args"]["result"],
        json!({"content": "f did it", "status": "success"})
    );
    assert_eq!(stage.texts()[2], "tool:made better");

    // A result in place of the tool, with everything that a tool may answer.
    let stage = Stage::new(json!([gate_at("wrap_tool_call")]));
    let told = stage.play(say(json!({
        "verdict": "change", "result": {"content": "cached", "artifact": {"hit": 1}, "update": {"title": "t"}},
    })));
    assert_eq!(told.ran, ["g2"]);
    assert_eq!(stage.texts()[2], "tool:cached");
    assert_eq!(stage.state()["title"], "t");
    assert_eq!(stage.state()["messages"][2]["artifact"], json!({"hit": 1}));
}

#[test]
fn a_denied_call_is_an_error_that_the_model_can_act_on() {
    let stage = Stage::new(json!([
        gate("gate", json!({"hooks": ["wrap_tool_call"], "tools": ["f"]})),
        "tool_error_handling"
    ]));
    let told = stage.play(say(
        json!({"verdict": "deny", "reason": "Refunds need a person."}),
    ));
    assert_eq!(
        (told.status(), &told.ran[..]),
        ("success", &["g2".to_owned()][..])
    );
    let message = stage.state()["messages"][2].clone();
    assert_eq!(message["status"], "error");
    assert_eq!(
        message["content"],
        "Error: the call of \"f\" was not allowed: Refunds need a person."
    );
    let meta = &message["additional_kwargs"]["deerflow_tool_meta"];
    assert_eq!(
        (
            &meta["status"],
            &meta["error_type"],
            &meta["recoverable_by_model"]
        ),
        (&json!("error"), &json!("permission"), &json!(true))
    );
    // After the call nothing of the result is left.
    let after = json!({"hooks": ["wrap_tool_call"], "when": "after", "tools": ["f"]});
    let stage = Stage::new(json!(["tool_error_handling", gate("gate", after)]));
    let told = stage.play(say(
        json!({"verdict": "deny", "reason": "It holds a secret"}),
    ));
    assert_eq!(told.ran, ["f1", "g2"]);
    let text = &stage.texts()[2];
    assert!(
        text.contains("It holds a secret.") && !text.contains("did it"),
        "{text}"
    );
}

#[test]
fn a_tool_call_can_end_the_run() {
    for (when, ran, said) in [
        ("before", &[][..], "ai:Enough of this."),
        ("after", &["f1"], "tool:f did it"),
    ] {
        let host = json!({"hooks": ["wrap_tool_call", "after_agent"], "when": when});
        let stage = Stage::new(json!([gate("gate", host)]));
        let mut verdict = json!({"verdict": "end"});
        if when == "before" {
            verdict["message"] = "Enough of this.".into();
        }
        let told = stage.play(say(verdict));
        assert_eq!(told.status(), "success");
        assert_eq!(told.ran, ran, "{when}");
        assert_eq!(stage.texts().last().unwrap(), said);
        assert_eq!(told.asked.len(), 1, "EX-7: past after_agent");
        if when == "before" {
            // The user reads it in the result; the model, should the thread go on, that its call was not made.
            assert_eq!(told.end()["message"]["content"], "Enough of this.");
            let texts = stage.texts();
            let result = &texts[texts.len() - 2];
            assert!(
                result.contains("\"f\" was not made") || result.contains("f was not made"),
                "{result}"
            );
            assert!(!result.contains("Enough of this"), "{result}");
        }
        // Nothing is open.
        let again = stage.go_on(|_| go());
        assert!(!again.ran.contains(&"f1".to_owned()));
    }
}

#[test]
fn last_words_of_several_calls_are_said_once_each() {
    let model = json!({"provider": "scripted", "replies": [{"tool_calls": [
        {"name": "f", "args": {"n": 1}, "id": "c1"}, {"name": "g", "args": {"n": 2}, "id": "c2"},
        {"name": "g", "args": {"n": 3}, "id": "c3"},
    ]}]});
    let stage = Stage::with(json!({}), model, json!([gate_at("wrap_tool_call")]));
    let told = stage.play(|call| {
        Do::Say(match call["args"]["call"]["id"].as_str().unwrap() {
            "c2" => json!({"verdict": "continue"}),
            _ => json!({"verdict": "end", "message": "Bye."}),
        })
    });
    assert_eq!(told.status(), "success");
    assert_eq!(told.ran, ["g2"], "what was let through is made and kept");
    let texts = stage.texts();
    assert_eq!(texts.len(), 6, "{texts:?}");
    assert_eq!((&*texts[3], &*texts[5]), ("tool:g did it", "ai:Bye."));
    assert_eq!(told.end()["message"]["content"], "Bye.");
}

/// The refusals of a verdict, each handed in before the one that counts.
fn refusals(stage: &Stage, bad: &[Value], good: Value) -> (Vec<(ErrorCode, String, String)>, Told) {
    let runtime = stage.runtime.clone();
    let mut refused = Vec::new();
    let told = stage.play(|call| {
        let id = call["call_id"].as_u64().unwrap();
        for verdict in bad {
            let error = runtime
                .finish(id, &json!({ "ok": verdict }).to_string())
                .expect_err("it does not fit");
            refused.push((error.code, error.path.unwrap_or_default(), error.message));
        }
        Do::Say(good.clone())
    });
    (refused, told)
}

#[test]
fn arguments_that_do_not_fit_the_tool_are_refused_where_they_are_handed_in() {
    let host = json!({"hooks": ["wrap_tool_call"], "tools": ["f"]});
    let stage = Stage::new(json!([gate("gate", host)]));
    let change = |args: Value| json!({"verdict": "change", "args": args});
    let bad = [change(json!({"n": "seven"})), change(json!({}))];
    let (refused, told) = refusals(&stage, &bad, change(json!({"n": 7})));
    let places: Vec<_> = refused
        .iter()
        .map(|(code, path, _)| (*code, &**path))
        .collect();
    assert_eq!(
        places,
        [
            (ErrorCode::OutOfRange, "/ok/args/n"),
            (ErrorCode::OutOfRange, "/ok/args")
        ]
    );
    assert!(refused[1].2.contains("\"n\""), "{}", refused[1].2);
    assert_eq!(told.ran, ["f7", "g2"], "the question stays open");
}

#[test]
fn a_name_that_no_tool_has_is_refused_in_without_tools() {
    let stage = Stage::new(json!([gate_at("wrap_model_call")]));
    let without = |name: &str| json!({"verdict": "change", "without_tools": ["f", name]});
    let (refused, told) = refusals(&stage, &[without("gg")], without("g"));
    let (code, path, message) = &refused[0];
    assert_eq!(
        (*code, &**path),
        (ErrorCode::UnknownVariant, "/ok/without_tools/1")
    );
    assert!(
        message.contains("\"gg\"") && message.contains("\"g\""),
        "{message}"
    );
    assert_eq!(told.status(), "success");
}

#[test]
fn a_tool_that_this_agent_was_not_given_is_no_slip_in_without_tools() {
    let runtime = json!({
        "models": [{"name": "m", "provider": "scripted", "replies": [{"content": "Done."}]}],
        "tools": [{"name": "refund", "group": "money"}], "tool_groups": [{"name": "money"}],
        "title": {"enabled": false},
    });
    let agent = json!({
        "factory": "lead",
        "authorization": {"tools": {"deny": ["refund"]}},
        "extra_middleware": [gate_at("wrap_model_call")],
    });
    let stage = Stage::composed(runtime, agent).unwrap_or_else(|error| panic!("{error:?}"));
    let verdict = json!({"verdict": "change", "without_tools": ["refund"]});
    assert_eq!(stage.play(say(verdict)).status(), "success");
}

#[test]
fn a_state_hook_that_denies_ends_the_run_with_an_error_and_nothing_is_made_later() {
    for (hook, texts) in [
        ("before_agent", vec!["human:hello"]),
        ("before_model", vec!["human:hello"]),
        ("after_model", vec!["human:hello", "ai:First."]),
        ("after_agent", WHOLE.to_vec()),
    ] {
        let stage = Stage::new(json!([gate_at(hook)]));
        let told = stage.play(say(json!({"verdict": "deny", "reason": "Not for you"})));
        let error = &told.end()["error"];
        assert_eq!(
            (&error["code"], &error["message"], &error["cause"]),
            (
                &json!("middleware"),
                &json!(format!("gate.{hook}: denied: Not for you")),
                &json!(["not_authorized"])
            )
        );
        assert_eq!(stage.texts(), texts, "{hook}");
        if hook == "after_model" {
            // The calls of the reply are gone, so that a run that goes on does not make them behind the host's back.
            let again = stage.go_on(say(json!({"verdict": "deny", "reason": "Still not"})));
            assert!(
                again.ran.is_empty() && again.status() == "error",
                "{again:?}"
            );
        }
    }
}

#[test]
fn a_state_hook_can_end_the_run_cleanly() {
    for (hook, message, texts) in [
        (
            "before_agent",
            Some("Closed."),
            vec!["human:hello", "ai:Closed."],
        ),
        ("before_agent", None, vec!["human:hello"]),
        (
            "before_model",
            Some("Closed."),
            vec!["human:hello", "ai:Closed."],
        ),
        (
            "after_model",
            Some("Closed."),
            vec!["human:hello", "ai:First.\n\nClosed."],
        ),
        ("after_model", None, vec!["human:hello", "ai:First."]),
        ("after_agent", None, WHOLE.to_vec()),
    ] {
        let stage = Stage::new(json!([gate_at(hook)]));
        let told = stage.play(say(json!({"verdict": "end", "message": message})));
        assert_eq!(told.status(), "success", "{hook}");
        assert_eq!(stage.texts(), texts, "{hook} {message:?}");
        assert!(hook == "after_agent" || told.ran.is_empty());
    }
}

#[test]
fn a_pause_interrupts_the_run_and_the_next_one_asks_again() {
    for hook in [
        "before_agent",
        "before_model",
        "wrap_model_call",
        "wrap_tool_call",
    ] {
        let stage = Stage::new(json!([gate_at(hook)]));
        let told = stage.play(say(json!({"verdict": "pause", "reason": "ask Ann"})));
        assert_eq!(told.status(), "interrupted", "{hook}");
        let reason = told.end()["cancel_reason"].as_str().unwrap();
        assert!(
            reason.starts_with("gate paused the run at ") && reason.ends_with(": ask Ann"),
            "{reason}"
        );
        assert!(told.ran.is_empty(), "{hook}");
        if hook == "wrap_tool_call" {
            assert!(reason.contains("\"c1\""), "{reason}");
        }
        // Again a pause, then the approval.
        let still = stage.go_on(say(json!({"verdict": "pause"})));
        assert_eq!(still.status(), "interrupted", "{hook}");
        let approved = stage.go_on(|_| go());
        assert_eq!(approved.status(), "success", "{hook}");
        assert_eq!(stage.texts(), WHOLE, "{hook}");
        assert_eq!(approved.ran, ["f1", "g2"], "{hook}: once");
        if hook == "wrap_tool_call" {
            let key = |told: &Told| told.asked[0]["idempotency_key"].clone();
            assert_eq!(key(&told), key(&approved), "the same question");
        }
    }
}

#[test]
fn concurrent_calls_each_have_their_verdict() {
    let names = ["c0", "c1", "c2", "c3", "c4"];
    let calls: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(n, id)| json!({"name": "f", "args": {"n": n}, "id": id}))
        .collect();
    let model =
        json!({"provider": "scripted", "replies": [{"tool_calls": calls}, {"content": "Done."}]});
    let stage = Stage::with(json!({}), model, json!([gate_at("wrap_tool_call")]));
    let verdict = |call: &Value| {
        Do::Say(match call["tool_call_id"].as_str().unwrap() {
            "c0" => json!({"verdict": "continue"}),
            "c1" => json!({"verdict": "deny", "reason": "no"}),
            "c2" => json!({"verdict": "change", "args": {"n": 22}}),
            "c3" => json!({"verdict": "pause", "reason": "who knows"}),
            _ => json!({"verdict": "change", "result": "made up"}),
        })
    };
    let told = stage.play(verdict);
    assert_eq!(told.status(), "interrupted");
    let mut ran = told.ran.clone();
    ran.sort();
    assert_eq!(ran, ["f0", "f22"]);
    let texts = stage.texts();
    assert_eq!(
        texts[2..],
        [
            "tool:f did it".to_owned(),
            "tool:Error: the call of \"f\" was not allowed: no.".to_owned(),
            "tool:f did it".to_owned(),
            "tool:made up".to_owned(),
        ],
        "what has ended is kept"
    );
    // Only the call that paused is asked about and made.
    let told = stage.go_on(|call| {
        assert_eq!(call["tool_call_id"], "c3");
        go()
    });
    assert_eq!(
        (told.status(), &told.ran[..]),
        ("success", &["f3".to_owned()][..])
    );
}

#[test]
fn ex_2_middlewares_of_the_host_stand_in_the_order_of_the_chain() {
    let all = |name: &str| gate(name, json!({"hooks": HOOKS, "when": "both"}));
    let stage = Stage::new(json!([all("a"), "dangling_tool_call", all("b")]));
    let told = stage.play(|_| go());
    assert_eq!(told.status(), "success");
    let first = [
        "a:before_agent",
        "b:before_agent",
        "a:before_model",
        "b:before_model",
        "a:wrap_model_call",
        "b:wrap_model_call",
        "b:after_model",
        "a:after_model",
        "a:wrap_tool_call:before",
        "b:wrap_tool_call:before",
        "b:wrap_tool_call:after",
        "a:wrap_tool_call:after",
        "a:before_model",
    ];
    assert_eq!(told.points()[..first.len()], first);
    assert_eq!(
        told.points()[told.asked.len() - 2..],
        ["b:after_agent", "a:after_agent"]
    );
    // What the outer one denies, the inner one never hears of.
    let told = Stage::new(json!([
        gate("a", json!({"hooks": ["wrap_tool_call"]})),
        gate("b", json!({"hooks": ["wrap_tool_call"]})),
    ]))
    .play(|call| match call["name"].as_str() {
        Some("a") => Do::Say(json!({"verdict": "deny", "reason": "no"})),
        _ => panic!("{call}"),
    });
    assert_eq!((told.status(), told.ran.len()), ("success", 0));
}

/// Ways for a host to give no verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Silence {
    Deadline,
    Refusal,
}

#[test]
fn what_counts_when_the_host_is_silent_is_what_was_configured() {
    for silence in [Silence::Deadline, Silence::Refusal] {
        for on_timeout in ["continue", "deny", "fail"] {
            for hook in HOOKS {
                for when in ["before", "after"] {
                    if when == "after" && hook != "wrap_tool_call" {
                        continue;
                    }
                    let case = format!("{silence:?} {on_timeout} {hook} {when}");
                    let mut host =
                        json!({"hooks": [hook], "on_timeout": on_timeout, "timeout_ms": 15});
                    if hook == "wrap_tool_call" {
                        host["when"] = when.into();
                    }
                    let stage = Stage::new(json!([gate("gate", host)]));
                    let told = match silence {
                        Silence::Deadline => stage.play(|_| Do::Nothing),
                        Silence::Refusal => stage.play(|call| {
                            let id = call["call_id"].as_u64().unwrap();
                            stage
                                .runtime
                                .finish(id, r#"{"error": "I am lost"}"#)
                                .unwrap();
                            Do::Nothing
                        }),
                    };
                    let warned = told
                        .events
                        .iter()
                        .find(|event| event["data"]["code"] == "no_verdict");
                    let warned = warned.expect(&case)["data"]["message"].as_str().unwrap();
                    assert!(
                        warned.starts_with(&format!("gate.{hook}: no verdict (")),
                        "{warned}"
                    );
                    let error = &told.end()["error"];
                    match on_timeout {
                        "continue" => {
                            assert_eq!(
                                (told.status(), stage.texts()),
                                ("success", WHOLE.map(String::from).into()),
                                "{case}"
                            );
                        }
                        "fail" => {
                            assert_eq!(error["code"], "middleware", "{case}");
                            let cause = match silence {
                                Silence::Deadline => "deadline_exceeded",
                                Silence::Refusal => "middleware",
                            };
                            assert_eq!(error["cause"], json!([cause]), "{case}");
                            let message = error["message"].as_str().unwrap();
                            assert!(
                                message
                                    .starts_with(&format!("gate.{hook}: the host gave no verdict")),
                                "{case}: {message}"
                            );
                            let ran = match (hook, when) {
                                ("wrap_tool_call", "after") => 1,
                                ("after_agent", _) => 2,
                                _ => 0,
                            };
                            assert_eq!(told.ran.len(), ran, "{case}");
                            assert!(
                                !stage.texts().contains(&"tool:f did it".to_owned())
                                    || hook == "after_agent",
                                "{case}"
                            );
                        }
                        _ => match hook {
                            "wrap_model_call" => {
                                assert_eq!(
                                    (told.status(), stage.texts().len()),
                                    ("success", 2),
                                    "{case}"
                                );
                            }
                            "wrap_tool_call" => {
                                assert_eq!(told.status(), "success", "{case}");
                                assert!(stage.texts()[2].starts_with("tool:Error: "), "{case}");
                            }
                            _ => assert_eq!(error["cause"], json!(["not_authorized"]), "{case}"),
                        },
                    }
                }
            }
        }
    }
}

#[test]
fn a_run_that_failed_before_a_call_makes_it_later_and_one_that_failed_after_it_does_not() {
    for (when, ran) in [("before", &["f1", "g2"][..]), ("after", &["g2"])] {
        let host = json!({"hooks": ["wrap_tool_call"], "when": when, "timeout_ms": 15});
        let stage = Stage::new(json!([gate("gate", host)]));
        assert_eq!(stage.play(|_| Do::Nothing).status(), "error");
        let told = stage.go_on(|_| go());
        assert_eq!(
            (told.status(), &told.ran[..]),
            (
                "success",
                &ran.iter().map(|r| (*r).to_owned()).collect::<Vec<_>>()[..]
            ),
            "{when}"
        );
    }
}

#[test]
fn nonsense_is_told_to_the_host_and_counts_as_no_answer() {
    let bad = [
        (json!({"ok": "continue"}), ErrorCode::WrongType, "/ok"),
        (
            json!({"ok": {"verdict": "yes"}}),
            ErrorCode::UnknownVariant,
            "/ok/verdict",
        ),
        (
            json!({"ok": {"verdict": "deny"}}),
            ErrorCode::MissingMember,
            "/ok/reason",
        ),
        (
            json!({"ok": {"verdict": "pause"}}),
            ErrorCode::Unsupported,
            "/ok/verdict",
        ),
        (
            json!({"ok": {"verdict": "change", "update": {"title": "t", "messages": [{"role": "system", "content": "obey"}]}}}),
            ErrorCode::OutOfRange,
            "/ok/update/messages/0",
        ),
        (
            json!({"ok": {"verdict": "change", "update": {"titel": "t"}}}),
            ErrorCode::UnknownChannel,
            "/ok/update/titel",
        ),
        (
            json!({"ok": null, "error": "x"}),
            ErrorCode::Conflict,
            "/error",
        ),
    ];
    // One that mends it, one that never does.
    for (mends, on_timeout) in [(true, "fail"), (false, "continue"), (false, "fail")] {
        let host = json!({"hooks": ["after_model"], "timeout_ms": if mends { 20_000 } else { 30 }, "on_timeout": on_timeout});
        let stage = Stage::new(json!([gate("gate", host)]));
        let told = stage.play(|call| {
            let id = call["call_id"].as_u64().unwrap();
            for (answer, code, path) in &bad {
                let error = stage.runtime.finish(id, &answer.to_string()).unwrap_err();
                assert_eq!(
                    (error.code, error.path.as_deref()),
                    (*code, Some(*path)),
                    "{answer}"
                );
            }
            let error = stage.runtime.emit(id, "1").unwrap_err();
            assert_eq!(error.code, ErrorCode::Unsupported);
            if mends { go() } else { Do::Nothing }
        });
        assert_eq!(
            told.status(),
            if mends || on_timeout == "continue" {
                "success"
            } else {
                "error"
            }
        );
        assert!(
            stage.state().get("title").is_none(),
            "nothing of a bad verdict counts"
        );
    }
}

#[test]
fn an_update_that_the_state_cannot_take_ends_the_run_and_writes_nothing() {
    let stage = Stage::new(json!([gate_at("before_model")]));
    let told = stage.play(say(json!({
        "verdict": "change",
        "update": {"title": "half", "messages": [{"role": "remove", "id": "nobody", "content": ""}]},
    })));
    let error = &told.end()["error"];
    assert_eq!(
        (&error["code"], &error["cause"]),
        (&json!("middleware"), &json!(["unknown_message_id"]))
    );
    assert_eq!(stage.texts(), ["human:hello"]);
    assert!(stage.state().get("title").is_none());
}

#[test]
fn a_second_or_late_verdict_is_gone() {
    let host = json!({"hooks": ["before_agent"], "timeout_ms": 15, "on_timeout": "continue"});
    let stage = Stage::new(json!([gate("gate", host)]));
    let mut id = 0;
    stage.play(|call| {
        id = call["call_id"].as_u64().unwrap();
        Do::Nothing
    });
    let late = stage
        .runtime
        .finish(id, r#"{"ok": {"verdict": "continue"}}"#)
        .unwrap();
    assert_eq!(late, Answer::Gone);
}

#[test]
fn a_cancel_while_the_host_thinks_ends_the_run_and_nothing_is_made_unchecked() {
    for hook in HOOKS {
        for when in ["before", "after"] {
            if when == "after" && hook != "wrap_tool_call" {
                continue;
            }
            let mut host = json!({"hooks": [hook]});
            if hook == "wrap_tool_call" {
                host["when"] = when.into();
            }
            let stage = Stage::new(json!([gate("gate", host)]));
            let told = stage.play(|_| Do::Cancel);
            let case = format!("{hook} {when}");
            assert_eq!(told.status(), "interrupted", "{case}");
            assert_eq!(told.end()["cancel_reason"], "enough", "{case}");
            let cancelled = told
                .events
                .iter()
                .find(|event| event["type"] == "host_call_cancelled");
            assert_eq!(cancelled.expect(&case)["data"]["reason"], "cancelled");
            let again = stage.go_on(|_| go());
            match (hook, when) {
                ("after_model", _) => {
                    assert_eq!(stage.texts()[..2], ["human:hello", "ai:First."], "{case}");
                    assert!(
                        !again.asked.is_empty() && !again.ran.contains(&"f1".to_owned()),
                        "{case}"
                    );
                }
                ("wrap_tool_call", "after") => {
                    assert_eq!(told.ran, ["f1"]);
                    assert_eq!(again.ran, ["g2"], "a tool that has run does not run again");
                    assert!(stage.texts()[2].contains("withheld"), "{:?}", stage.texts());
                }
                ("after_agent", _) => assert_eq!(stage.texts(), WHOLE),
                _ => {
                    assert_eq!(
                        (again.status(), stage.texts()),
                        ("success", WHOLE.map(String::from).into()),
                        "{case}"
                    );
                    assert!(!again.asked.is_empty(), "{case}: asked again");
                }
            }
        }
    }
}

#[test]
fn a_shutdown_or_a_freed_queue_is_no_verdict() {
    for hook in [
        "before_model",
        "after_model",
        "wrap_model_call",
        "wrap_tool_call",
    ] {
        let stage = Stage::new(json!([gate_at(hook)]));
        let run = stage.start(&json!({"input": {"messages": ["hello"]}}));
        loop {
            let Ok(Answer::Done(batch)) = stage.queue.take(LONG, 1) else {
                panic!()
            };
            if batch.contains("\"type\":\"host_call\"") {
                break;
            }
        }
        stage.runtime.shutdown(LONG);
        let Ok(Answer::Done(end)) = run.wait(LONG) else {
            panic!("{hook}")
        };
        assert!(end.contains("\"status\":\"interrupted\""), "{hook}: {end}");
    }
    for (on_timeout, status) in [("deny", "success"), ("fail", "error")] {
        let host = json!({"hooks": ["wrap_model_call"], "on_timeout": on_timeout});
        let Stage {
            runtime,
            agent,
            thread,
            queue,
        } = Stage::new(json!([gate("gate", host)]));
        let hello = r#"{"input": {"messages": ["hello"]}}"#;
        let run = runtime
            .start_run(&agent, &thread, Some(&queue), hello)
            .unwrap();
        loop {
            let Ok(Answer::Done(batch)) = queue.take(LONG, 1) else {
                panic!()
            };
            if batch.contains("\"type\":\"host_call\"") {
                break;
            }
        }
        queue.close();
        let Ok(Answer::Done(end)) = run.wait(LONG) else {
            panic!()
        };
        assert!(end.contains(&format!("\"status\":\"{status}\"")), "{end}");
    }
}

#[test]
fn a_run_without_a_queue_is_refused() {
    let stage = Stage::composed(
        json!({}),
        json!({
            "model": {"provider": "scripted", "replies": [{"content": "Done."}]},
            "middleware": [gate_at("before_agent")],
        }),
    )
    .unwrap();
    let hello = r#"{"input": {"messages": ["hello"]}}"#;
    let error = stage
        .runtime
        .start_run(&stage.agent, &stage.thread, None, hello)
        .err()
        .unwrap();
    assert_eq!(error.code, ErrorCode::NoQueue);
}

#[test]
fn what_is_not_subscribed_to_costs_nothing() {
    let plain = Stage::new(json!([]));
    let without = plain.play(|_| unreachable!("nobody is asked"));
    let stage = Stage::new(json!([gate(
        "gate",
        json!({"hooks": ["wrap_tool_call"], "tools": ["g"]})
    )]));
    let told = stage.play(|_| go());
    let types = |told: &Told| -> Vec<String> {
        let middleware = |event: &&Value| event["data"]["kind"] != "middleware";
        let named = told.events.iter().filter(middleware);
        named
            .map(|event| event["type"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        told.points(),
        ["gate:wrap_tool_call:before"],
        "not one question for a model call, or for f"
    );
    assert_eq!(
        types(&told),
        types(&without),
        "no event and no checkpoint besides"
    );
    assert_eq!(told.end()["steps"], without.end()["steps"]);
}

#[test]
fn a_bad_configuration_is_refused_at_its_place() {
    let compose = |factory: &str, list: Value| {
        let mut agent = json!({"factory": factory, "tools": tools()});
        let member = if factory == "custom" {
            "middleware"
        } else {
            "extra_middleware"
        };
        agent[member] = list;
        let mut runtime = json!({});
        if factory.starts_with("lead") {
            runtime["models"] = json!([{"name": "m", "provider": "host", "model": "m"}]);
        } else {
            agent["model"] = json!({"provider": "host"});
        }
        Stage::composed(runtime, agent)
    };
    for (entry, code, path) in [
        (json!({"name": "g", "host": 1}), "wrong_type", "/host"),
        (
            json!({"name": "g", "host": {}}),
            "missing_member",
            "/host/hooks",
        ),
        (
            gate("g", json!({"hooks": []})),
            "out_of_range",
            "/host/hooks",
        ),
        (
            gate("g", json!({"hooks": ["before_modell"]})),
            "unknown_variant",
            "/host/hooks/0",
        ),
        (
            gate("g", json!({"hooks": ["before_model", "before_model"]})),
            "conflict",
            "/host/hooks/1",
        ),
        (
            gate("g", json!({"hooks": ["before_model"], "tools": ["f"]})),
            "conflict",
            "/host/tools",
        ),
        (
            gate("g", json!({"hooks": ["before_model"], "when": "both"})),
            "conflict",
            "/host/when",
        ),
        (
            gate("g", json!({"hooks": ["wrap_tool_call"], "when": "later"})),
            "unknown_variant",
            "/host/when",
        ),
        (
            gate("g", json!({"hooks": ["wrap_tool_call"], "tools": ["ff"]})),
            "unknown_variant",
            "/host/tools/0",
        ),
        (
            gate(
                "g",
                json!({"hooks": ["wrap_tool_call"], "tools": ["f", "f"]}),
            ),
            "conflict",
            "/host/tools/1",
        ),
        (
            gate("g", json!({"hooks": ["wrap_tool_call"], "tools": []})),
            "out_of_range",
            "/host/tools",
        ),
        (
            gate("g", json!({"hooks": ["before_model"], "reads": ["gaol"]})),
            "unknown_channel",
            "/host/reads/0",
        ),
        (
            gate(
                "g",
                json!({"hooks": ["before_model"], "reads": ["messages"]}),
            ),
            "conflict",
            "/host/reads/0",
        ),
        (
            gate("g", json!({"hooks": ["before_model"], "messages": 1001})),
            "out_of_range",
            "/host/messages",
        ),
        (
            gate("g", json!({"hooks": ["before_model"], "timeout_ms": 0})),
            "out_of_range",
            "/host/timeout_ms",
        ),
        (
            gate(
                "g",
                json!({"hooks": ["before_model"], "on_timeout": "wait"}),
            ),
            "unknown_variant",
            "/host/on_timeout",
        ),
        (
            gate("g", json!({"hooks": ["before_model"], "timeout": 1})),
            "unknown_member",
            "/host/timeout",
        ),
        (
            gate("no name", json!({"hooks": ["before_model"]})),
            "out_of_range",
            "/name",
        ),
        (
            gate("clarification", json!({"hooks": ["before_model"]})),
            "conflict",
            "/name",
        ),
        (
            gate("sandbox_audit", json!({"hooks": ["before_model"]})),
            "conflict",
            "/name",
        ),
        (
            json!({"name": "g", "host": {"hooks": ["before_model"]}, "timeout_ms": 1}),
            "unknown_member",
            "/timeout_ms",
        ),
    ] {
        for factory in ["custom", "direct", "lead", "lead_graph"] {
            let member = if factory == "custom" {
                "/middleware/0"
            } else {
                "/extra_middleware/0"
            };
            let error = compose(factory, json!([entry]))
                .err()
                .unwrap_or_else(|| panic!("{factory} {entry}"));
            assert_eq!(
                (error.code.name(), error.path.as_deref()),
                (code, Some(&*format!("{member}{path}"))),
                "{factory} {entry}: {}",
                error.message
            );
        }
    }
    let error = compose(
        "direct",
        json!([gate("g", json!({"hooks": ["after_modal"]}))]),
    )
    .err()
    .unwrap();
    assert!(
        error.message.contains("did you mean \"after_model\"?"),
        "{}",
        error.message
    );
    let error = compose(
        "lead",
        json!([gate(
            "g",
            json!({"hooks": ["wrap_tool_call"], "tools": ["fg"]})
        )]),
    )
    .err()
    .unwrap();
    assert!(
        error.message.contains("did you mean \"f\"?")
            || error.message.contains("did you mean \"g\"?"),
        "{}",
        error.message
    );
    let twice = json!([gate_at("before_model"), gate_at("after_model")]);
    for factory in ["custom", "direct", "lead"] {
        assert_eq!(
            compose(factory, twice.clone()).err().unwrap().code,
            ErrorCode::Conflict
        );
    }
    // Tools that the chain or the factory brings are known.
    assert!(
        compose(
            "direct",
            json!([gate(
                "g",
                json!({"hooks": ["wrap_tool_call"], "tools": ["ask_clarification"]})
            )])
        )
        .is_ok()
    );
}

#[test]
fn a_lead_agent_has_it_at_its_place_and_tells_of_it() {
    let models = json!({"models": [{"name": "m", "provider": "host", "model": "m"}]});
    let agent = |extra: Value| {
        Stage::composed(
            models.clone(),
            json!({"factory": "lead", "tools": tools(), "extra_middleware": extra}),
        )
        .unwrap()
    };
    let described = |stage: &Stage| -> Value {
        serde_json::from_str(&stage.agent.descriptor().unwrap()).unwrap()
    };
    let host = json!({"hooks": ["wrap_tool_call", "before_model"], "tools": ["g", "f"], "timeout_ms": 5000, "on_timeout": "deny"});
    let stage = agent(json!([
        gate("gate", host.clone()),
        {"name": "outer", "host": {"hooks": ["before_agent"]}, "before": "input_sanitization"},
        {"name": "inner", "host": {"hooks": ["after_model"]}, "after": "gate"},
    ]));
    let descriptor = described(&stage);
    let chain: Vec<&str> = descriptor["middlewares"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["name"].as_str().unwrap())
        .collect();
    assert_eq!(chain[0], "outer");
    let place = chain.iter().position(|name| *name == "gate").unwrap();
    assert_eq!(
        chain[place - 1..place + 3],
        ["loop_detection", "gate", "inner", "terminal_response"],
        "index 30"
    );
    let told = &descriptor["middlewares"][place];
    assert_eq!(
        told["policy_parameters"],
        json!({
            "hooks": ["before_model", "wrap_tool_call"], "tools": ["f", "g"], "when": "before", "reads": [],
            "messages": 1, "timeout_ms": 5000, "on_timeout": "deny",
        })
    );
    assert_eq!(told["hooks"], json!(["before_model", "wrap_tool_call"]));
    assert_eq!(
        (&told["extension"], &told["module"]),
        (&json!("host"), &json!("fawn::middleware::host_middleware"))
    );
    // The deadline is part of what an agent is.
    let print = |host: Value| described(&agent(json!([gate("gate", host)])))["fingerprint"].clone();
    let mut other = host.clone();
    other["timeout_ms"] = 6000.into();
    assert_eq!(print(host.clone()), print(host.clone()));
    assert_ne!(print(host.clone()), print(other));
    // A lead agent's run asks, and a denial is a message like any other.
    let stage = agent(json!([gate("gate", host)]));
    let run = stage.start(&json!({"input": {"messages": ["hello"]}}));
    let mut replies = [
        json!({"tool_calls": [{"name": "f", "args": {"n": 1}, "id": "c1"}]}),
        json!("Done."),
    ]
    .into_iter();
    let mut points = Vec::new();
    loop {
        let Ok(Answer::Done(batch)) = stage.queue.take(LONG, 1) else {
            panic!()
        };
        let event = serde_json::from_str::<Vec<Value>>(&batch)
            .unwrap()
            .remove(0);
        let data = &event["data"];
        match event["type"].as_str().unwrap() {
            "host_call" => {
                let answer = match data["args"]["hook"].as_str() {
                    None => replies.next().unwrap(),
                    Some("wrap_tool_call") => json!({"verdict": "deny", "reason": "no"}),
                    Some(hook) => {
                        points.push(hook.to_owned());
                        json!({"verdict": "continue"})
                    }
                };
                let id = data["call_id"].as_u64().unwrap();
                stage
                    .runtime
                    .finish(id, &json!({ "ok": answer }).to_string())
                    .unwrap();
            }
            "run_end" => {
                assert_eq!(data["status"], "success", "{data}");
                break;
            }
            _ => {}
        }
    }
    drop(run);
    assert_eq!(points, ["before_model", "before_model"]);
}
