//! The budget of tool output: whole runs of a lead agent with a tool that says too much, and where its words go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use fawn::middleware::tool_output_budget::ToolOutputBudget;
use fawn::middleware::tool_result_sanitization::ToolResultSanitization;
use fawn::middleware::{CallTool, Middleware, ModelResponse, NextModel, NextTool};
use fawn::ports::BoxFuture;
use fawn::ports::model::{ModelError, ModelRequest, Purpose};
use fawn::ports::sandbox::Sandbox;
use fawn::ports::thread_files::ThreadFiles;
use fawn::ports::tool::{ToolAnswer, ToolInvocation, ToolOutcome};
use fawn::protocol::app_config::ToolOutputConfig;
use fawn::protocol::message::{Fields, Kind, Message, ToolCall};
use fawn::runtime::{Answer, Assembly, Runtime, Thread, Wait};
use fawn::state::channels::Channel;
use fawn::state::reads::ChannelReads;
use fawn::state::transcript::Transcript;
use fawn::state::update::{StateUpdate, Write};
use serde_json::{Map, Value, json};

use crate::host::run_context;
use crate::parts::human;
use crate::ports::{Behaviour, Files};
use crate::support::random::Random;

/// Text of a hundred thousand characters, line by line.
fn log() -> String {
    (0..10_000).map(|n| format!("line {n:04}\n")).collect()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn runtime(sections: Value) -> Runtime {
    let mut config = json!({
        "models": [{"name": "main", "provider": "host", "model": "m"}],
        "testing": {"clock": "2026-01-01T00:00:00Z", "ids": "sequential", "workers": 0},
    });
    let members = config.as_object_mut().unwrap();
    members.extend(sections.as_object().unwrap().clone());
    Runtime::new(&config.to_string()).unwrap_or_else(|error| panic!("{error:?}"))
}

fn lead(runtime: &Runtime) -> Assembly {
    let tool = |name: &str| json!({"name": name, "description": "Tells.", "parameters": {"type": "object"}});
    let request = json!({"factory": "lead", "tools": [tool("tell"), tool("read_file")]});
    let made = runtime.new_assembly(&request.to_string());
    made.unwrap_or_else(|error| panic!("{error:?}"))
}

/// Runs one message; a tool answers as `tools` say. The model calls each of `calls`, then ends. What each request held.
fn talk(
    runtime: &Runtime,
    agent: &Assembly,
    thread: &Thread,
    calls: &[&str],
    tool: impl Fn(&str) -> Value,
) -> Vec<Value> {
    let queue = runtime.new_queue("{}").unwrap();
    let request = json!({"input": {"messages": [{"role": "user", "content": "Go"}]}});
    let run = runtime
        .start_run(agent, thread, Some(&queue), &request.to_string())
        .unwrap();
    let mut requests = Vec::new();
    loop {
        let Answer::Done(events) = queue.take(Wait::Forever, 64).unwrap() else {
            panic!("no events");
        };
        let events: Vec<Value> = serde_json::from_str(&events).unwrap();
        for event in &events {
            let data = &event["data"];
            match event["type"].as_str().unwrap() {
                "host_call" => {
                    let answer = match data["kind"] == "model" {
                        true => {
                            requests.push(data["args"].clone());
                            let list: Vec<Value> = calls
                                .iter()
                                .map(|name| json!({"name": name, "args": {}, "id": format!("c-{name}")}))
                                .collect();
                            match requests.len() {
                                1 if !list.is_empty() => json!({"ok": {"tool_calls": list}}),
                                _ => json!({"ok": {"content": "Done."}}),
                            }
                        }
                        false => tool(data["name"].as_str().unwrap()),
                    };
                    let id = data["call_id"].as_u64().unwrap();
                    runtime.finish(id, &answer.to_string()).unwrap();
                }
                "run_end" => {
                    assert_eq!(data["status"], "success", "{data}");
                    drop(run);
                    return requests;
                }
                _ => {}
            }
        }
    }
}

/// The contents of tool messages, by the tool's name.
fn results(messages: &Value) -> BTreeMap<String, String> {
    let messages = messages.as_array().unwrap().iter();
    let tools = messages.filter(|message| message["type"] == "tool");
    tools
        .map(|message| {
            let text = |name: &str| message[name].as_str().unwrap().to_owned();
            (text("name"), text("content"))
        })
        .collect()
}

fn stored(thread: &Thread) -> BTreeMap<String, String> {
    let state: Value = serde_json::from_str(&thread.state("{}").unwrap()).unwrap();
    results(&state["values"]["messages"])
}

#[test]
fn tob_3_a_lead_agent_without_files_keeps_the_ends_of_what_a_tool_said() {
    let runtime = runtime(json!({}));
    let agent = lead(&runtime);
    let thread = runtime.open_thread("{}").unwrap();
    let requests = talk(
        &runtime,
        &agent,
        &thread,
        &["tell", "read_file"],
        |_| json!({ "ok": log() }),
    );
    let kept = stored(&thread);
    let (told, read) = (&kept["tell"], &kept["read_file"]);
    assert!(chars(told) <= 30_000, "{}", chars(told));
    assert!(told.starts_with("line 0000\n") && told.ends_with("line 9999\n"));
    let (head, tail) = told.split_once("\n\n[").unwrap();
    assert_eq!(head.len(), 8_000, "the head ends with a whole line");
    assert!(tail.ends_with(&log()[log().len() - 3_000..]));
    assert!(
        told.contains("[89000 characters are left out here"),
        "{told}"
    );
    assert_eq!(*read, log(), "exempt");
    assert_eq!(
        results(&requests[1]["messages"]),
        kept,
        "the model reads what is stored"
    );
}

#[test]
fn tob_1_l17_every_source_is_within_bounds_and_a_disabled_budget_touches_nothing() {
    let long = "x".repeat(1 << 20);
    let answers = [
        json!({"ok": long}),
        json!({"ok": {"rows": long}}),
        json!({"ok": {"content": [{"type": "text", "text": long}]}}),
        json!({"error": {"message": long}}),
    ];
    for (place, answer) in answers.iter().enumerate() {
        for on in [true, false] {
            let runtime = runtime(json!({"tool_output": {"enabled": on}}));
            let agent = lead(&runtime);
            let thread = runtime.open_thread("{}").unwrap();
            talk(&runtime, &agent, &thread, &["tell"], |_| answer.clone());
            let state: Value = serde_json::from_str(&thread.state("{}").unwrap()).unwrap();
            let messages = state["values"]["messages"].as_array().unwrap();
            let content = &messages.iter().find(|it| it["type"] == "tool").unwrap()["content"];
            let text = content
                .as_str()
                .map_or_else(|| content.to_string(), str::to_owned);
            let bounded = on || place == 3;
            assert_eq!(chars(&text) <= 30_000, bounded, "answer {place}, {on}");
        }
    }
    // An agent without the middleware that words failures.
    let runtime = runtime(json!({}));
    let request = json!({
        "model": "main", "tools": [{"name": "tell", "description": "Tells."}],
        "middleware": [{"name": "tool_output_budget", "fallback_max_chars": 500}],
    });
    let agent = runtime.new_assembly(&request.to_string()).unwrap();
    let thread = runtime.open_thread("{}").unwrap();
    talk(&runtime, &agent, &thread, &["tell"], |_| answers[3].clone());
    let told = &stored(&thread)["tell"];
    assert!(
        told.starts_with("Error: xxx") && chars(told) <= 500,
        "{told}"
    );
    let error = runtime.new_assembly(
        &json!({"model": "main", "middleware": [{"name": "tool_output_budget", "storage_subdir": ".."}]}).to_string(),
    );
    let error = error.map(|_| ()).unwrap_err();
    assert_eq!(error.path.as_deref(), Some("/middleware/0/storage_subdir"));
}

#[test]
fn tob_4_results_that_are_in_a_thread_are_cut_in_requests_and_stay_in_the_thread() {
    let runtime = runtime(json!({}));
    let agent = lead(&runtime);
    let thread = runtime.open_thread("{}").unwrap();
    let messages = json!([
        {"type": "human", "content": "Before", "id": "h"},
        {"type": "ai", "content": "", "id": "a", "tool_calls": [
            {"name": "tell", "args": {}, "id": "c1"}, {"name": "read_file", "args": {}, "id": "c2"}]},
        {"type": "tool", "content": log(), "id": "t1", "name": "tell", "tool_call_id": "c1"},
        {"type": "tool", "content": log(), "id": "t2", "name": "read_file", "tool_call_id": "c2"},
    ]);
    let update = json!({"writes": [{"messages": messages}]});
    thread.update(&update.to_string()).unwrap();
    for _ in 0..2 {
        for request in talk(
            &runtime,
            &agent,
            &thread,
            &["tell"],
            |_| json!({"ok": "short"}),
        ) {
            let list = request["messages"].as_array().unwrap();
            let old = list.iter().find(|it| it["id"] == "t1").unwrap();
            assert!(chars(old["content"].as_str().unwrap()) <= 30_000);
            let exempt = list.iter().find(|it| it["id"] == "t2").unwrap();
            assert_eq!(exempt["content"], json!(log()));
        }
    }
    let state: Value = serde_json::from_str(&thread.state("{}").unwrap()).unwrap();
    assert_eq!(state["values"]["messages"][2]["content"], json!(log()));
}

#[test]
fn tob_2_a_lead_agent_with_a_home_stores_what_its_tools_say_where_they_see_it() {
    let home = std::env::temp_dir().join(format!("fawn-budget-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let home = home.canonicalize().unwrap();
    let runtime = runtime(json!({ "home": home }));
    let agent = lead(&runtime);
    let thread = runtime.open_thread(r#"{"thread_id": "t"}"#).unwrap();
    let requests = talk(
        &runtime,
        &agent,
        &thread,
        &["tell"],
        |_| json!({ "ok": log() }),
    );
    let told = &stored(&thread)["tell"];
    let at = told.find("/mnt/user-data/outputs/").unwrap();
    let path = told[at..].split_once(".txt").unwrap().0;
    let name = path.rsplit('/').next().unwrap();
    let outputs = home.join("users/default/threads/t/user-data/outputs/.tool-results");
    let text = std::fs::read_to_string(outputs.join(format!("{name}.txt"))).unwrap();
    assert_eq!(text, log());
    assert!(
        chars(told) < 5_000 && told.contains("Text, 10000 lines"),
        "{told}"
    );
    assert_eq!(results(&requests[1]["messages"])["tell"], *told);
    std::fs::remove_dir_all(&home).unwrap();
}

/// A host that is the sandbox: what it is asked in a run whose tool says too much.
fn asked_of_a_sandbox(call: &str, reads: &Value) -> (Vec<String>, String, Vec<String>) {
    let runtime = runtime(json!({"sandbox": {"use": "host"}}));
    let agent = lead(&runtime);
    let thread = runtime.open_thread("{}").unwrap();
    let queue = runtime.new_queue(r#"{"subscribe": ["log"]}"#).unwrap();
    let request = json!({"input": {"messages": [{"role": "user", "content": "Go"}]}});
    let _run = runtime
        .start_run(&agent, &thread, Some(&queue), &request.to_string())
        .unwrap();
    let (mut asked, mut warnings, mut turns) = (Vec::new(), Vec::new(), 0);
    loop {
        let Answer::Done(events) = queue.take(Wait::Forever, 64).unwrap() else {
            panic!("no events");
        };
        let events: Vec<Value> = serde_json::from_str(&events).unwrap();
        for event in &events {
            let data = &event["data"];
            match event["type"].as_str().unwrap() {
                "host_call" => {
                    let name = data["name"].as_str().unwrap();
                    let answer = match data["kind"].as_str().unwrap() {
                        "model" if turns == 0 => {
                            turns += 1;
                            let args = json!({"path": "/mnt/user-data/workspace/a"});
                            json!({"tool_calls": [{"name": call, "args": args, "id": "c1"}]})
                        }
                        "model" => json!({"content": "Done."}),
                        "tool" => log().into(),
                        _ => {
                            asked.push(name.to_owned());
                            match name {
                                "acquire" => json!({"sandbox_id": "s1"}),
                                "read_file" => reads.clone(),
                                _ => Value::Null,
                            }
                        }
                    };
                    let id = data["call_id"].as_u64().unwrap();
                    runtime
                        .finish(id, &json!({ "ok": answer }).to_string())
                        .unwrap();
                }
                "log" => warnings.push(data["code"].as_str().unwrap().to_owned()),
                "run_end" => {
                    assert_eq!(data["status"], "success", "{data}");
                    return (asked, stored(&thread)[call].clone(), warnings);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_sandbox_that_only_the_budget_needs_is_asked_for_once_and_given_back() {
    let (asked, told, warnings) = asked_of_a_sandbox("tell", &json!({"text": "x"}));
    assert_eq!(asked, ["acquire", "write_file", "read_file", "release"]);
    assert!(told.contains("/mnt/user-data/outputs/.tool-results/tell-"));
    assert!(warnings.is_empty());
    // One that says it wrote and has nothing.
    let (asked, told, warnings) = asked_of_a_sandbox("tell", &Value::Null);
    assert_eq!(asked, ["acquire", "write_file", "read_file", "release"]);
    assert!(told.contains("characters are left out here"));
    assert_eq!(warnings, ["output_not_stored"]);
    // Before a read the file is looked at, in the sandbox that the call was given.
    let (asked, told, _) = asked_of_a_sandbox("read_file", &json!({"text": "x"}));
    assert_eq!(asked, ["acquire", "read_file", "release"]);
    assert_eq!(told, log(), "exempt");
}

/// A tool of one outcome.
struct Tool(ToolOutcome);

impl CallTool for Tool {
    fn call(&self, _: ToolInvocation) -> BoxFuture<'_, ToolOutcome> {
        let outcome = self.0.clone();
        Box::pin(async move { outcome })
    }
}

fn ready<T>(mut future: BoxFuture<'_, T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

fn invocation(name: &str) -> ToolInvocation {
    ToolInvocation {
        message_id: "a1".into(),
        call_id: "c1".to_owned(),
        name: name.to_owned(),
        args: Map::new(),
        reads: ChannelReads::default(),
        run: run_context(),
    }
}

fn says(content: Value) -> ToolOutcome {
    ToolOutcome::Answer(ToolAnswer {
        content,
        ..ToolAnswer::default()
    })
}

fn answered(middleware: &dyn Middleware, name: &str, outcome: ToolOutcome) -> ToolAnswer {
    let tool = Tool(outcome);
    let next = NextTool::new(&[], &tool);
    match ready(middleware.wrap_tool_call(invocation(name), next)) {
        ToolOutcome::Answer(answer) => answer,
        ToolOutcome::Failed(reason) => panic!("{reason}"),
    }
}

/// What the model reads of a text.
fn read(middleware: &dyn Middleware, name: &str, text: &str) -> String {
    let answer = answered(middleware, name, says(text.into()));
    answer.content.as_str().unwrap().to_owned()
}

fn with_files(files: &Arc<Files>) -> ToolOutputBudget {
    let port: Arc<dyn ThreadFiles> = files.clone();
    ToolOutputBudget::new(&ToolOutputConfig::default(), Some(port), None)
}

fn with_sandbox(files: &Arc<Files>, sandbox: &Arc<Files>) -> ToolOutputBudget {
    let port: Arc<dyn ThreadFiles> = files.clone();
    let other: Arc<dyn Sandbox> = sandbox.clone();
    ToolOutputBudget::new(&ToolOutputConfig::default(), Some(port), Some(other))
}

#[test]
fn tob_2_the_whole_text_goes_to_a_file_and_a_synopsis_with_its_path_takes_its_place() {
    let files = Files::new(Behaviour::Sound);
    let budget = with_files(&files);
    let told = read(&budget, "bash", &log());
    let paths = files.paths();
    let path = paths[0].as_str();
    let name = path
        .strip_prefix("/mnt/user-data/outputs/.tool-results/bash-")
        .unwrap();
    let (digits, kind) = name.split_once('.').unwrap();
    assert!(digits.len() == 12 && digits.bytes().all(|it| it.is_ascii_hexdigit()) && kind == "log");
    assert_eq!(files.get(path), Some(log()), "whole");
    assert!(
        told.contains(path) && told.contains("Text, 10000 lines"),
        "{told}"
    );
    assert!(told.contains("line 0000\n") && told.ends_with("line 9999\n"));
    assert!(chars(&told) < 5_000);
    // The same call made again, after a crash, leaves one file; what it says twice is not stored twice.
    assert_eq!(read(&budget, "bash", &log()), told);
    assert_eq!(
        read(&budget, "bash", &told),
        told,
        "what stands for an output stays"
    );
    assert_eq!(files.paths().len(), 1);
    // Another one leaves another; short ones and exempt ones leave none.
    read(&budget, "web_search", &log());
    for (tool, text) in [("bash", "x".repeat(12_000)), ("read_file", log())] {
        assert_eq!(read(&budget, tool, &text), text);
    }
    assert_eq!(files.paths().len(), 2);
    assert!(files.paths()[1].ends_with(".txt"));
}

#[test]
fn tob_2_a_sandbox_with_files_of_its_own_gets_them() {
    let (files, own) = (Files::new(Behaviour::Sound), Files::new(Behaviour::Sound));
    let told = read(&with_sandbox(&files, &own), "t", &log());
    assert!(told.contains(&own.paths()[0]) && files.paths().is_empty());
    assert_eq!(own.get(&own.paths()[0]), Some(log()));
    // With the directories of this machine in it, they are the shorter way.
    let mounted = Files::mounted();
    read(&with_sandbox(&files, &mounted), "t", &log());
    assert_eq!(files.paths().len(), 1);
    assert_eq!(mounted.acquired.load(Ordering::Relaxed), 0);
}

#[test]
fn tob_3_what_cannot_be_stored_is_cut_and_the_host_is_warned() {
    for behaviour in [Behaviour::Fails, Behaviour::Forgets] {
        let (files, own) = (Files::new(Behaviour::Sound), Files::new(behaviour));
        let budget = with_sandbox(&files, &own);
        let call = invocation("t");
        let run = call.run.clone();
        let tool = Tool(says(log().into()));
        let next = NextTool::new(&[], &tool);
        let ToolOutcome::Answer(answer) = ready(budget.wrap_tool_call(call, next)) else {
            panic!("an answer");
        };
        let text = answer.content.as_str().unwrap();
        assert!(chars(text) <= 30_000 && text.contains("characters are left out here"));
        assert!(files.paths().is_empty(), "its tools would not see it there");
        let warnings = run.facts.signals.take_warnings().unwrap();
        let codes: Vec<_> = warnings.iter().map(|(warning, _)| warning.code()).collect();
        assert_eq!(codes, ["output_not_stored"]);
        // Between the two bounds it stays as it is.
        let text = "x".repeat(20_000);
        assert_eq!(read(&budget, "t", &text), text);
    }
}

#[test]
fn tob_1_and_4_metadata_stays_and_what_is_no_text_alone_is_left_alone() {
    let files = Files::new(Behaviour::Sound);
    let budget = with_files(&files);
    let block = json!({"type": "text", "text": log()});
    let picture = json!([block, {"type": "image", "url": "x"}]);
    assert_eq!(
        answered(&budget, "t", says(picture.clone())).content,
        picture
    );
    let answer = ToolAnswer {
        content: json!(["a", block]),
        artifact: json!({"rows": 7}),
        id: Some("m".to_owned()),
        additional_kwargs: Map::from_iter([("deerflow_tool_meta".to_owned(), json!({}))]),
        ..ToolAnswer::default()
    };
    let short = answered(&budget, "t", ToolOutcome::Answer(answer.clone()));
    assert!(
        short
            .content
            .as_str()
            .unwrap()
            .contains("/mnt/user-data/outputs/")
    );
    let rest = ToolAnswer {
        content: answer.content.clone(),
        ..short
    };
    assert_eq!(rest, answer);
    assert_eq!(files.get(&files.paths()[0]), Some(format!("a\n{}", log())));
}

#[test]
fn tob_4_every_tool_message_of_a_command_is_handled() {
    let files = Files::new(Behaviour::Sound);
    let budget = with_files(&files);
    let mut fields = Fields::new(Kind::Tool, log());
    fields.tool_call_id = "c1".into();
    fields.id = Some("m1".into());
    let loose = json!([
        {"type": "tool", "content": log() + "2", "tool_call_id": "c1"},
        {"role": "tool", "content": "short", "tool_call_id": "c1"},
        ["tool", log() + "3"],
        {"role": "user", "content": log()},
    ]);
    let update = StateUpdate::messages(vec![Message::new(fields), human(&log())])
        .and(Channel::Messages, Write::Value(loose))
        .and(Channel::Title, Write::Value(json!(log())));
    let answer = answered(
        &budget,
        "t",
        ToolOutcome::Answer(ToolAnswer {
            update: Some(update),
            ..ToolAnswer::default()
        }),
    );
    let texts: Vec<String> = files
        .paths()
        .iter()
        .map(|path| files.get(path).unwrap())
        .collect();
    assert_eq!(texts.len(), 3, "each has a file of its own");
    for tail in ["", "2", "3"] {
        assert!(texts.contains(&(log() + tail)));
    }
    let update = answer.update.unwrap();
    let Write::Messages(messages) = &update.writes[0].1 else {
        panic!("messages")
    };
    assert!(messages[0].text().contains(".tool-results") && messages[0].id() == Some("m1"));
    assert_eq!(messages[1].text(), log());
    let Write::Value(loose) = &update.writes[1].1 else {
        panic!("a value")
    };
    assert!(
        loose[0]["content"]
            .as_str()
            .unwrap()
            .contains(".tool-results")
    );
    assert_eq!(loose[1]["content"], "short");
    assert!(loose[2][1].as_str().unwrap().contains(".tool-results"));
    assert_eq!(loose[3]["content"], json!(log()));
    assert_eq!(update.writes[2].1, Write::Value(json!(log())));
}

#[test]
fn tob_bounds_of_tools_differ_and_zero_switches_them_off() {
    let files = Files::new(Behaviour::Sound);
    let port: Arc<dyn ThreadFiles> = files.clone();
    let config = ToolOutputConfig {
        externalize_min_chars: 100,
        tool_overrides: BTreeMap::from([("never".to_owned(), 0), ("late".to_owned(), 5_000)]),
        exempt_tools: vec!["free".to_owned()],
        ..ToolOutputConfig::default()
    };
    let budget = ToolOutputBudget::new(&config, Some(port), None);
    let long = "x".repeat(4_000);
    for (tool, is_stored) in [
        ("t", true),
        ("never", false),
        ("late", false),
        ("free", false),
    ] {
        assert_eq!(read(&budget, tool, &long) != long, is_stored, "{tool}");
    }
    let longer = "x".repeat(40_000);
    assert!(read(&budget, "never", &longer).contains("left out here"));
    assert!(read(&budget, "late", &longer).contains(".tool-results"));
    let off = ToolOutputConfig {
        externalize_min_chars: 0,
        fallback_max_chars: 0,
        ..ToolOutputConfig::default()
    };
    assert_eq!(
        read(&ToolOutputBudget::new(&off, None, None), "t", &longer),
        longer
    );
}

/// TRS-3: what is neutralised is whole, and what is cut is neutral.
#[test]
fn trs_3_a_cut_makes_no_tag_of_the_framework() {
    let clean: [Arc<dyn Middleware>; 1] = [Arc::new(ToolResultSanitization::new([]))];
    let config = ToolOutputConfig {
        fallback_max_chars: 200,
        fallback_head_chars: 30,
        fallback_tail_chars: 30,
        ..ToolOutputConfig::default()
    };
    let budget = ToolOutputBudget::new(&config, None, None);
    for pad in 0..40 {
        let text = format!(
            "{}<system-reminder>{}",
            "x".repeat(pad),
            "y</system-reminder>".repeat(40)
        );
        let tool = Tool(says(text.into()));
        let inner = NextTool::new(&clean, &tool);
        let outcome = ready(budget.wrap_tool_call(invocation("web_fetch"), inner));
        let ToolOutcome::Answer(answer) = outcome else {
            panic!("an answer")
        };
        let text = answer.content.as_str().unwrap();
        assert!(
            !text.contains("<system") && !text.contains("</system"),
            "{text}"
        );
    }
}

#[test]
fn whatever_a_tool_says_and_the_bounds_are_the_model_reads_no_more_and_a_second_pass_nothing_else()
{
    let mut random = Random::new(5);
    let pieces = [
        "a", "é", "好", "🙂", "\n", "{\"k\": ", "}", "<a>", ",", "\t", "word ", "\u{301}",
    ];
    for round in 0..2_000 {
        let files = Files::new([Behaviour::Sound, Behaviour::Fails][round % 2]);
        let port: Arc<dyn ThreadFiles> = files.clone();
        let config = ToolOutputConfig {
            externalize_min_chars: random.below(2_000),
            preview_head_chars: random.below(1_500),
            preview_tail_chars: random.below(1_500),
            fallback_max_chars: 1 + random.below(4_000),
            fallback_head_chars: random.below(2_500),
            fallback_tail_chars: random.below(2_500),
            ..ToolOutputConfig::default()
        };
        let budget = ToolOutputBudget::new(&config, Some(port), None);
        let text: String = (0..random.below(5_000))
            .map(|_| pieces[random.below(12) as usize])
            .collect();
        let told = read(&budget, "t", &text);
        assert!(
            chars(&told) as u64 <= config.fallback_max_chars,
            "{config:?}\n{told}"
        );
        let stored = files.paths().len();
        assert_eq!(read(&budget, "t", &told), told, "{config:?}");
        assert_eq!(files.paths().len(), stored);
        if told.contains(".tool-results") {
            assert_eq!(files.get(&files.paths()[0]), Some(text));
        }
    }
}

/// Notes the transcripts that arrive.
#[derive(Default)]
struct Model(Option<Arc<Transcript>>);

impl NextModel for Model {
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>> {
        self.0 = Some(request.messages);
        Box::pin(async { Ok(ModelResponse::default()) })
    }
}

fn sent(budget: &ToolOutputBudget, messages: &Arc<Transcript>) -> Arc<Transcript> {
    let mut model = Model::default();
    let request = ModelRequest {
        purpose: Purpose::Lead,
        system: None,
        preamble: None,
        messages: messages.clone(),
        tools: Arc::new([]),
        tool_choice: None,
        attempt: 0,
        reads: ChannelReads::default(),
        run: run_context(),
    };
    ready(budget.wrap_model_call(request, &mut model)).unwrap();
    model.0.unwrap()
}

/// A call and its result.
fn turn(n: usize, text: &str) -> [Message; 2] {
    let mut ai = Fields::new(Kind::Ai, "");
    ai.id = Some(format!("a{n}"));
    ai.tool_calls.push(ToolCall {
        name: "tell".into(),
        id: Some(format!("c{n}")),
        ..ToolCall::default()
    });
    let mut tool = Fields::new(Kind::Tool, text);
    tool.tool_call_id = format!("c{n}");
    [Message::new(ai), Message::new(tool)]
}

#[test]
fn a_turn_of_a_long_thread_costs_what_it_adds() {
    let budget = ToolOutputBudget::new(&ToolOutputConfig::default(), None, None);
    let mut messages: Vec<Message> = (0..20).flat_map(|n| turn(n, "short")).collect();
    let quiet = Arc::new(Transcript::from(messages.clone()));
    assert!(
        Arc::ptr_eq(&sent(&budget, &quiet), &quiet),
        "nothing to cut, nothing copied"
    );
    messages.extend(turn(20, &log()));
    let mut thread = Arc::new(Transcript::from(messages));
    let first = sent(&budget, &thread);
    let (at, short) = (Arc::as_ptr(&first), first[41].clone());
    assert!(chars(&short.text()) <= 30_000);
    drop(first);
    Arc::get_mut(&mut thread).unwrap().extend(turn(21, "short"));
    let second = sent(&budget, &thread);
    assert_eq!(Arc::as_ptr(&second), at, "the transcript was not copied");
    assert!(second[41].same(&short), "the result was not cut again");
    assert!(second[43].same(&thread[43]));

    // Twenty messages with nothing to cut: what it costs.
    let thread = Arc::new(Transcript::from(
        (0..10)
            .flat_map(|n| turn(n, &"x".repeat(2_000)))
            .collect::<Vec<_>>(),
    ));
    sent(&budget, &thread);
    let key = Instant::now();
    for _ in 0..100_000 {
        std::hint::black_box(sent(&budget, &thread));
    }
    let known = key.elapsed() / 100_000;
    let rounds = 10_000;
    let all: Vec<Arc<Transcript>> = (0..rounds)
        .map(|_| Arc::new(Transcript::from(thread.to_vec())))
        .collect();
    let start = Instant::now();
    for fresh in &all {
        std::hint::black_box(sent(&budget, fresh));
    }
    let fresh = start.elapsed() / rounds;
    if std::env::var_os("MEASURE").is_some() {
        panic!("a known thread of 20 messages: {known:?} a turn; a new one: {fresh:?}");
    }
    // A generous bound: with a debugger's optimisation it is far below, and a copy of the thread would be above.
    assert!(known.as_micros() < 20, "{known:?}");
}
