//! The schemas of what calls answer, and of inputs that no type of ours decodes.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::super::runtime_op::ResetAgent;
use super::events::{message, source};

/// Input of `fawn_reduce`.
pub fn reduce_input() -> Value {
    json!({
        "type": "object",
        "required": ["existing", "updates"],
        "properties": {
            "existing": {"description": "The value so far; null: the reducer receives null."},
            "updates": {"description": "What is written, left to right.", "type": "array"},
            "form": {
                "description": "Of messages: existing is canonical and is taken as it is. Default: it is coerced as the reference does.",
                "const": "canonical",
            },
            "ids": {
                "description": "Of messages: where missing ids come from. Default random.",
                "oneOf": [
                    {"enum": ["random", "sequential"]},
                    {
                        "type": "object",
                        "required": ["sequential_from"],
                        "properties": {"sequential_from": {"type": "integer", "minimum": 0}},
                        "additionalProperties": false,
                    },
                ],
            },
        },
        "additionalProperties": false,
    })
}

/// Input of `fawn_messages_convert`.
pub fn convert_input() -> Value {
    json!({
        "type": "object",
        "required": ["messages"],
        "properties": {
            "messages": {"description": "One message or a list of them, in any accepted form."},
        },
        "additionalProperties": false,
    })
}

/// Answer of `fawn_messages_convert`.
pub fn convert_answer() -> Value {
    json!({"type": "array", "items": message()})
}

/// Input of `fawn_call_emit`.
pub fn call_part() -> Value {
    json!({
        "anyOf": [
            {
                "description": "Of a model: a piece of its reply.",
                "type": "object",
                "properties": {
                    "text": {"type": ["string", "null"]},
                    "reasoning": {"type": ["string", "null"]},
                    "tool_call": {
                        "type": ["object", "null"],
                        "required": ["index"],
                        "properties": {
                            "index": {"description": "Which call of the reply.", "type": "integer", "minimum": 0},
                            "id": {"type": ["string", "null"]},
                            "name": {"type": ["string", "null"]},
                            "args": {"description": "A piece of the JSON text of the arguments.", "type": "string"},
                        },
                        "additionalProperties": false,
                    },
                },
                "additionalProperties": false,
            },
            {"description": "Of a tool: any JSON, for the host's custom events."},
        ],
    })
}

/// The op `reset_agent`, by its type.
fn reset_agent() -> Value {
    let mut schema = super::of::<ResetAgent>();
    schema["properties"]["op"] = json!({"const": "reset_agent"});
    if let Value::Object(members) = &mut schema {
        members.retain(|name, _| ["properties", "additionalProperties"].contains(&name.as_str()));
        let description = "Forgets what is cached about custom agents, so that runs from now on go by what their records \
                           say now. Those that there are not are no error. Answers {}.";
        members.insert("description".to_owned(), description.into());
    }
    schema
}

/// The schema of a type that only goes out: every member is always there, null or not, even one that may be missing where
/// what another version wrote is read.
pub fn complete<T: JsonSchema>() -> Value {
    let mut schema = super::of::<T>();
    require_all(&mut schema);
    schema
}

fn require_all(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(require_all);
            if let Some(Value::Object(properties)) = members.get("properties") {
                let names: Value = properties.keys().cloned().collect();
                members.insert("required".to_owned(), names);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(require_all),
        _ => {}
    }
}

/// Input of `fawn_runtime_submit`.
pub fn runtime_op() -> Value {
    json!({
        "type": "object",
        "required": ["op"],
        "oneOf": [
            {
                "description": "Forgets a thread: its checkpoints and messages. One that there is not is no error. Answers {}.",
                "required": ["thread_id"],
                "properties": {
                    "op": {"const": "delete_thread"},
                    "thread_id": {"description": "Which.", "type": "string"},
                },
                "additionalProperties": false,
            },
            reset_agent(),
            {
                "description": "Forgets what was read of skills, so that the next assembly reads all of them anew. Changes are seen without it; answers {}.",
                "properties": {"op": {"const": "reload_skills"}},
                "additionalProperties": false,
            },
        ],
    })
}

/// Answer of `fawn_run_submit`.
pub fn run_op_answer() -> Value {
    json!({
        "type": "object",
        "oneOf": [
            {
                "description": "Of cancel and cancel_task.",
                "required": ["cancelled"],
                "properties": {
                    "cancelled": {"description": "Whether the run, or a delegation of this call, was still going.", "type": "boolean"},
                },
            },
            {
                "description": "Of status.",
                "required": ["run_id", "thread_id", "ended"],
                "properties": {
                    "run_id": {"type": "string"},
                    "thread_id": {"type": "string"},
                    "ended": {"description": "Whether it has let go of its thread.", "type": "boolean"},
                },
            },
        ],
    })
}

