//! The schema of an event: the envelope, and what the data of each type holds.

use serde_json::{Map, Value, json};

use super::super::goal::{evaluation, goal};

/// A type of events.
pub struct EventType {
    /// Name, as the envelope's `type` has it.
    pub name: &'static str,
    /// When it comes.
    pub about: &'static str,
    /// The schema of its data.
    pub data: fn() -> Value,
}

/// Every type of events, in the order in which a run may send them.
pub const EVENT_TYPES: &[EventType] = &[
    EventType {
        name: "run_start",
        about: "The first event of a run.",
        data: || {
            object(
                json!({
                    "recursion_limit": {"description": "Most steps of this run.", "type": "integer", "minimum": 1},
                }),
                &[],
            )
        },
    },
    EventType {
        name: "message_delta",
        about: "A piece of a reply, while it streams: text, reasoning or tool_call.",
        data: || {
            object(
                json!({
                    "message_id": {"description": "The message that it becomes a part of.", "type": "string"},
                    "text": {"description": "A piece of the text.", "type": "string"},
                    "reasoning": {"description": "A piece of the reasoning.", "type": "string"},
                    "tool_call": {
                        "description": "A piece of a tool call.",
                        "type": "object",
                        "required": ["index", "id", "name", "args"],
                        "properties": {
                            "index": {"description": "Which call of the reply.", "type": "integer", "minimum": 0},
                            "id": {"type": ["string", "null"]},
                            "name": {"type": ["string", "null"]},
                            "args": {"description": "A piece of the JSON text of the arguments.", "type": "string"},
                        },
                    },
                }),
                &["text", "reasoning", "tool_call"],
            )
        },
    },
    EventType {
        name: "model_attempt",
        about: "An attempt of a model call failed. One that succeeds has no such event: its message tells.",
        data: || {
            object(
                json!({
                    "message_id": {
                        "description": "The message that was asked for; null when a middleware asked.",
                        "type": ["string", "null"],
                    },
                    "model": {"description": "Its name, else what its configuration says under model, else its provider.", "type": "string"},
                    "attempt": {"description": "Counted from 1 for each model.", "type": "integer", "minimum": 1},
                    "max_attempts": {"description": "How many this model is given, as things stand.", "type": "integer", "minimum": 1},
                    "reason": {
                        "description": "The class of the failure; new classes may come.",
                        "anyOf": [{"enum": ["quota", "auth", "burst_rate", "transient", "busy", "generic"]}, {"type": "string"}],
                    },
                    "error": {"description": "An error object: why it failed.", "type": "object"},
                    "next": {
                        "description": "What follows: the same model again, the next one, or the end of the call.",
                        "anyOf": [{"enum": ["retry", "fallback", "none"]}, {"type": "string"}],
                    },
                    "wait_ms": {"description": "The wait before a retry.", "type": ["integer", "null"], "minimum": 0},
                    "next_model": {"description": "The model of a fallback.", "type": ["string", "null"]},
                }),
                &[],
            )
        },
    },
    EventType {
        name: "stream_reset",
        about: "What was streamed of a message is void: another attempt begins, whose deltas have the same message_id.",
        data: || object(json!({"message_id": {"type": "string"}}), &[]),
    },
    EventType {
        name: "middleware",
        about: "A middleware did something that is worth a record. No secret is ever part of it.",
        data: || {
            object(
                json!({
                    "tag": {
                        "description": "What it is about: skill_activation (a skill was activated by a slash), skill_secrets (which secrets active skills may use, by name), guardrail (a call was denied, or nobody could tell), sandbox_audit (a shell command was refused, or is risky); more may come.",
                        "type": "string",
                    },
                    "action": {"description": "What was done: activate, bind_secrets, deny_tool_call, allow_tool_call_after_provider_error, block_command, warn_of_command; more may come.", "type": "string"},
                    "changes": {
                        "description": "The facts. activate: skill_name, category, path, content_hash. bind_secrets: skills, secrets (names), missing (names by skill). Of a call: tool_name, tool_call_id, what decided and why, never its arguments. Of a command: its rule, and its first 200 characters.",
                        "type": "object",
                    },
                }),
                &[],
            )
        },
    },
    EventType {
        name: "usage",
        about: "Tokens of one reply and of the run so far.",
        data: || {
            object(
                json!({
                    "message_id": {"description": "The reply.", "type": "string"},
                    "usage": usage("Tokens of the reply."),
                    "total": usage("Tokens of the run so far."),
                }),
                &[],
            )
        },
    },
    EventType {
        name: "message",
        about: "A whole message that a node wrote; it is stored.",
        data: || {
            object(
                json!({
                    "node": {"description": "Who wrote it.", "type": "string"},
                    "message": message(),
                }),
                &[],
            )
        },
    },
    EventType {
        name: "update",
        about: "All that a node wrote; it is stored.",
        data: || {
            object(
                json!({
                    "node": {"description": "Who wrote it.", "type": "string"},
                    "update": {"description": "Channel name to what was written.", "type": "object"},
                }),
                &[],
            )
        },
    },
    EventType {
        name: "values",
        about: "The whole state after a step.",
        data: || {
            object(
                json!({"values": {"description": "Channel name to value.", "type": "object"}}),
                &[],
            )
        },
    },
    EventType {
        name: "checkpoint",
        about: "A step is stored.",
        data: || {
            object(
                json!({
                    "checkpoint_id": {"type": "string"},
                    "parent_checkpoint_id": {"type": ["string", "null"]},
                    "step": {"description": "-1 for the input of a new thread, then counting.", "type": "integer"},
                    "source": source(),
                }),
                &[],
            )
        },
    },
    EventType {
        name: "goal",
        about: "The goal of the thread is judged after a turn of the run: that it begins, and what came of it.",
        data: || {
            object(
                json!({
                    "status": {
                        "description": "evaluating: a judgement begins. satisfied: the goal is reached, and gone. continuing: the run adds a turn. stood_down: the run ends although the goal is not reached. stopped: nothing was judged or kept.",
                        "anyOf": [{"enum": ["evaluating", "satisfied", "continuing", "stood_down", "stopped"]}, {"type": "string"}],
                    },
                    "objective": {"description": "Of the goal that was judged.", "type": "string"},
                    "reason": {
                        "description": "Why it stood down, or stopped: evaluator_failed, goal_changed, thread_stale or store_failed. Null for all else.",
                        "type": ["string", "null"],
                    },
                    "goal": goal("What the channel holds now."),
                    "evaluation": evaluation("The judgement; null before there is one."),
                    "usage": {"description": "Tokens of the judgement, which are no part of the run's usage; null when none were told.", "type": ["object", "null"]},
                }),
                &[],
            )
        },
    },
    EventType {
        name: "host_call",
        about: "A question to the host, to be answered by fawn_call_finish.",
        data: || {
            object(
                json!({
                    "call_id": {"description": "For fawn_call_emit and fawn_call_finish.", "type": "integer", "minimum": 1},
                    "kind": {"description": "What is asked; new kinds may come.", "anyOf": [{"enum": ["tool", "model", "guardrail", "middleware", "sandbox", "memory"]}, {"type": "string"}]},
                    "name": {"description": "The tool, the model, the guardrail or the middleware; of a sandbox acquire, release, read_file or write_file; of a memory add.", "type": "string"},
                    "args": {
                        "description": "A tool: its arguments. A model: system, messages, tools, tool_choice. A guardrail: the tool call that it is asked about (schema guardrail_request). A middleware: where in the run it is asked, and about what (schema middleware_question). A sandbox: user_id, thread_id, and as the name needs them sandbox_id, path, text. A memory: user_id, agent_name, thread_id, trace_id, messages.",
                        "type": "object",
                    },
                    "tool_call_id": {"description": "The model's id of the tool call that is asked for, or asked about.", "type": ["string", "null"]},
                    "deadline_ms": {"description": "How long the answer may take. The run, or the subagent that asks, may end before; then host_call_cancelled says so.", "type": "integer", "minimum": 0},
                    "idempotency_key": {
                        "description": "The same whenever the same question is asked again, also after a restart.",
                        "type": "string",
                    },
                }),
                &[],
            )
        },
    },
    EventType {
        name: "host_call_cancelled",
        about: "An answer to a host call is of no use any more.",
        data: || {
            object(
                json!({
                    "call_id": {"type": "integer", "minimum": 1},
                    "reason": {
                        "description": "cancelled, or the code of an error: deadline_exceeded, queue_closed, closed.",
                        "type": "string",
                    },
                }),
                &[],
            )
        },
    },
    EventType {
        name: "custom",
        about: "What a tool emitted while it ran.",
        data: || {
            object(
                json!({
                    "tool_call_id": {"description": "The model's id of the call.", "type": "string"},
                    "value": {"description": "As the host gave it to fawn_call_emit."},
                }),
                &[],
            )
        },
    },
    EventType {
        name: "task_started",
        about: "A delegation begins: a subagent is to do a piece of work. It may wait for a place first.",
        data: || {
            object(
                json!({
                    "task_id": task_id(),
                    "subagent_type": {"description": "Name of the subagent.", "type": "string"},
                    "description": {"description": "What the agent calls the work; may be empty.", "type": "string"},
                    "model_name": model_name(),
                }),
                &[],
            )
        },
    },
    EventType {
        name: "task_running",
        about: "A step of a subagent: a reply of its model, or the result of one of its tools. With the stream mode messages or custom.",
        data: || {
            object(
                json!({
                    "task_id": task_id(),
                    "message": message(),
                    "message_index": {"description": "Which step it is, from 1.", "type": "integer", "minimum": 1},
                    "total_messages": {"description": "Steps so far.", "type": "integer", "minimum": 1},
                    "usage": task_usage(),
                    "model_name": model_name(),
                }),
                &[],
            )
        },
    },
    EventType {
        name: "task_completed",
        about: "A delegation ended with a result.",
        data: || {
            object(
                json!({
                    "task_id": task_id(),
                    "result": {"description": "The whole result.", "type": "string"},
                    "stop_reason": task_stop_reason(),
                    "usage": task_usage(),
                    "model_name": model_name(),
                }),
                &[],
            )
        },
    },
    EventType {
        name: "task_failed",
        about: "A delegation failed, or there was no place for it.",
        data: || task_without_result(json!({"stop_reason": task_stop_reason()})),
    },
    EventType {
        name: "task_cancelled",
        about: "A delegation was ended by the host, or with its run.",
        data: || {
            task_without_result(json!({
                "scope": {
                    "description": "What was ended: this delegation alone, by cancel_task (task), or its run, or the calls that the run was making (run).",
                    "anyOf": [{"enum": ["task", "run"]}, {"type": "string"}],
                },
                "reason": {"description": "The reason given with cancel_task, or with the cancel of the run.", "type": ["string", "null"]},
            }))
        },
    },
    EventType {
        name: "task_timed_out",
        about: "The time of a delegation was over.",
        data: || task_without_result(json!({})),
    },
    EventType {
        name: "gap",
        about: "A lossy queue dropped events of this run.",
        data: || {
            object(
                json!({
                    "first_seq": {"type": "integer", "minimum": 1},
                    "last_seq": {"type": "integer", "minimum": 1},
                    "dropped": {"description": "How many.", "type": "integer", "minimum": 1},
                }),
                &[],
            )
        },
    },
    EventType {
        name: "log",
        about: "A warning, to queues that subscribed to \"log\".",
        data: || {
            object(
                json!({
                    "level": {"anyOf": [{"const": "warning"}, {"type": "string"}]},
                    "code": {"description": "Stable, for programs.", "type": "string"},
                    "message": {"description": "For a person.", "type": "string"},
                    "run_id": {"description": "The run that it is about.", "type": "string"},
                    "thread_id": {"description": "The thread of that run.", "type": "string"},
                }),
                &["run_id", "thread_id"],
            )
        },
    },
    EventType {
        name: "agent_assembled",
        about: "The factory \"lead\" has assembled an agent, to queues that subscribed to \"runtime\".",
        data: || {
            object(
                json!({
                    "descriptor": {"description": "What the agent turned out to be (schema assembly_descriptor).", "type": "object"},
                    "metadata": {"description": "What runs of the agent are labelled with: model_name, agent_name, thinking_enabled and more.", "type": "object"},
                }),
                &[],
            )
        },
    },
    EventType {
        name: "run_end",
        about: "The last event of a run: its result.",
        data: run_result,
    },
];

