//! Configuration of a model behind a messages endpoint.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::connection::{
    AuthStyle, Connection, TlsConfig, default_between_bytes_timeout_ms, default_connect_timeout_ms,
    default_first_byte_timeout_ms, default_timeout_ms, default_true,
};
use super::{BaseUrl, MAX_TOKENS, Secret, check_header_value, not_empty, number_within, within};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;

/// The version of the API that is asked for unless the configuration says otherwise. The one of October 2026 wants the
/// key as bearer and knows no sampling parameters.
const DEFAULT_API_VERSION: &str = "2023-06-01";

/// A model behind an endpoint that speaks Anthropic's messages format.
///
/// What is not set here is not sent, so that endpoints which refuse a parameter can be used without it. The one exception
/// is `max_tokens`, which the format requires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnthropicConfig {
    /// Name of the model, as the endpoint knows it.
    #[schemars(length(min = 1))]
    pub model: String,
    /// Where the endpoint is; `/v1/messages` is added to its path, or `/messages` where the path ends with `/v1`. A
    /// query stays in place.
    #[serde(default = "default_base_url")]
    pub base_url: BaseUrl,
    /// The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// How the key is sent. Default `x-api-key`.
    #[serde(default = "default_auth")]
    pub auth: AuthStyle,
    /// Sent as `anthropic-version`. Default `2023-06-01`.
    #[serde(default = "default_api_version")]
    #[schemars(length(min = 1))]
    pub api_version: String,
    /// More headers, by name, such as `anthropic-beta`. Values are literals or `$NAME` and are treated as secrets.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// Whether the reply is streamed. Default true.
    #[serde(default = "default_true")]
    pub stream: bool,
    /// Longest wait for a connection, TLS included, in milliseconds. Default 10,000.
    #[serde(default = "default_connect_timeout_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub connect_timeout_ms: u64,
    /// Longest wait from sending the request to the head of the answer, in milliseconds. Default 600,000.
    #[serde(default = "default_first_byte_timeout_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub first_byte_timeout_ms: u64,
    /// Longest silence inside an answer, in milliseconds. Default 300,000.
    #[serde(default = "default_between_bytes_timeout_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub between_bytes_timeout_ms: u64,
    /// Longest time for the whole call, in milliseconds, without the time that the listener holds it back. Default
    /// 1,800,000.
    #[serde(default = "default_timeout_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: u64,
    /// TLS settings for https.
    #[serde(default)]
    pub tls: Option<TlsConfig>,
    /// URL of an HTTP proxy (`http://host:port`), literal or `$NAME`. Proxies that the environment names are not
    /// used unless they are named here, as in `"$HTTPS_PROXY"`.
    #[serde(default)]
    pub proxy: Option<Secret>,
    /// Most tokens that the model may write, thinking included. Default: what the model is known to allow, else 4096,
    /// beside a `budget_tokens` that is larger.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// Sampling temperature.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub temperature: Option<Number>,
    /// Nucleus sampling: the probability mass to draw from.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<Number>,
    /// How many of the likeliest tokens to draw from.
    #[serde(default)]
    pub top_k: Option<u64>,
    /// Texts at which the model stops.
    #[serde(default)]
    pub stop_sequences: Vec<String>,
    /// How the model thinks, sent as given: `{"type":"enabled","budget_tokens":10000}`, `{"type":"adaptive"}`,
    /// `{"type":"disabled"}`, or a form to come.
    #[serde(default)]
    pub thinking: Option<Map<String, Value>>,
    /// How hard the model works, in the endpoint's own words; sent as `output_config.effort`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// Whether the model may call several tools at once. Sent only when set.
    #[serde(default)]
    pub parallel_tool_calls: Option<bool>,
    /// More members of the request body. Members that are set elsewhere are refused.
    #[serde(default)]
    pub extra_body: Map<String, Value>,
}

fn default_base_url() -> BaseUrl {
    BaseUrl::new("https://api.anthropic.com")
}
fn default_api_version() -> String {
    DEFAULT_API_VERSION.to_owned()
}
fn default_auth() -> AuthStyle {
    AuthStyle::XApiKey
}

