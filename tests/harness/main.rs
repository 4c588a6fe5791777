//! The harness through its Rust API: machines stepped by hand, and whole runs.

#![allow(clippy::unwrap_used, reason = "a failed test says where")]

#[path = "../support/mod.rs"]
mod support;

mod aimock;
mod app_config;
mod cancels;
mod contexts;
mod crash;
mod custom_agents;
mod descriptor;
mod durable;
mod families;
mod faults;
mod goals;
mod golden;
mod guards;
mod host_middleware;
mod lead;
mod lead_options;
mod lead_tools;
mod llm_errors;
mod llmock;
mod machine;
mod model_choice;
mod output_budget;
mod prompt;
mod read_before_write;
mod retry;
mod runaway;
mod runs;
mod sanitize;
mod sanitizing;
mod skill_runs;
mod subagent_executions;
mod subagent_prompt;
mod subagent_races;
mod subagent_settings;
mod subagents;
mod subagents_object;
mod summaries;
mod thread_files;
mod tool_guards;
mod transcripts;

use support::{host, parts, ports};
