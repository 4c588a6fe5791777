//! Measures rig's agent on one run: two model turns with one tool call between them, the thread kept in memory.
//!
//! Prints one JSON line per case, as `benches/peers/README.md` describes. Settings come from the environment, so that
//! every peer of one comparison does the same: `PEER_RUNS` (runs per round), `PEER_ROUNDS`, `PEER_THREADS` (threads
//! taken to turn 60).

use std::convert::Infallible;
use std::time::Instant;

use futures::stream;
use rig_agent::completion::{CompletionRequest, CompletionResponse, Usage};
use rig_agent::run::MemoryAppend;
use rig_agent::tool::{Tool, ToolContext};
use rig_agent::{Agent, AgentBuilder};
use rig_core::driver::{Exchange, Model, Opened, Opening, Transport};
use rig_core::memory::InMemoryConversationMemory;
use rig_core::message::{
    AssistantContent, Message, Origin, ToolCall, ToolFunction, ToolName, UserContent,
};
use rig_core::test_utils::{MockFrame, MockScript};
use serde::Deserialize;

/// Turns that the long threads are taken to.
const TURNS: usize = 60;
const PROMPT: &str = "What is 2 + 3?";
const ANSWER: &str = "The sum is 5.";
const MESSAGES_PER_RUN: usize = 4;

/// The scripted model. It asks for the tool unless the last message is the tool's result, so that any number of turns
/// on one thread work, and neither queues nor records anything: only the loop is measured.
#[derive(Clone)]
struct Scripted;

impl Transport<MockScript> for Scripted {
    fn send(&self, request: CompletionRequest, _exchange: Exchange) -> Opening<MockFrame> {
        let answers_a_call = matches!(
            request.chat_history.last(),
            Some(Message::User { content })
                if content.iter().any(|part| matches!(part, UserContent::ToolResult(_)))
        );
        let reply = if answers_a_call {
            AssistantContent::text(ANSWER)
        } else {
            AssistantContent::ToolCall(ToolCall::from_wire(
                "call_1",
                ToolFunction::new(
                    ToolName::new("add").expect("the name is not empty"),
                    serde_json::json!({"a": 2, "b": 3}),
                ),
            ))
        };
        let response = CompletionResponse::new(
            vec![reply],
            Usage::new().total_tokens(30),
            Origin::new("bench.scripted", "scripted", ""),
            serde_json::Value::Null,
        );
        Opening::ready(Opened::new(stream::iter([Ok(MockFrame::Response(
            Box::new(response),
        ))])))
    }
}

#[derive(Deserialize)]
struct AddArgs {
    a: i64,
    b: i64,
}

/// The one tool: adds two integers.
#[derive(Clone)]
struct Add;

impl Tool for Add {
    const NAME: &'static str = "add";
    type Args = AddArgs;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "Adds two integers.".to_owned()
    }

    fn parameters(&self) -> serde_json::Value {
        serde_json::json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"]
        })
    }

    async fn call(&self, _context: &mut ToolContext, args: AddArgs) -> Result<String, Infallible> {
        Ok((args.a + args.b).to_string())
    }
}

/// One run on the thread `conversation`; panics when the answer is not the scripted one, so that no broken run is ever
/// measured as a fast one.
async fn run(agent: &Agent, conversation: &str) {
    let response = agent
        .prompt(PROMPT)
        .max_turns(2)
        .conversation(conversation.to_owned())
        .await
        .expect("the scripted run ends well");
    assert_eq!(response.output(), ANSWER);
    assert_eq!(response.messages.len(), MESSAGES_PER_RUN);
    assert_eq!(response.memory_append, Some(MemoryAppend::Acknowledged));
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number"))
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(case: &str, us: f64, samples: usize) {
    println!(
        "{}",
        serde_json::json!({
            "peer": "rig", "version": "0.44.0", "case": case,
            "us_per_run": (us * 100.0).round() / 100.0, "samples": samples,
        })
    );
}

fn main() {
    let (runs, rounds, threads) = (
        setting("PEER_RUNS", 2000).max(1),
        setting("PEER_ROUNDS", 5).max(1),
        setting("PEER_THREADS", 21).max(1),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without drivers needs nothing");
    let agent = AgentBuilder::new(Model::new(MockScript::new("scripted"), Scripted))
        .preamble("You add numbers with the tool.")
        .tool(Add)
        .memory(InMemoryConversationMemory::new())
        .build();

    runtime.block_on(async {
        for n in 0..runs.min(500) {
            run(&agent, &format!("warm-{n}")).await;
        }
        let mut per_run = Vec::new();
        for round in 0..rounds {
            let begin = Instant::now();
            for n in 0..runs {
                run(&agent, &format!("run-{round}-{n}")).await;
            }
            per_run.push(begin.elapsed().as_secs_f64() * 1e6 / runs as f64);
        }
        print("run", median(per_run), runs * rounds);

        let (mut first, mut last) = (Vec::new(), Vec::new());
        for thread in 0..threads {
            let id = format!("long-{thread}");
            for turn in 1..=TURNS {
                let begin = Instant::now();
                run(&agent, &id).await;
                let us = begin.elapsed().as_secs_f64() * 1e6;
                match turn {
                    1 => first.push(us),
                    TURNS => last.push(us),
                    _ => {}
                }
            }
        }
        print("turn_1", median(first), threads);
        print("turn_60", median(last), threads);
    });
}
