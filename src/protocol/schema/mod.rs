//! The JSON Schemas of what crosses the ABI: one ordered list, from which the published files and `fawn_describe` come.

mod answers;
mod events;
mod host_middleware;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::answers as answer;
use self::events::{event, run_result};
use super::assembly::AssemblyConfig;
use super::config::{QueueConfig, RuntimeConfig};
use super::decode::from_text;
use super::descriptor::AssemblyDescriptor;
use super::descriptor_diff::{DescriptorDiagram, DescriptorDiff, DescriptorPair};
use super::error::{Error, ErrorCode};
use super::goal::{GoalOp, goal_answer, goal_op};
use super::guardrail::{GuardrailDecision, GuardrailRequest};
use super::json::parse;
use super::model_entry::ModelEntry;
use super::run::{
    RunOp, RunRequest, ThreadHistoryQuery, ThreadOpen, ThreadStateQuery, ThreadUpdate,
};
use super::subagents_config::{NewSubagents, SubagentsLife, SubagentsStats};

/// One published schema.
pub struct Schema {
    /// Name of the payload, as the header and `fawn_describe` use it; snake_case.
    pub name: &'static str,
    /// What the payload is, in a sentence.
    pub summary: &'static str,
    /// The schema, JSON Schema draft 2020-12.
    pub schema: fn() -> Value,
    /// Reads a document and writes what was read. `None` for what only goes out: there is nothing that reads it.
    ///
    /// # Errors
    /// What a host would get for the same document.
    pub round_trip: Option<RoundTrip>,
}

/// Reads a document and writes what was read.
pub type RoundTrip = fn(&str) -> Result<Value, Error>;

