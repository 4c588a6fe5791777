//! What assembling a lead agent costs: 50 tools, 30 skills on disk, cold and warm, and beside open threads.
//!
//! Prints one JSON object a line: `{"peer":"fawn","case":…,"us_per_run":…}`. Figures are medians; compare them only with what
//! a peer does in the same go (`benches/peers/assemble.sh`).

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fawn::runtime::Runtime;
use serde_json::{Value, json};

const TOOLS: usize = 50;
const SKILLS: usize = 30;
const COLD: usize = 15;
const WARM: usize = 2000;
const THREADS: usize = 10_000;
/// What a request for the agent looks like.
const REQUEST: &str = r#"{"factory":"lead","configurable":{"model_name":"main","thinking_enabled":true,"is_plan_mode":true},"context":{"user_id":"u-17"}}"#;

fn main() {
    let home = Home::new();
    let config = config(&home.0).to_string();

    let mut cold = Vec::new();
    for _ in 0..COLD {
        let runtime = Runtime::new(&config).expect("a runtime");
        cold.push(timed(&runtime, REQUEST));
    }
    report("assemble_cold", &mut cold);

    let runtime = Runtime::new(&config).expect("a runtime");
    timed(&runtime, REQUEST);
    report("assemble_warm", &mut rounds(&runtime, REQUEST));
    let described = || {
        let begin = Instant::now();
        let agent = runtime.new_assembly(REQUEST).expect("an assembly");
        assert!(agent.descriptor().expect("a descriptor").len() > 1000);
        begin.elapsed()
    };
    let mut samples: Vec<Duration> = (0..WARM / 4).map(|_| described()).collect();
    report("assemble_described", &mut samples);

    let threads: Vec<_> = (0..THREADS)
        .map(|_| runtime.open_thread("{}").expect("a thread"))
        .collect();
    report("assemble_beside_threads", &mut rounds(&runtime, REQUEST));
    drop(threads);
}

fn rounds(runtime: &Runtime, request: &str) -> Vec<Duration> {
    (0..WARM).map(|_| timed(runtime, request)).collect()
}

fn timed(runtime: &Runtime, request: &str) -> Duration {
    let begin = Instant::now();
    let agent = runtime.new_assembly(request).expect("an assembly");
    let took = begin.elapsed();
    drop(agent);
    took
}

fn report(case: &str, samples: &mut [Duration]) {
    samples.sort();
    let median = samples[samples.len() / 2].as_secs_f64() * 1e6;
    println!(
        "{}",
        json!({"peer": "fawn", "case": case, "us_per_run": median, "samples": samples.len()})
    );
}

/// The configuration: tools in the configuration, skills in a folder, a model that does not answer.
fn config(home: &Path) -> Value {
    let tools: Vec<Value> = (0..TOOLS).map(tool).collect();
    json!({
        "workers": 0,
        "models": [{
            "name": "main", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1",
            "supports_thinking": true,
        }],
        "tool_groups": [{"name": "all"}],
        "tools": tools,
        "skills": {"path": home.join("skills")},
        "home": home.join("home"),
    })
}

fn tool(number: usize) -> Value {
    json!({
        "name": format!("tool_{number}"),
        "group": "all",
        "description": "Looks up orders of a customer and answers with their states, newest first.",
        "parameters": {
            "type": "object",
            "properties": {
                "customer": {"type": "string", "description": "Number of the customer."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
                "states": {"type": "array", "items": {"enum": ["open", "sent", "closed"]}},
            },
            "required": ["customer"],
        },
    })
}

/// A folder with skills that goes away at the end.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        let root = std::env::temp_dir().join(format!("fawn-assemble-{}", std::process::id()));
        for number in 0..SKILLS {
            let folder = root.join(format!("skills/public/skill-{number}"));
            std::fs::create_dir_all(&folder).expect("a folder");
            let body = "Read the data first, then write down what it says.\n".repeat(100);
            let text = format!(
                "---\nname: skill-{number}\ndescription: Turns data of kind {number} into a report.\nallowed-tools: [tool_1, tool_2]\n---\n\n{body}"
            );
            std::fs::write(folder.join("SKILL.md"), text).expect("a file");
        }
        std::fs::create_dir_all(root.join("home")).expect("a folder");
        Home(root)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Whatever is left is in the temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