/// The schema `event`: the envelope; `$defs` has the data of each type under the type's name.
pub fn event() -> Value {
    let names = EVENT_TYPES
        .iter()
        .map(|kind| json!({"const": kind.name, "description": kind.about}));
    let defs: Map<String, Value> = EVENT_TYPES
        .iter()
        .map(|kind| {
            let mut data = (kind.data)();
            data["description"] = kind.about.into();
            (kind.name.to_owned(), data)
        })
        .collect();
    let by_type = EVENT_TYPES.iter().map(|kind| {
        json!({
            "if": {"properties": {"type": {"const": kind.name}}},
            "then": {"properties": {"data": {"$ref": format!("#/$defs/{}", kind.name)}}},
        })
    });
    json!({
        "description": "One event: fawn_queue_take answers a list of them. New types and members may come; ignore those you do not know.",
        "type": "object",
        "required": ["seq", "type", "at", "data"],
        "properties": {
            "seq": {
                "description": "Strictly increasing within a run; a hole is told by a gap event.",
                "type": "integer",
                "minimum": 1,
            },
            "run_id": {"description": "Absent in events of no run.", "type": "string"},
            "thread_id": {"description": "Absent in events of no run.", "type": "string"},
            "task_id": {
                "description": "In events that a subagent causes, such as host calls of its tools: the task call that it answers. Absent in those of the run itself.",
                "type": "string",
            },
            "type": {"anyOf": [{"oneOf": names.collect::<Vec<_>>()}, {"type": "string"}]},
            "at": {"description": "When.", "type": "string", "format": "date-time"},
            "data": {"type": "object"},
        },
        "allOf": by_type.collect::<Vec<_>>(),
        "$defs": defs,
    })
}

