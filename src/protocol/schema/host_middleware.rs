//! The schemas of what a host is asked as a middleware, and of what it may say.

use serde_json::{Value, json};

use super::super::host_middleware::HookName;
use super::events::message;

/// The `args` of a host call of the kind `middleware`.
pub fn question() -> Value {
    let hooks: Vec<&str> = HookName::ALL.iter().map(|hook| hook.name()).collect();
    json!({
        "type": "object",
        "required": ["hook", "run_id", "thread_id"],
        "properties": {
            "hook": {"description": "Where in the run; it decides which members there are.", "enum": hooks},
            "phase": {"description": "Of wrap_tool_call: whether the call is yet to be made, or has its result.", "enum": ["before", "after"]},
            "run_id": {"type": "string"},
            "thread_id": {"type": "string"},
            "message_count": {"description": "How many messages there are: of the thread, or of the request of wrap_model_call. Not with tool calls.", "type": "integer", "minimum": 0},
            "messages": {"description": "The newest of them, as many as the configuration asks for, oldest first. Not with tool calls.", "type": "array", "items": message()},
            "channels": {"description": "The channels of \"reads\" that have a value; as they stood before the call, with calls.", "type": "object"},
            "tools": {"description": "Of wrap_model_call: names of the tools that the model is told of.", "type": "array", "items": {"type": "string"}},
            "system_hash": {"description": "Of wrap_model_call: the lower-case hex SHA-256 of the system text as JSON; null without one.", "type": ["string", "null"]},
            "message_id": {"description": "Of wrap_tool_call: the ai message that calls.", "type": "string"},
            "call": {
                "description": "Of wrap_tool_call: the call.",
                "type": "object",
                "required": ["id", "name", "args"],
                "properties": {
                    "id": {"type": "string"},
                    "name": {"type": "string"},
                    "args": {"description": "As the model said them, or as middleware outside of this one changed them: not checked yet.", "type": "object"},
                },
            },
            "result": {
                "description": "Of wrap_tool_call after the call: what the model is to read.",
                "type": "object",
                "required": ["content", "status"],
                "properties": {
                    "content": {"description": "Text, or a list of content blocks."},
                    "status": {"enum": ["success", "error"]},
                    "artifact": {"description": "What is for the host and not for the model; absent without one."},
                },
            },
        },
    })
}

/// What stands under `ok` in the answer to such a call.
pub fn verdict() -> Value {
    json!({
        "type": "object",
        "required": ["verdict"],
        "oneOf": [
            {
                "description": "Go on.",
                "properties": {"verdict": {"const": "continue"}},
                "additionalProperties": false,
            },
            {
                "description": "Go on, but with this changed; at least one member that fits the hook.",
                "properties": {
                    "verdict": {"const": "change"},
                    "update": {"description": "State hooks: channel writes, like a tool's. No system messages, and not the channel jump_to.", "type": ["object", "null"]},
                    "jump_to": {"description": "State hooks: where the run goes from here.", "enum": ["model", "tools", "end", null]},
                    "append": {"description": "wrap_model_call: texts at the end of this request, as hidden human messages; not stored.", "type": "array", "items": {"type": "string"}},
                    "without_tools": {"description": "wrap_model_call: names of tools that the model is not told of in this request.", "type": "array", "items": {"type": "string"}},
                    "reply": {"description": "wrap_model_call: the reply, as a host model gives one; the model is not asked."},
                    "args": {"description": "wrap_tool_call, before: the arguments; they are checked against the tool's schema.", "type": ["object", "null"]},
                    "result": {"description": "wrap_tool_call, before: the answer, as a host tool gives one; the tool is not called."},
                    "content": {"description": "wrap_tool_call, after: what the model reads in place of the tool's content."},
                },
                "additionalProperties": false,
            },
            {
                "description": "Not this. A tool call: its result is an error with the reason. A model call: the reply is the reason, and the run ends. A state hook: the run ends with an error.",
                "required": ["reason"],
                "properties": {
                    "verdict": {"const": "deny"},
                    "reason": {"description": "Why; not blank.", "type": "string"},
                },
                "additionalProperties": false,
            },
            {
                "description": "The run ends here, with success.",
                "properties": {
                    "verdict": {"const": "end"},
                    "message": {"description": "What the agent says last; not after a tool call, whose result stands.", "type": ["string", "null"]},
                },
                "additionalProperties": false,
            },
            {
                "description": "The run ends interrupted; a run without input asks again. Not at after_model, after_agent, or after a tool call.",
                "properties": {
                    "verdict": {"const": "pause"},
                    "reason": {"description": "What is waited for; part of the result's cancel_reason.", "type": ["string", "null"]},
                },
                "additionalProperties": false,
            },
        ],
    })
}