impl Schema {
    /// The schema with its name and summary in it, ready to publish.
    pub fn document(&self) -> Value {
        let mut document = serde_json::Map::new();
        document.insert(
            "$schema".to_owned(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        document.insert("title".to_owned(), self.name.into());
        document.insert("description".to_owned(), self.summary.into());
        let mut schema = (self.schema)();
        let_x_through(&mut schema);
        if let Value::Object(members) = schema {
            // Ours win: the generator puts the Rust name of the type into the title.
            for (name, value) in members {
                document.entry(name).or_insert(value);
            }
        }
        Value::Object(document)
    }
}

/// A schema of what only goes out, or of what is read piece by piece.
const fn plain(name: &'static str, summary: &'static str, schema: fn() -> Value) -> Schema {
    Schema {
        name,
        summary,
        schema,
        round_trip: None,
    }
}

/// Every schema, in the order in which a host meets the payloads.
pub const SCHEMAS: &[Schema] = &[
    Schema {
        name: "runtime_config",
        summary: "Input of fawn_runtime_new.",
        schema: of::<RuntimeConfig>,
        round_trip: Some(|text| taken::<RuntimeConfig>(text, RuntimeConfig::validate)),
    },
    Schema {
        name: "model_config",
        summary: "A model: part of a runtime_config or an assembly_config.",
        schema: of::<ModelEntry>,
        round_trip: Some(|text| taken::<ModelEntry>(text, ModelEntry::validate)),
    },
    Schema {
        name: "assembly_config",
        summary: "Input of fawn_assembly_new.",
        schema: of::<AssemblyConfig>,
        round_trip: Some(|text| taken::<AssemblyConfig>(text, AssemblyConfig::validate)),
    },
    Schema {
        name: "subagents_config",
        summary: "Input of fawn_subagents_new.",
        schema: of::<NewSubagents>,
        round_trip: Some(|text| taken::<NewSubagents>(text, NewSubagents::validate)),
    },
    Schema {
        name: "thread_open",
        summary: "Input of fawn_thread_open.",
        schema: of::<ThreadOpen>,
        round_trip: Some(|text| taken::<ThreadOpen>(text, ThreadOpen::validate)),
    },
    Schema {
        name: "thread_update",
        summary: "Input of fawn_thread_update.",
        schema: of::<ThreadUpdate>,
        round_trip: Some(|text| taken::<ThreadUpdate>(text, |_| Ok(()))),
    },
    Schema {
        name: "thread_state_query",
        summary: "Input of fawn_thread_state.",
        schema: of::<ThreadStateQuery>,
        round_trip: Some(|text| taken::<ThreadStateQuery>(text, |_| Ok(()))),
    },
    Schema {
        name: "thread_history_query",
        summary: "Input of fawn_thread_history.",
        schema: of::<ThreadHistoryQuery>,
        round_trip: Some(|text| taken::<ThreadHistoryQuery>(text, |_| Ok(()))),
    },
    Schema {
        name: "goal_op",
        summary: "Input of fawn_thread_goal.",
        schema: goal_op,
        round_trip: Some(|text| {
            let document = parse(text)?;
            GoalOp::decode(document.clone())?;
            Ok(document)
        }),
    },
    Schema {
        name: "queue_config",
        summary: "Input of fawn_queue_new.",
        schema: of::<QueueConfig>,
        round_trip: Some(|text| taken::<QueueConfig>(text, QueueConfig::validate)),
    },
    Schema {
        name: "run_request",
        summary: "Input of fawn_run_start.",
        schema: of::<RunRequest>,
        round_trip: Some(|text| taken::<RunRequest>(text, RunRequest::validate)),
    },
    Schema {
        name: "run_op",
        summary: "Input of fawn_run_submit.",
        schema: run_op,
        round_trip: Some(|text| {
            let document = parse(text)?;
            RunOp::decode(document.clone())?;
            Ok(document)
        }),
    },
    plain(
        "run_result",
        "Answer of fawn_run_wait, and the data of a run_end event.",
        run_result,
    ),
    plain(
        "event",
        "One event: fawn_queue_take answers a list of them.",
        event,
    ),
    plain("call_answer", "Input of fawn_call_finish.", call_answer),
    plain(
        "guardrail_request",
        "The args of a host call of the kind guardrail: the tool call that is asked about.",
        answer::complete::<GuardrailRequest<'_>>,
    ),
    Schema {
        name: "guardrail_answer",
        summary: "What stands under ok in the answer to such a call.",
        schema: of::<GuardrailDecision>,
        round_trip: Some(|text| taken::<GuardrailDecision>(text, |_| Ok(()))),
    },
    plain(
        "middleware_question",
        "The args of a host call of the kind middleware.",
        host_middleware::question,
    ),
    plain(
        "middleware_verdict",
        "What stands under ok in the answer to a host call of the kind middleware.",
        host_middleware::verdict,
    ),
    plain(
        "error",
        "The error object: what a call with a negative status puts into its buffer, and what failed events carry.",
        error_object,
    ),
    plain(
        "reduce_input",
        "Input of fawn_reduce.",
        answer::reduce_input,
    ),
    plain(
        "convert_input",
        "Input of fawn_messages_convert.",
        answer::convert_input,
    ),
    plain(
        "convert_answer",
        "Answer of fawn_messages_convert.",
        answer::convert_answer,
    ),
    plain("call_part", "Input of fawn_call_emit.", answer::call_part),
    plain(
        "runtime_op",
        "Input of fawn_runtime_submit.",
        answer::runtime_op,
    ),
    plain(
        "runtime_stats",
        "Answer of fawn_runtime_stats.",
        answer::runtime_stats,
    ),
    plain(
        "shutdown_answer",
        "Answer of fawn_runtime_shutdown.",
        answer::shutdown_answer,
    ),
    plain(
        "subagents_answer",
        "Answer of fawn_subagents_start and fawn_subagents_stop.",
        answer::complete::<SubagentsLife>,
    ),
    plain(
        "subagents_stats",
        "Answer of fawn_subagents_stats.",
        answer::complete::<SubagentsStats>,
    ),
    plain(
        "thread_update_answer",
        "Answer of fawn_thread_update.",
        answer::thread_update_answer,
    ),
    plain(
        "thread_state",
        "Answer of fawn_thread_state.",
        answer::thread_state,
    ),
    plain(
        "thread_history",
        "Answer of fawn_thread_history.",
        answer::thread_history,
    ),
    plain("goal_answer", "Answer of fawn_thread_goal.", goal_answer),
    plain(
        "run_op_answer",
        "Answer of fawn_run_submit.",
        answer::run_op_answer,
    ),
    Schema {
        name: "assembly_descriptor",
        summary: "What an assembly turned out to be: answer of fawn_assembly_descriptor, input of fawn_descriptor_diagram.",
        schema: answer::complete::<AssemblyDescriptor>,
        round_trip: Some(|text| {
            let descriptor = AssemblyDescriptor::from_foreign(parse(text)?)?;
            Ok(json!(descriptor))
        }),
    },
    Schema {
        name: "descriptor_pair",
        summary: "Input of fawn_descriptor_diff.",
        schema: of::<DescriptorPair>,
        round_trip: Some(|text| taken::<DescriptorPair>(text, DescriptorPair::validate)),
    },
    plain(
        "descriptor_diff",
        "Answer of fawn_descriptor_diff.",
        answer::complete::<DescriptorDiff>,
    ),
    plain(
        "descriptor_diagram",
        "Answer of fawn_descriptor_diagram.",
        answer::complete::<DescriptorDiagram>,
    ),
];

/// Says of every closed object that members which begin with `x-` are let through, as decoding does.
fn let_x_through(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(let_x_through);
            if members.get("additionalProperties") == Some(&Value::Bool(false)) {
                members.insert("patternProperties".to_owned(), json!({"^x-": true}));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(let_x_through),
        _ => {}
    }
}

/// Decodes and checks a document as the library would, and gives it back.
fn taken<T: DeserializeOwned>(
    text: &str,
    validate: impl FnOnce(&T) -> Result<(), Error>,
) -> Result<Value, Error> {
    validate(&from_text(text)?)?;
    parse(text)
}

/// The schema that the type says.
pub fn of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

fn run_op() -> Value {
    json!({
        "type": "object",
        "required": ["op"],
        "oneOf": [
            {
                "description": "Ends the run. What has arrived of a reply is kept.",
                "properties": {
                    "op": {"const": "cancel"},
                    "reason": {"description": "Why, for the record.", "type": ["string", "null"]},
                },
                "additionalProperties": false,
            },
            {
                "description": "Ends one delegation to a subagent, also while it waits for a place. The run goes on: the agent sees the task as cancelled.",
                "properties": {
                    "op": {"const": "cancel_task"},
                    "task_id": {"description": "The task call, as the events task_started and those after it name it.", "type": "string"},
                    "reason": {"description": "Why, for the record.", "type": ["string", "null"]},
                },
                "required": ["task_id"],
                "additionalProperties": false,
            },
            {
                "description": "Tells which run it is, and whether it has ended.",
                "properties": {"op": {"const": "status"}},
                "additionalProperties": false,
            },
            {
                "description": "Not supported: a run that a verdict \"pause\" or a cancel interrupted is over, and a run without an input on its thread goes on with what it left.",
                "properties": {"op": {"const": "resume"}},
            },
        ],
    })
}

fn call_answer() -> Value {
    json!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {
            "ok": {
                "description": "The answer. A tool: its content (text, content blocks, or any JSON), or an object with content and, if wanted, artifact (for the host, not the model), additional_kwargs (facts that are kept with the message), update (channel writes; no system messages) and end_run. A model: text, or an object with content, tool_calls [{name, args, id}], usage, reasoning, response_metadata. A guardrail: an object with allow (schema guardrail_answer). A middleware: a verdict (schema middleware_verdict). A sandbox: {sandbox_id} for acquire, {text} for read_file or null when there is no such file, null for release and write_file. A memory: null.",
            },
            "error": {
                "description": "It could not be done; the text is for the model. From a guardrail or a middleware it counts as no answer.",
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "required": ["message"],
                        "properties": {
                            "message": {"type": "string"},
                            "retryable": {
                                "description": "For a model: whether asking again may help. Default false.",
                                "type": ["boolean", "null"],
                            },
                            "retry_after_ms": {
                                "description": "For a model: how long to wait before asking again.",
                                "type": ["integer", "null"],
                                "minimum": 0,
                            },
                        },
                    },
                ],
            },
        },
        "additionalProperties": false,
    })
}