/// The schema `run_result`.
pub fn run_result() -> Value {
    json!({
        "type": "object",
        "required": ["run_id", "thread_id", "status"],
        "properties": {
            "run_id": {"type": "string"},
            "thread_id": {"type": "string"},
            "status": {
                "description": "How it ended: with an answer, with an error, or cancelled or paused.",
                "enum": ["success", "error", "interrupted"],
            },
            "checkpoint_id": {
                "description": "The thread's newest checkpoint.",
                "type": ["string", "null"],
            },
            "steps": {"description": "Model calls and sets of tool calls.", "type": "integer"},
            "usage": usage("Tokens of the agent's own turns."),
            "subagent_usage": usage("Tokens of the run's delegations that have ended, all model calls of the subagents; there only when some were told of."),
            "message": {
                "description": "The last ai message of a run that succeeded, in canonical form.",
                "type": ["object", "null"],
            },
            "human_input": {
                "description": "What the run asked the user, when it ended with a question: version, kind, request_id, question, and options or a form.",
                "type": "object",
            },
            "error": {"description": "An error object; only with the status error.", "type": "object"},
            "stop_reason": {
                "description": "Which limit ended the run early, though it succeeded; there only when one did.",
                "enum": ["loop_capped", "token_capped", "safety_capped", "subagent_limit_capped", "model_length_capped"],
            },
            "cancel_reason": {
                "description": "Why it was cancelled, or what a middleware of the host paused it for; only with the status interrupted.",
                "type": ["string", "null"],
            },
        },
    })
}