/// Most tokens that models are known to write, by the beginning of their names; the first that fits counts.
const OUTPUT_TOKENS: &[(&str, u64)] = &[
    ("claude-3-7-sonnet", 64_000),
    ("claude-3-5-", 8192),
    ("claude-3-", 4096),
    ("claude-opus-4-5", 64_000),
    ("claude-opus-4", 32_000),
    ("claude-sonnet-4", 64_000),
    ("claude-haiku-4", 64_000),
];
/// For all others, as LangChain's `ChatAnthropic` has it.
const FALLBACK_OUTPUT_TOKENS: u64 = 4096;

/// The `max_tokens` of a model for which none is set.
pub fn default_max_tokens(model: &str) -> u64 {
    OUTPUT_TOKENS
        .iter()
        .find(|(start, _)| model.starts_with(start))
        .map_or(FALLBACK_OUTPUT_TOKENS, |(_, tokens)| *tokens)
}

impl AnthropicConfig {
    /// A configuration with every default.
    pub fn new(model: impl Into<String>, base_url: impl Into<String>) -> Self {
        AnthropicConfig {
            model: model.into(),
            base_url: BaseUrl::new(base_url),
            api_key: None,
            auth: default_auth(),
            api_version: default_api_version(),
            headers: BTreeMap::new(),
            stream: default_true(),
            connect_timeout_ms: default_connect_timeout_ms(),
            first_byte_timeout_ms: default_first_byte_timeout_ms(),
            between_bytes_timeout_ms: default_between_bytes_timeout_ms(),
            timeout_ms: default_timeout_ms(),
            tls: None,
            proxy: None,
            max_tokens: None,
            temperature: None,
            top_p: None,
            top_k: None,
            stop_sequences: Vec::new(),
            thinking: None,
            reasoning_effort: None,
            parallel_tool_calls: None,
            extra_body: Map::new(),
        }
    }