/// By hand: `code` is the closed list, which no Rust type of the payload holds.
fn error_object() -> Value {
    let names: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
    json!({
        "type": "object",
        "required": ["code", "status", "message", "retryable"],
        "properties": {
            "code": {
                "description": "What kind of failure. The list is closed: new versions may add to it.",
                "enum": names,
            },
            "status": {
                "description": "The status that the call returned; one per code.",
                "type": "integer",
                "maximum": -1,
            },
            "message": {"description": "What went wrong, in words, for a person.", "type": "string"},
            "path": {
                "description": "JSON pointer into what the caller sent; absent when that is not at fault.",
                "type": "string",
                "format": "json-pointer",
            },
            "retryable": {
                "description": "Whether the same call may succeed later.",
                "type": "boolean",
            },
            "http_status": {
                "description": "The HTTP status that a model endpoint answered with; absent when none did.",
                "type": "integer",
            },
            "provider_code": {
                "description": "The model endpoint's own short name for what went wrong, such as insufficient_quota; absent when it gave none.",
                "type": "string",
            },
            "cause": {
                "description": "What lay behind it, outermost first.",
                "type": "array",
                "items": {"type": "string"},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_snake_case() {
        let mut names = std::collections::HashSet::new();
        for schema in SCHEMAS {
            assert!(names.insert(schema.name), "{} twice", schema.name);
            let ok = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(schema.name.chars().all(ok), "{}", schema.name);
            assert!(schema.summary.ends_with('.'), "{}", schema.name);
        }
    }
}