/// Answer of `fawn_runtime_stats`.
pub fn runtime_stats() -> Value {
    json!({
        "type": "object",
        "required": ["runs", "threads", "queues", "open_calls", "workers", "handles"],
        "properties": {
            "runs": {
                "type": "object",
                "required": ["active", "started"],
                "properties": {
                    "active": {"description": "Not ended yet.", "type": "integer", "minimum": 0},
                    "started": {"description": "Since the runtime was made.", "type": "integer", "minimum": 0},
                },
            },
            "threads": {"description": "Open ones.", "type": "integer", "minimum": 0},
            "queues": {"type": "integer", "minimum": 0},
            "open_calls": {"description": "Host calls that wait for an answer.", "type": "integer", "minimum": 0},
            "workers": {"description": "Threads that drive its runs; 0: the host's own, inside take and wait.", "type": "integer", "minimum": 0},
            "handles": {
                "description": "The living handles of this runtime.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["handle", "kind"],
                    "properties": {
                        "handle": {"type": "integer", "minimum": 1},
                        "kind": {"type": "string"},
                        "runtime": {"description": "The runtime that it belongs to.", "type": "integer"},
                    },
                },
            },
        },
    })
}

/// Answer of `fawn_runtime_shutdown`.
pub fn shutdown_answer() -> Value {
    json!({
        "type": "object",
        "required": ["runs_cancelled"],
        "properties": {
            "runs_cancelled": {"description": "Runs that shutting down has ended, over all calls.", "type": "integer", "minimum": 0},
        },
    })
}

/// Answer of `fawn_thread_update`.
pub fn thread_update_answer() -> Value {
    json!({
        "type": "object",
        "required": ["checkpoint_id", "step"],
        "properties": {
            "checkpoint_id": {"description": "The checkpoint that holds the writes.", "type": "string"},
            "step": {"type": "integer"},
        },
    })
}

/// Answer of `fawn_thread_state`.
pub fn thread_state() -> Value {
    let mut schema = checkpoint();
    schema["properties"]["thread_id"] = json!({"description": "The thread.", "type": "string"});
    schema["properties"]["values"] = json!({
        "description": "Channel name to value; with since: of the channels that changed, without messages.",
        "type": "object",
    });
    schema["properties"]["since"] = json!({"description": "As asked.", "type": "string"});
    schema["properties"]["messages"] = json!({
        "description": "Only with since: what became of the messages.",
        "type": "object",
        "required": ["reset", "removed", "upserted"],
        "properties": {
            "reset": {"description": "Nothing of the older list is left; upserted is the whole list.", "type": "boolean"},
            "removed": {"description": "Ids of messages that are gone.", "type": "array", "items": {"type": "string"}},
            "upserted": {"description": "Messages that are new or replaced, in order.", "type": "array", "items": message()},
        },
    });
    if let Some(required) = schema["required"].as_array_mut() {
        required.extend(["thread_id".into(), "values".into()]);
    }
    schema
}

/// Answer of `fawn_thread_history`.
pub fn thread_history() -> Value {
    let mut entry = checkpoint();
    entry["properties"]["values"] = json!({
        "description": "Channel name to value; only if asked for.",
        "type": "object",
    });
    json!({"description": "Newest first.", "type": "array", "items": entry})
}

/// The members that tell of a checkpoint; all null where there is none.
fn checkpoint() -> Value {
    let mut source = source();
    if let Some(kinds) = source["anyOf"].as_array_mut() {
        kinds.push(json!({"type": "null"}));
    }
    json!({
        "type": "object",
        "required": [
            "checkpoint_id", "parent_checkpoint_id", "step", "source", "created_at", "run_id", "metadata",
        ],
        "properties": {
            "checkpoint_id": {"type": ["string", "null"]},
            "parent_checkpoint_id": {"type": ["string", "null"]},
            "step": {"description": "-1 for the input of a new thread, then counting.", "type": ["integer", "null"]},
            "source": source,
            "created_at": {"type": ["string", "null"], "format": "date-time"},
            "run_id": {"description": "The run that made it.", "type": ["string", "null"]},
            "metadata": {"description": "as_node, where an update gave it.", "type": "object"},
        },
    })
}