/// The data of a delegation that ended without a result.
/// `more` are members besides those that every such end has.
fn task_without_result(more: Value) -> Value {
    let mut members = json!({
        "task_id": task_id(),
        "error": {"description": "Why.", "type": ["string", "null"]},
        "usage": task_usage(),
        "model_name": model_name(),
    });
    if let (Some(members), Value::Object(more)) = (members.as_object_mut(), more) {
        members.extend(more);
    }
    object(members, &[])
}

fn task_stop_reason() -> Value {
    json!({
        "description": "The limit that ended the work early; null when none did.",
        "anyOf": [{"enum": ["token_capped", "turn_capped", "loop_capped"]}, {"type": ["string", "null"]}],
    })
}

fn task_id() -> Value {
    json!({"description": "The model's id of the task call. It may come again in a later run.", "type": "string"})
}

fn model_name() -> Value {
    json!({"description": "The model that the subagent uses.", "type": ["string", "null"]})
}

fn task_usage() -> Value {
    let mut usage = usage(
        "Tokens of all the subagent's model calls so far; null when none were told of. Each event has the whole sum.",
    );
    usage["type"] = json!(["object", "null"]);
    usage
}

/// Tokens, in the layout of LangChain's `usage_metadata`.
fn usage(about: &str) -> Value {
    json!({
        "description": about,
        "type": "object",
        "required": ["input_tokens", "output_tokens", "total_tokens"],
        "properties": {
            "input_tokens": {"type": "integer", "minimum": 0},
            "output_tokens": {"type": "integer", "minimum": 0},
            "total_tokens": {"type": "integer", "minimum": 0},
            "input_token_details": {"description": "Of the input: cache_read, and what else the provider tells.", "type": "object"},
            "output_token_details": {"description": "Of the output: reasoning, and what else the provider tells.", "type": "object"},
        },
    })
}