    /// The members that concern the connection.
    pub(crate) fn connection(&self) -> Connection<'_> {
        Connection {
            base_url: &self.base_url,
            api_key: self.api_key.as_ref(),
            auth: self.auth,
            headers: &self.headers,
            tls: self.tls.as_ref(),
            proxy: self.proxy.as_ref(),
            connect_timeout_ms: self.connect_timeout_ms,
            first_byte_timeout_ms: self.first_byte_timeout_ms,
            between_bytes_timeout_ms: self.between_bytes_timeout_ms,
            timeout_ms: self.timeout_ms,
        }
    }

    /// The `max_tokens` that is sent: as set, else [`default_max_tokens`], and on top of a thinking budget that would
    /// leave nothing of it, since the endpoint refuses that.
    pub fn output_tokens(&self) -> u64 {
        self.max_tokens.unwrap_or_else(|| {
            let tokens = default_max_tokens(&self.model);
            let thinking = self.thinking.as_ref();
            let budget = thinking.and_then(|thinking| thinking.get("budget_tokens")?.as_u64());
            match budget {
                Some(budget) if budget >= tokens => tokens.saturating_add(budget),
                _ => tokens,
            }
        })
    }

    /// Whether the model is asked to think, in whatever form.
    pub fn is_thinking(&self) -> bool {
        self.thinking
            .as_ref()
            .and_then(|thinking| thinking.get("type"))
            .is_some_and(|kind| kind != "disabled")
    }

    /// Checks what types cannot: bounds, addresses, header names, contradictions.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfRange`] or [`ErrorCode::Conflict`], with the member's JSON pointer.
    pub fn validate(&self) -> Result<(), Error> {
        not_empty("/model", &self.model)?;
        self.connection()
            .check(&[("anthropic-version", "api_version")])?;
        not_empty("/api_version", &self.api_version)?;
        check_header_value(&self.api_version, "/api_version")?;
        number_within("/temperature", self.temperature.as_ref(), f64::MAX)?;
        number_within("/top_p", self.top_p.as_ref(), 1.0)?;
        if let Some(max_tokens) = self.max_tokens {
            within("/max_tokens", max_tokens, 1, MAX_TOKENS)?;
        }
        if let Some(top_k) = self.top_k {
            within("/top_k", top_k, 0, MAX_TOKENS)?;
        }
        if let Some(thinking) = &self.thinking
            && !matches!(thinking.get("type"), Some(Value::String(kind)) if !kind.is_empty())
        {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/thinking/type",
                "thinking needs a type, such as \"enabled\", \"adaptive\" or \"disabled\"",
            ));
        }
        if let Some(effort) = &self.reasoning_effort {
            not_empty("/reasoning_effort", effort)?;
        }
        self.check_extra_body()
    }

    fn check_extra_body(&self) -> Result<(), Error> {
        for name in self.extra_body.keys() {
            let taken = match name.as_str() {
                "model" | "messages" | "system" | "tools" | "tool_choice" | "stream"
                | "max_tokens" => true,
                "temperature" => self.temperature.is_some(),
                "top_p" => self.top_p.is_some(),
                "top_k" => self.top_k.is_some(),
                "stop_sequences" => !self.stop_sequences.is_empty(),
                "thinking" => self.thinking.is_some(),
                "output_config" => self.reasoning_effort.is_some(),
                _ => false,
            };
            if taken {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    format!("/extra_body/{}", pointer_token(name)),
                    format!("{name} is set by the provider itself"),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use serde_json::json;

    fn anthropic(value: Value) -> Result<AnthropicConfig, String> {
        let config: AnthropicConfig = serde_json::from_value(value).map_err(|e| e.to_string())?;
        config
            .validate()
            .map_err(|error| error.path.unwrap_or_default())?;
        Ok(config)
    }

    #[test]
    fn bounds_are_refused_with_their_path() {
        for (members, path) in [
            (json!({"model": ""}), "/model"),
            (json!({"base_url": "https://h/v1/messages"}), "/base_url"),
            (
                json!({"base_url": "https://h/chat/completions/"}),
                "/base_url",
            ),
            (json!({"api_version": " "}), "/api_version"),
            (json!({"api_version": "é"}), "/api_version"),
            (
                json!({"headers": {"Anthropic-Version": "x"}}),
                "/headers/Anthropic-Version",
            ),
            (
                json!({"api_key": "k", "headers": {"X-Api-Key": "x"}}),
                "/headers/X-Api-Key",
            ),
            (json!({"timeout_ms": 0}), "/timeout_ms"),
            (json!({"max_tokens": 0}), "/max_tokens"),
            (json!({"top_p": 2}), "/top_p"),
            (json!({"thinking": {}}), "/thinking/type"),
            (json!({"thinking": {"type": 1}}), "/thinking/type"),
            (json!({"extra_body": {"system": "x"}}), "/extra_body/system"),
            (
                json!({"reasoning_effort": "low", "extra_body": {"output_config": {}}}),
                "/extra_body/output_config",
            ),
        ] {
            let mut config = json!({"model": "m"});
            config
                .as_object_mut()
                .unwrap()
                .extend(members.as_object().unwrap().clone());
            assert_eq!(anthropic(config), Err(path.to_owned()), "{members}");
        }
        assert!(anthropic(json!({"model": "m", "modle": 1})).is_err());
        assert!(anthropic(json!({"model": "m", "auth": "basic"})).is_err());
        // The key travels in another header, so this one is free.
        let bearer =
            json!({"model": "m", "api_key": "k", "auth": "bearer", "headers": {"x-api-key": "x"}});
        assert!(anthropic(bearer).is_ok());
    }

    #[test]
    fn known_models_have_their_own_output_limit() {
        for (model, tokens) in [
            ("claude-3-haiku-20240307", 4096),
            ("claude-3-5-haiku-latest", 8192),
            ("claude-3-7-sonnet-latest", 64_000),
            ("claude-opus-4-1", 32_000),
            ("claude-opus-4-5-20251101", 64_000),
            ("claude-sonnet-4-5", 64_000),
            ("another-model", 4096),
        ] {
            assert_eq!(default_max_tokens(model), tokens, "{model}");
        }
        let mut config = AnthropicConfig::new("another-model", "http://h");
        for (budget, tokens) in [(4095, 4096), (10_000, 14_096)] {
            config.thinking = json!({"type": "enabled", "budget_tokens": budget})
                .as_object()
                .cloned();
            assert_eq!(config.output_tokens(), tokens);
        }
        config.max_tokens = Some(5);
        assert_eq!(config.output_tokens(), 5);
    }
}
