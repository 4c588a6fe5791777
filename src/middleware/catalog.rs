//! What the middlewares of the chain are for and where their settings come from, for those who name them in a configuration.
//!
//! The list is checked against [`CHAIN`], which says what there is and in which order.

use serde_json::{Value, json};

use super::CHAIN;

/// Name, what it does, and the section of the configuration that its settings are those of.
type Entry = (&'static str, &'static str, Option<&'static str>);

const ENTRIES: &[Entry] = &[
    (
        "input_sanitization",
        "Frames what users wrote and takes the framework's tags out of it, in requests.",
        None,
    ),
    (
        "tool_output_budget",
        "Puts long results of tools into files, or cuts them.",
        Some("tool_output"),
    ),
    (
        "tool_result_sanitization",
        "Takes the framework's tags out of what web tools and MCP servers answer.",
        None,
    ),
    (
        "thread_data",
        "Writes where the files of the thread are to the channel thread_data.",
        None,
    ),
    ("uploads", "Tells the model of uploaded files.", None),
    (
        "sandbox",
        "Gets the thread's sandbox for tools that need one, and gives it back.",
        Some("sandbox"),
    ),
    (
        "dangling_tool_call",
        "Pairs calls and results in requests, so that strict endpoints take them.",
        None,
    ),
    (
        "llm_error_handling",
        "Makes a message for the user of a model call that failed for good, and leaves a failing model alone for a while.",
        Some("circuit_breaker"),
    ),
    (
        "guardrail",
        "Asks the authorization about every call.",
        Some("authorization"),
    ),
    (
        "guardrail_provider",
        "Asks the guardrail about every call.",
        Some("guardrails"),
    ),
    (
        "sandbox_audit",
        "Refuses dangerous commands of the tool bash, and tells of risky ones.",
        None,
    ),
    (
        "read_before_write",
        "Lets files be changed only as they were last read.",
        Some("read_before_write"),
    ),
    (
        "tool_progress",
        "Stops tools that get nowhere.",
        Some("tool_progress"),
    ),
    (
        "tool_error_handling",
        "Makes results of failures, and says what kind of result each is.",
        None,
    ),
    (
        "dynamic_context",
        "Tells the model the date, and what is remembered.",
        Some("memory"),
    ),
    (
        "skill_activation",
        "Gives the model a skill that the user started with a slash.",
        Some("skills"),
    ),
    (
        "skill_tool_policy",
        "Leaves an agent the tools that its active skills allow.",
        Some("skills"),
    ),
    (
        "durable_context",
        "Keeps delegations and skills in mind beside a thread that is shortened. Outright its settings are \
         skill_file_read_tool_names and skills_container_path.",
        Some("summarization"),
    ),
    (
        "summarization",
        "Puts a summary in the place of the beginning of a long thread.",
        Some("summarization"),
    ),
    (
        "todo",
        "Brings write_todos, and keeps the plan in mind.",
        None,
    ),
    (
        "token_usage",
        "Says in each reply what its tokens were spent on.",
        Some("token_usage"),
    ),
    ("title", "Gives a new thread a title.", Some("title")),
    ("memory", "Hands a turn to the memory.", Some("memory")),
    (
        "view_image",
        "Shows the model the images that it asked for.",
        None,
    ),
    (
        "mcp_routing",
        "Promotes deferred tools that the user's words speak for.",
        Some("tool_search"),
    ),
    (
        "deferred_tool_filter",
        "Keeps deferred tools from the model until it has found them.",
        Some("tool_search"),
    ),
    (
        "system_message_coalescing",
        "Makes one system text of all system messages of a request.",
        None,
    ),
    (
        "subagent_limit",
        "Bounds how many subagents a reply and a run may ask for.",
        None,
    ),
    (
        "loop_detection",
        "Warns and then stops a model that goes round in circles.",
        Some("loop_detection"),
    ),
    (
        "token_budget",
        "Warns and then stops a run that uses many tokens, as its model reports them.",
        Some("token_budget"),
    ),
    (
        "terminal_response",
        "Asks once more when a model says nothing after its tools have answered.",
        None,
    ),
    (
        "model_length",
        "Says so when a reply was cut at the model's limit.",
        None,
    ),
    (
        "safety_finish_reason",
        "Drops the calls of a reply that the provider cut for safety, and says so.",
        Some("safety_finish_reason"),
    ),
    (
        "clarification",
        "Puts the questions of ask_clarification to the user, and ends the run with them.",
        None,
    ),
];

/// The answer to the topic `middleware`: the middlewares in the order of the chain.
pub fn describe() -> Value {
    let middlewares = CHAIN.iter().map(|place| {
        let entry = ENTRIES.iter().find(|(name, ..)| *name == place.name);
        let (_, about, section) = entry.copied().unwrap_or((place.name, "", None));
        json!({
            "name": place.name,
            "about": about,
            "by_name": place.outright.is_some(),
            "section": section,
        })
    });
    json!({
        "about": "The chain of lead agents, outermost first. by_name: whether the factories custom and direct may name it too, \
                  as text or as {\"name\", …settings}. section: whose members its settings are (schema runtime_config); null: it \
                  takes none.",
        "middlewares": middlewares.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::app_config::AppConfig;

    #[test]
    fn every_middleware_of_the_chain_is_told_of_and_no_other() {
        let of_chain: Vec<&str> = CHAIN.iter().map(|place| place.name).collect();
        let told: Vec<&str> = ENTRIES.iter().map(|(name, ..)| *name).collect();
        assert_eq!(told, of_chain);
        for (name, about, section) in ENTRIES {
            assert!(about.ends_with('.'), "{name}");
            if let Some(section) = section {
                assert!(AppConfig::SECTIONS.contains(section), "{name}: {section}");
            }
        }
    }
}
