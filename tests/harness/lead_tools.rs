//! The tools of a lead agent in whole runs: deferral and promotion (XT-8), routing, authorization, clarification.

use std::sync::{Arc, Mutex};

use fawn::agent::assembly::AssemblyParts;
use fawn::agent::tool_list::{
    ConfiguredTool, NameFilter, SelfTool, ToolList, ToolListInputs, available_tools,
};
use fawn::middleware::Middleware;
use fawn::middleware::clarification::Clarification;
use fawn::middleware::deferred_tool_filter::DeferredToolFilter;
use fawn::middleware::mcp_routing::{DEFAULT_TOP_K, RoutePromotion};
use fawn::ports::authorization::Access;
use fawn::ports::authorization::{Authorizer, Principal, Resource, Verdict};
use fawn::ports::model::{DeltaSink, ModelError, ModelProvider, ModelReply, ModelRequest};
use fawn::ports::tool::{
    DynTool, McpOrigin, McpRouting, Tool, ToolInvocation, ToolOrigin, ToolOutcome, ToolSpec,
};
use fawn::protocol::message::Kind;
use fawn::runtime::{Answer, Runtime, Thread, Wait};
use fawn::tools::BuiltinInputs;
use serde_json::{Value, json};

use crate::parts::{answer, calls, parts, says};

/// A tool of an MCP server; notes that it ran.
struct Remote {
    spec: ToolSpec,
    origin: ToolOrigin,
    ran: Ran,
}

type Ran = Arc<Mutex<Vec<String>>>;

impl Tool for Remote {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn origin(&self) -> &ToolOrigin {
        &self.origin
    }
    async fn call(&self, call: ToolInvocation) -> ToolOutcome {
        self.ran.lock().unwrap().push(call.name.clone());
        answer(&format!("{} ran", call.name))
    }
}

fn remote(ran: &Ran, name: &str, keywords: &[&str]) -> Arc<dyn DynTool> {
    let keywords: Vec<String> = keywords.iter().map(|word| (*word).to_owned()).collect();
    let routing = (!keywords.is_empty()).then_some(McpRouting {
        priority: 1,
        keywords,
    });
    Arc::new(Remote {
        spec: ToolSpec {
            name: name.to_owned(),
            description: format!("Does {name}"),
            parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}}}).into(),
        },
        origin: ToolOrigin::Mcp(McpOrigin {
            routing,
            ..McpOrigin::default()
        }),
        ran: ran.clone(),
    })
}

/// Answers with a fixed list of replies and keeps the names of the tools that each request had.
struct Model {
    replies: Vec<ModelReply>,
    seen: Arc<Mutex<Vec<Vec<String>>>>,
}

impl ModelProvider for Model {
    async fn call(
        &self,
        request: &ModelRequest,
        _: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let names = request.tools.iter().map(|spec| spec.name.clone());
        let mut seen = self.seen.lock().unwrap();
        seen.push(names.collect());
        Ok(self.replies[seen.len() - 1].clone())
    }
}

/// The tools and the chain that the lead agent has for them.
fn lead(tools: &[Arc<dyn DynTool>], authorization: Option<Access>) -> AssemblyParts {
    let configured: Vec<ConfiguredTool> = tools
        .iter()
        .map(|tool| ConfiguredTool {
            group: None,
            tool: tool.clone(),
        })
        .collect();
    let (list, _) = available_tools(ToolListInputs {
        configured: &configured,
        groups: None,
        host_bash: false,
        builtins: Some(BuiltinInputs::default()),
        self_tool: SelfTool::None,
        webhook: false,
        non_interactive: false,
        names: NameFilter::default(),
        late: Vec::new(),
        access: authorization,
        deferral: true,
    })
    .expect("a sound list");
    let ToolList {
        bound,
        deferred,
        gate,
    } = list;
    let mut chain: Vec<Arc<dyn Middleware>> = Vec::new();
    chain.extend(gate.map(|gate| Arc::new(gate) as Arc<dyn Middleware>));
    if let Some(deferred) = deferred {
        let routing = RoutePromotion::new(&bound, &deferred, DEFAULT_TOP_K);
        chain.extend(routing.map(|part| Arc::new(part) as Arc<dyn Middleware>));
        chain.push(Arc::new(DeferredToolFilter::new(deferred)));
    }
    chain.push(Arc::new(Clarification::new()));
    AssemblyParts {
        tools: bound,
        middleware: chain,
        ..parts(crate::parts::ScriptModel::new(Vec::new()))
    }
}

