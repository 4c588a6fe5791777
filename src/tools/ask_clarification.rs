//! `ask_clarification`: the model asks the user instead of guessing.
//!
//! The clarification middleware takes the call before it reaches this tool, whatever its arguments look like (MW-CLA-1). In
//! a chain without that middleware the tool puts the question itself, for arguments that fit.

use std::sync::Arc;

use serde_json::json;

use super::BuiltinInputs;
use super::clarification_request;
use crate::ports::tool::{DynTool, Tool, ToolInvocation, ToolOutcome, ToolSpec};

/// Name of the tool.
pub const NAME: &str = "ask_clarification";

/// The kinds of question: name, and the sign that stands before the question (MW-CLA-6). The first is the default.
pub const TYPES: &[(&str, &str)] = &[
    ("missing_info", "❓"),
    ("ambiguous_requirement", "🤔"),
    ("approach_choice", "🔀"),
    ("risk_confirmation", "⚠️"),
    ("suggestion", "💡"),
];

/// Always there; what runs without a user leaves it out of its list (TL-6).
pub fn build(_: &BuiltinInputs) -> Option<Arc<dyn DynTool>> {
    let types: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
    Some(Arc::new(AskClarification {
        spec: ToolSpec {
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "question": {
                        "type": "string",
                        "description": "What you need to know, put so that the user can answer it at once.",
                    },
                    "clarification_type": {
                        "type": "string",
                        "enum": types,
                        "description": "Why you ask.",
                    },
                    "context": {
                        "type": ["string", "null"],
                        "description": "What the user should know before answering.",
                    },
                    "options": {
                        "type": ["array", "null"],
                        "items": {"type": "string"},
                        "description": "Answers to choose from. The user may still answer freely.",
                    },
                    "fields": {
                        "type": ["array", "null"],
                        "maxItems": super::clarification_form::MAX_FIELDS,
                        "description": "A form, when several values are needed at once. It takes the place of options.",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": {
                                    "type": "string",
                                    "description": "Key of the value, different for each field.",
                                },
                                "label": {
                                    "type": "string",
                                    "description": "What the user sees. Default: the name.",
                                },
                                "type": {
                                    "type": "string",
                                    "enum": super::clarification_form::TYPES,
                                    "description": "Default: text.",
                                },
                                "required": {"type": "boolean"},
                                "options": {
                                    "type": "array",
                                    "items": {"type": "string"},
                                    "description": "For select and multi_select: what to choose from.",
                                },
                                "placeholder": {
                                    "type": "string",
                                    "description": "An example of a value.",
                                },
                            },
                        },
                    },
                },
                "required": ["question", "clarification_type"],
            }).into(),
        },
    }))
}

const DESCRIPTION: &str = "\
Ask the user a question and stop until they answer. Use it before you act, not after, when:
- something you need is missing (missing_info);
- the request can be read in more than one way (ambiguous_requirement);
- there are several good ways and the choice is the user's (approach_choice);
- what you are about to do cannot be undone or costs something (risk_confirmation);
- you would rather do something else and want consent (suggestion).
The call ends your turn: make it alone, other calls beside it are dropped. Ask one thing at a time; give options where \
there are a few clear answers, and fields where you need several values together.";

struct AskClarification {
    spec: ToolSpec,
}

impl Tool for AskClarification {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    // It is the answer that ends the run, not the tool: a question that is switched off lets the run go on (MW-CLA-3).

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        ToolOutcome::Answer(clarification_request::answer_call(&invocation))
    }
}