/// A message in canonical form, as far as every class of messages has it.
pub fn message() -> Value {
    json!({
        "description": "A message in canonical form, the layout of LangChain's model_dump. Each class has members of its own besides these.",
        "type": "object",
        "required": ["type", "content"],
        "properties": {
            "type": {"description": "human, ai, tool, system, and the classes of chunks.", "type": "string"},
            "content": {
                "description": "Text, or a list of content blocks.",
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": ["string", "object"]}}],
            },
            "id": {"type": ["string", "null"]},
            "name": {"type": ["string", "null"]},
            "additional_kwargs": {"type": "object"},
            "response_metadata": {"type": "object"},
            "tool_calls": {
                "description": "Of ai messages.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name", "args"],
                    "properties": {
                        "name": {"type": "string"},
                        "args": {"type": "object"},
                        "id": {"type": ["string", "null"]},
                        "type": {"type": "string"},
                    },
                },
            },
            "tool_call_id": {"description": "Of tool messages: the call that is answered.", "type": "string"},
            "usage_metadata": {"description": "Of ai messages: tokens.", "type": ["object", "null"]},
        },
    })
}

/// What made a checkpoint.
pub fn source() -> Value {
    json!({
        "description": "What made it: the input of a run, a step of a run, an update from outside, a branch from an older checkpoint; more may come.",
        "anyOf": [{"enum": ["input", "loop", "update", "fork"]}, {"type": "string"}],
    })
}

/// An object whose members are all required but for the `optional` ones.
fn object(properties: Value, optional: &[&str]) -> Value {
    let required: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .filter(|name| !optional.contains(&name.as_str()))
        .collect();
    json!({"type": "object", "required": required, "properties": properties})
}