/// Runs the replies on a thread; what each request had, and the messages that the thread then has.
fn run(
    (runtime, thread): &(Runtime, Thread),
    mut parts: AssemblyParts,
    replies: Vec<ModelReply>,
    request: Value,
) -> (Vec<Vec<String>>, Vec<Value>) {
    let seen = Arc::default();
    parts.model = Arc::new(Model {
        replies,
        seen: Arc::clone(&seen),
    });
    let agent = runtime.compose(parts).expect("sound parts");
    let run = runtime
        .start_run(&agent, thread, None, &request.to_string())
        .expect("a run");
    let Ok(Answer::Done(result)) = run.wait(Wait::Forever) else {
        panic!("no result");
    };
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["status"], "success", "{result}");
    let state: Value = serde_json::from_str(&thread.state("{}").unwrap()).unwrap();
    let messages = state["values"]["messages"].as_array().cloned();
    let seen = seen.lock().unwrap().clone();
    (seen, messages.expect("messages"))
}

fn thread() -> (Runtime, Thread) {
    let config = r#"{"testing":{"clock":"2026-01-01T00:00:00Z","ids":"sequential","workers":0}}"#;
    let runtime = Runtime::new(config).expect("a sound configuration");
    let thread = runtime.open_thread(r#"{"thread_id":"t"}"#);
    let thread = thread.expect("a thread");
    (runtime, thread)
}

fn says_user(text: &str) -> Value {
    json!({"input": {"messages": [{"role": "user", "content": text}]}})
}

fn results(messages: &[Value]) -> Vec<&Value> {
    messages
        .iter()
        .filter(|message| message["type"] == Kind::Tool.name())
        .collect()
}

const BASE: [&str; 3] = ["present_files", "ask_clarification", "tool_search"];

#[test]
fn xt_8_a_deferred_tool_is_called_only_after_it_was_fetched_from_this_catalog() {
    let ran = Ran::default();
    let (x, y) = (remote(&ran, "x", &[]), remote(&ran, "y", &[]));
    let thread = thread();
    let replies = vec![
        calls(&[("x", "c1", json!({"n": 1}))]),
        // The promotion is not there yet for what stands beside the search.
        calls(&[
            ("tool_search", "c2", json!({"query": "select:x"})),
            ("x", "c3", json!({})),
        ]),
        calls(&[("x", "c4", json!({"n": 2}))]),
        calls(&[("y", "c5", json!({}))]),
        says("done"),
    ];
    let (seen, messages) = run(
        &thread,
        lead(&[x.clone(), y.clone()], None),
        replies,
        says_user("go"),
    );
    let with_x = ["present_files", "ask_clarification", "x", "tool_search"];
    assert_eq!(seen[0], BASE);
    assert_eq!(seen[1], BASE);
    assert_eq!(seen[2], with_x, "the next request binds it");
    assert_eq!(seen[4], with_x);
    let results = results(&messages);
    for (place, status) in ["error", "success", "error", "success", "error"]
        .iter()
        .enumerate()
    {
        assert_eq!(
            results[place]["status"], *status,
            "{place}: {}",
            results[place]
        );
    }
    let schemas = results[1]["content"].as_str().unwrap();
    let schemas: Value = serde_json::from_str(schemas).expect("an array of schemas");
    assert_eq!(schemas[0]["name"], "x");
    assert_eq!(schemas[0]["parameters"], *x.spec().parameters);
    assert_eq!(*ran.lock().unwrap(), ["x"]);

    // The same catalog later: x is there. Another catalog: it is not, until it is fetched from that one.
    let (seen, _) = run(
        &thread,
        lead(&[x.clone(), y.clone()], None),
        vec![says("hi")],
        says_user("b"),
    );
    assert_eq!(seen[0], with_x);
    let other = || lead(&[x.clone(), y.clone(), remote(&ran, "z", &[])], None);
    let replies = vec![
        calls(&[("x", "d1", json!({}))]),
        calls(&[("tool_search", "d2", json!({"query": "select:z"}))]),
        says("done"),
    ];
    let (seen, _) = run(&thread, other(), replies, says_user("c"));
    assert_eq!(seen[0], BASE);
    assert_eq!(
        seen[2],
        ["present_files", "ask_clarification", "z", "tool_search"]
    );
    assert_eq!(ran.lock().unwrap().len(), 1);
}

#[test]
fn mw_rte_1_a_keyword_of_the_user_s_message_binds_the_tool_at_once() {
    let ran = Ran::default();
    let tools = [
        remote(&ran, "sql", &["Database"]),
        remote(&ran, "other", &["mail"]),
    ];
    let thread = thread();
    let replies = vec![calls(&[("sql", "c1", json!({}))]), says("done")];
    let (seen, _) = run(
        &thread,
        lead(&tools, None),
        replies,
        says_user("ask the DATABASE"),
    );
    assert_eq!(
        seen[0],
        ["present_files", "ask_clarification", "sql", "tool_search"]
    );
    assert_eq!(*ran.lock().unwrap(), ["sql"]);
}

/// Lets everything be bound, and `x` never be called.
struct NotX;

impl Authorizer for NotX {
    fn name(&self) -> &str {
        "not_x"
    }
    fn authorize(
        &self,
        _: &Principal,
        _: Resource,
        _: &str,
        target: &str,
    ) -> Result<Verdict, String> {
        match target {
            "x" => Ok(Verdict::Deny("not today".into())),
            "tool_search" => Err("it does not know our own tools".into()),
            _ => Ok(Verdict::Allow),
        }
    }
    fn filter_resources(
        &self,
        _: &Principal,
        _: Resource,
        names: &[&str],
    ) -> Result<Vec<String>, String> {
        Ok(names.iter().map(|name| (*name).to_owned()).collect())
    }
}

#[test]
fn tl_10_a_call_that_is_not_allowed_is_refused_although_the_tool_is_bound() {
    let ran = Ran::default();
    let tools = [remote(&ran, "x", &["go"]), remote(&ran, "y", &["go"])];
    let authorization = Access {
        authorizer: Arc::new(NotX),
        principal: Principal::default(),
        fail_closed: true,
    };
    let replies = vec![
        calls(&[
            ("x", "c1", json!({})),
            ("y", "c2", json!({})),
            ("tool_search", "c3", json!({"query": "x"})),
        ]),
        says("done"),
    ];
    let thread = thread();
    let (_, messages) = run(
        &thread,
        lead(&tools, Some(authorization)),
        replies,
        says_user("go"),
    );
    let results = results(&messages);
    let refusal = results[0]["content"].as_str().unwrap();
    assert!(refusal.contains("not today"), "{refusal}");
    assert_eq!(*ran.lock().unwrap(), ["y"]);
    assert_eq!(
        results[2]["status"], "success",
        "the search of this agent passes unasked"
    );
}

#[test]
fn mw_cla_a_question_ends_the_run_and_nothing_else_of_the_reply_is_done() {
    let ran = Ran::default();
    let tools = [remote(&ran, "x", &["go"])];
    let thread = thread();
    let asks = || {
        calls(&[
            ("x", "c1", json!({})),
            (
                "ask_clarification",
                "c2",
                json!({"question": "Which?", "clarification_type": "nonsense", "options": ["a", "b"]}),
            ),
        ])
    };
    // One reply: a second request would have none.
    let (_, messages) = run(&thread, lead(&tools, None), vec![asks()], says_user("go"));
    assert_eq!(messages.len(), 3);
    let reply_calls: Vec<_> = messages[1]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(reply_calls.len(), 1, "{reply_calls:?}");
    let question = &messages[2];
    assert_eq!(question["id"], "clarification:c2");
    assert_eq!(question["name"], "ask_clarification");
    assert_eq!(question["content"], "❓ Which?\n\n  1. a\n  2. b");
    assert_eq!(
        question["artifact"]["human_input"]["input_mode"],
        "choice_with_other"
    );

    // The answer is a new run. A model that counts its calls from one again asks under the same id: both questions stay.
    let (_, messages) = run(&thread, lead(&tools, None), vec![asks()], says_user("a"));
    assert_eq!(messages.len(), 6);
    assert_eq!(messages[2], *question);
    assert_eq!(messages[5]["tool_call_id"], "c2");
    assert_eq!(*ran.lock().unwrap(), [""; 0]);

    // Where nobody answers, everything is done and the run goes on.
    let mut request = says_user("go");
    request["context"] = json!({"disable_clarification": true});
    let (_, messages) = run(
        &thread,
        lead(&tools, None),
        vec![asks(), says("done")],
        request,
    );
    let last = &messages[6..];
    assert_eq!(last.len(), 5);
    assert_eq!(last[4]["content"], "done");
    assert_eq!(last[3]["artifact"], Value::Null);
    assert_eq!(*ran.lock().unwrap(), ["x"]);
}

#[test]
fn upl_5_presented_files_are_artifacts_of_the_thread() {
    let thread = thread();
    let present = |paths: Value| calls(&[("present_files", "c1", json!({ "filepaths": paths }))]);
    let good = "/mnt/user-data/outputs/a.md";
    for (paths, expected) in [
        (json!([good, "/etc/passwd"]), json!([])),
        (
            json!([good, "/mnt/user-data/outputs//b/./c"]),
            json!([good, "/mnt/user-data/outputs/b/c"]),
        ),
    ] {
        let replies = vec![present(paths), says("done")];
        run(&thread, lead(&[], None), replies, says_user("go"));
        let state: Value = serde_json::from_str(&thread.1.state("{}").unwrap()).unwrap();
        assert_eq!(state["values"]["artifacts"], expected);
    }
}
