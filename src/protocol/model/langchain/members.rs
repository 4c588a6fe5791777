//! What the members of those classes are called here.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::classes::{CLASSES, Family};
use crate::protocol::model::{AnthropicConfig, OpenAiConfig};

/// What becomes of a member.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// It is this one of ours.
    Is(&'static str),
    /// Seconds without a byte, before the answer and within.
    Timeout,
    /// Seconds without a byte within a stream.
    ChunkTimeout,
    /// A member of the request's body.
    Body,
    /// Members of the request's body.
    Bodies,
    /// The value of a header.
    Header(&'static str),
    /// Values of `anthropic-beta`.
    Betas,
    /// Whether to stream, the other way round.
    NotStream,
    /// Whether a stream ends with a count of tokens.
    StreamUsage,
    /// Attempts, the first included.
    Attempts,
    /// True is not available.
    Off,
    /// Whichever it is: our providers do so in any case, or have no such step.
    Either,
    /// Whether a budget for thinking is worked out.
    AutoBudget,
    /// The wire format of replies.
    OutputVersion,
}

/// Members of the OpenAI-compatible classes.
pub(super) const CHAT: &[(&str, Rule)] = &[
    ("model", Rule::Is("model")),
    ("model_name", Rule::Is("model")),
    ("api_key", Rule::Is("api_key")),
    ("openai_api_key", Rule::Is("api_key")),
    ("groq_api_key", Rule::Is("api_key")),
    ("xai_api_key", Rule::Is("api_key")),
    ("together_api_key", Rule::Is("api_key")),
    ("fireworks_api_key", Rule::Is("api_key")),
    ("base_url", Rule::Is("base_url")),
    ("api_base", Rule::Is("base_url")),
    ("openai_api_base", Rule::Is("base_url")),
    ("groq_api_base", Rule::Is("base_url")),
    ("xai_api_base", Rule::Is("base_url")),
    ("timeout", Rule::Timeout),
    ("request_timeout", Rule::Timeout),
    ("stream_chunk_timeout", Rule::ChunkTimeout),
    ("max_retries", Rule::Is("max_retries")),
    ("default_headers", Rule::Is("headers")),
    ("organization", Rule::Header("OpenAI-Organization")),
    ("openai_organization", Rule::Header("OpenAI-Organization")),
    ("openai_proxy", Rule::Is("proxy")),
    ("temperature", Rule::Is("temperature")),
    ("max_tokens", Rule::Is("max_tokens")),
    ("max_completion_tokens", Rule::Is("max_completion_tokens")),
    ("top_p", Rule::Is("top_p")),
    ("seed", Rule::Is("seed")),
    ("reasoning_effort", Rule::Is("reasoning_effort")),
    ("extra_body", Rule::Is("extra_body")),
    ("model_kwargs", Rule::Bodies),
    ("frequency_penalty", Rule::Body),
    ("presence_penalty", Rule::Body),
    ("logit_bias", Rule::Body),
    ("logprobs", Rule::Body),
    ("top_logprobs", Rule::Body),
    ("stop", Rule::Body),
    ("service_tier", Rule::Body),
    ("store", Rule::Body),
    ("metadata", Rule::Body),
    ("verbosity", Rule::Body),
    ("streaming", Rule::Is("stream")),
    ("disable_streaming", Rule::NotStream),
    ("stream_usage", Rule::StreamUsage),
    ("cumulative_stream_usage", Rule::Either),
    ("use_responses_api", Rule::Off),
    ("output_version", Rule::OutputVersion),
];

/// Members of the classes for Anthropic's messages.
pub(super) const MESSAGES: &[(&str, Rule)] = &[
    ("model", Rule::Is("model")),
    ("model_name", Rule::Is("model")),
    ("api_key", Rule::Is("api_key")),
    ("anthropic_api_key", Rule::Is("api_key")),
    ("base_url", Rule::Is("base_url")),
    ("anthropic_api_url", Rule::Is("base_url")),
    ("timeout", Rule::Timeout),
    ("default_request_timeout", Rule::Timeout),
    ("stream_chunk_timeout", Rule::Either),
    ("max_retries", Rule::Is("max_retries")),
    ("default_headers", Rule::Is("headers")),
    ("anthropic_proxy", Rule::Is("proxy")),
    ("betas", Rule::Betas),
    ("temperature", Rule::Is("temperature")),
    ("max_tokens", Rule::Is("max_tokens")),
    ("max_tokens_to_sample", Rule::Is("max_tokens")),
    ("top_p", Rule::Is("top_p")),
    ("top_k", Rule::Is("top_k")),
    ("stop_sequences", Rule::Is("stop_sequences")),
    ("stop", Rule::Is("stop_sequences")),
    ("thinking", Rule::Is("thinking")),
    ("effort", Rule::Is("reasoning_effort")),
    ("reasoning_effort", Rule::Is("reasoning_effort")),
    ("model_kwargs", Rule::Bodies),
    ("streaming", Rule::Is("stream")),
    ("disable_streaming", Rule::NotStream),
    ("stream_usage", Rule::Either),
];

/// What DeerFlow's own class for Claude has besides.
pub(super) const CLAUDE_ONLY: &[(&str, Rule)] = &[
    ("retry_max_attempts", Rule::Attempts),
    ("enable_prompt_caching", Rule::Off),
    ("prompt_cache_size", Rule::Either),
    ("auto_thinking_budget", Rule::AutoBudget),
];

/// Members of ours that may stand beside those of a class.
pub(super) const OURS: &[&str] = &[
    "auth",
    "headers",
    "stream",
    "connect_timeout_ms",
    "first_byte_timeout_ms",
    "between_bytes_timeout_ms",
    "timeout_ms",
    "tls",
    "proxy",
    "replay_reasoning",
    "parallel_tool_calls",
    "api_version",
    "extra_body",
    "retry_base_delay_ms",
    "retry_cap_delay_ms",
    "max_retry_after_ms",
    "retry_deadline_ms",
    "retry_after_partial",
    "fallbacks",
];

/// The schemas of models given by class, one for each of our providers.
pub(crate) fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<Value> {
    let openai = OpenAiConfig::json_schema(generator).to_value();
    let anthropic = AnthropicConfig::json_schema(generator).to_value();
    let families = [
        (
            Family::Chat,
            openai,
            "A model by the class that DeerFlow names, behind an endpoint that speaks OpenAI's chat completions; its members are those of the class.",
        ),
        (
            Family::Messages,
            anthropic,
            "A model by the class that DeerFlow names, behind an endpoint that speaks Anthropic's messages; its members are those of the class.",
        ),
    ];
    families
        .into_iter()
        .map(|(family, provider, description)| {
            let members = provider["properties"].as_object();
            let mut properties = Map::new();
            let names: Vec<&str> = CLASSES
                .iter()
                .filter(|class| class.family == family)
                .map(|class| class.name)
                .collect();
            properties.insert(
                "use".to_owned(),
                json!({"description": "The class.", "enum": names}),
            );
            let rules: &[_] = match family {
                Family::Chat => &[CHAT],
                Family::Messages => &[MESSAGES, CLAUDE_ONLY],
            };
            for (name, rule) in rules.iter().copied().flatten() {
                let schema = match rule {
                    Rule::Is(ours) => members.and_then(|members| members.get(*ours)).cloned(),
                    Rule::Timeout | Rule::ChunkTimeout => Some(json!({
                        "description": "In seconds.", "type": "number", "minimum": 0, "maximum": 86_400
                    })),
                    Rule::NotStream | Rule::StreamUsage | Rule::Off | Rule::AutoBudget => {
                        Some(json!({"type": "boolean"}))
                    }
                    Rule::Attempts => Some(json!({"type": "integer", "minimum": 1})),
                    Rule::Header(_) | Rule::OutputVersion => Some(json!({"type": "string"})),
                    Rule::Bodies => Some(json!({"type": "object"})),
                    Rule::Betas => Some(json!({"type": "array", "items": {"type": "string"}})),
                    Rule::Body | Rule::Either => None,
                };
                properties.insert((*name).to_owned(), schema.unwrap_or_else(|| json!({})));
            }
            for name in OURS {
                let schema = members.and_then(|members| members.get(*name)).cloned();
                if let Some(schema) = schema {
                    properties.entry(*name).or_insert(schema);
                }
            }
            json!({
                "description": description,
                "type": "object",
                "required": ["use"],
                "properties": properties,
                "additionalProperties": false,
            })
        })
        .collect()
}
