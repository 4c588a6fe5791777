//! Configuration of a model behind a chat completions endpoint.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::connection::{
    AuthStyle, Connection, TlsConfig, default_between_bytes_timeout_ms, default_connect_timeout_ms,
    default_first_byte_timeout_ms, default_timeout_ms, default_true,
};
use super::{BaseUrl, MAX_TOKENS, Secret, not_empty, number_within, within};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;

/// A model behind an endpoint that speaks the chat completions format.
///
/// What is not set here is not sent, so that endpoints which refuse a parameter can be used without it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// Name of the model, as the endpoint knows it.
    #[schemars(length(min = 1))]
    pub model: String,
    /// Where the endpoint is; `/chat/completions` is added to its path. A query stays in place.
    #[serde(default = "default_base_url")]
    pub base_url: BaseUrl,
    /// The key. A literal, or `$NAME` for a variable of the environment. Without it no such header is sent.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// How the key is sent. Default `bearer`.
    #[serde(default = "default_auth")]
    pub auth: AuthStyle,
    /// Added to the address as `api-version=…`, for endpoints that want it there.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub api_version: Option<String>,
    /// More headers, by name. Values are literals or `$NAME` and are treated as secrets.
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
    /// Sampling temperature.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub temperature: Option<Number>,
    /// Most tokens that the model may write, sent as `max_tokens`.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// The same, sent as `max_completion_tokens`: models that reason want it under this name, and count reasoning.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_completion_tokens: Option<u64>,
    /// Nucleus sampling: the probability mass to draw from.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<Number>,
    /// Seed for endpoints that can repeat a sampling.
    #[serde(default)]
    pub seed: Option<i64>,
    /// How long the model may think, in the endpoint's own words (`"low"`, `"high"`, …).
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// Whether the reasoning of earlier replies goes back to the model as `reasoning_content`. Default false.
    #[serde(default)]
    pub replay_reasoning: bool,
    /// More members of the request body. Members that are set elsewhere are refused; `stream_options` replaces
    /// ours, and null there leaves it out.
    #[serde(default)]
    pub extra_body: Map<String, Value>,
}

fn default_base_url() -> BaseUrl {
    BaseUrl::new("https://api.openai.com/v1")
}
fn default_auth() -> AuthStyle {
    AuthStyle::Bearer
}

impl OpenAiConfig {
    /// A configuration with every default.
    pub fn new(model: impl Into<String>, base_url: impl Into<String>) -> Self {
        OpenAiConfig {
            model: model.into(),
            base_url: BaseUrl::new(base_url),
            api_key: None,
            auth: default_auth(),
            api_version: None,
            headers: BTreeMap::new(),
            stream: default_true(),
            connect_timeout_ms: default_connect_timeout_ms(),
            first_byte_timeout_ms: default_first_byte_timeout_ms(),
            between_bytes_timeout_ms: default_between_bytes_timeout_ms(),
            timeout_ms: default_timeout_ms(),
            tls: None,
            proxy: None,
            temperature: None,
            max_tokens: None,
            max_completion_tokens: None,
            top_p: None,
            seed: None,
            reasoning_effort: None,
            replay_reasoning: false,
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

    /// Checks what types cannot: bounds, addresses, header names, contradictions.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfRange`] or [`ErrorCode::Conflict`], with the member's JSON pointer.
    pub fn validate(&self) -> Result<(), Error> {
        not_empty("/model", &self.model)?;
        self.connection().check(&[])?;
        if let Some(version) = &self.api_version {
            not_empty("/api_version", version)?;
            if self.base_url.has_query_member("api-version") {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    "/api_version",
                    "the query of \"base_url\" has an api-version already",
                ));
            }
        }
        number_within("/temperature", self.temperature.as_ref(), f64::MAX)?;
        number_within("/top_p", self.top_p.as_ref(), 1.0)?;
        for (path, tokens) in [
            ("/max_tokens", self.max_tokens),
            ("/max_completion_tokens", self.max_completion_tokens),
        ] {
            if let Some(tokens) = tokens {
                within(path, tokens, 1, MAX_TOKENS)?;
            }
        }
        if self.max_tokens.is_some() && self.max_completion_tokens.is_some() {
            return Err(Error::at(
                ErrorCode::Conflict,
                "/max_completion_tokens",
                "give max_tokens or max_completion_tokens, as the endpoint wants it, not both",
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
                "model" | "messages" | "tools" | "tool_choice" | "stream" => true,
                "temperature" => self.temperature.is_some(),
                "max_tokens" => self.max_tokens.is_some(),
                "max_completion_tokens" => self.max_completion_tokens.is_some(),
                "top_p" => self.top_p.is_some(),
                "seed" => self.seed.is_some(),
                "reasoning_effort" => self.reasoning_effort.is_some(),
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

    fn openai(value: Value) -> Result<OpenAiConfig, String> {
        let config: OpenAiConfig = serde_json::from_value(value).map_err(|e| e.to_string())?;
        config
            .validate()
            .map_err(|error| error.path.unwrap_or_default())?;
        Ok(config)
    }

    #[test]
    fn a_secret_is_never_shown() {
        let config = openai(json!({
            "model": "m", "base_url": "https://h/v1?key=sk-query", "api_key": "sk-literal",
            "headers": {"x-key": "sk-header", "y-key": "$Y_KEY"}, "proxy": "http://u:sk-proxy@p:1",
        }))
        .unwrap();
        let shown = format!("{config:?} {}", serde_json::to_string(&config).unwrap());
        assert!(!shown.contains("sk-"), "{shown}");
        assert!(shown.contains("$Y_KEY") && shown.contains("https://h/v1"));
    }

    #[test]
    fn bounds_of_an_endpoint_are_refused_with_their_path() {
        for (members, path) in [
            (json!({"model": " "}), "/model"),
            (json!({"base_url": "ftp://h"}), "/base_url"),
            (json!({"base_url": "h/v1"}), "/base_url"),
            (json!({"base_url": "http://"}), "/base_url"),
            (json!({"base_url": "http://u:p@h"}), "/base_url"),
            (json!({"base_url": "http://h/ v1"}), "/base_url"),
            (json!({"base_url": "http://h/#x"}), "/base_url"),
            (json!({"connect_timeout_ms": 0}), "/connect_timeout_ms"),
            (json!({"timeout_ms": 86_400_001u64}), "/timeout_ms"),
            (json!({"headers": {"a b": "x"}}), "/headers/a b"),
            (json!({"headers": {"a/b": "x"}}), "/headers/a~1b"),
            (json!({"headers": {"Host": "x"}}), "/headers/Host"),
            (json!({"headers": {"x": "a\nb"}}), "/headers/x"),
            (
                json!({"api_key": "k", "headers": {"Authorization": "x"}}),
                "/headers/Authorization",
            ),
            (json!({"api_key": ""}), "/api_key"),
            (json!({"api_key": "k\r\nx: y"}), "/api_key"),
            (json!({"temperature": -0.1}), "/temperature"),
            (json!({"top_p": 1.1}), "/top_p"),
            (json!({"max_tokens": 0}), "/max_tokens"),
            (
                json!({"max_tokens": 1, "max_completion_tokens": 1}),
                "/max_completion_tokens",
            ),
            (
                json!({"base_url": "http://h/v1/chat/completions"}),
                "/base_url",
            ),
            (
                json!({"base_url": "http://h/v1/messages/?k=v"}),
                "/base_url",
            ),
            (json!({"api_version": ""}), "/api_version"),
            (
                json!({"api_version": "1", "base_url": "http://h?x=1&api-version=2"}),
                "/api_version",
            ),
            (
                json!({"api_key": "k", "auth": "api-key", "headers": {"Api-Key": "x"}}),
                "/headers/Api-Key",
            ),
            (json!({"tls": {"ca_file": ""}}), "/tls/ca_file"),
            (
                json!({"extra_body": {"messages": []}}),
                "/extra_body/messages",
            ),
            (
                json!({"seed": 1, "extra_body": {"seed": 2}}),
                "/extra_body/seed",
            ),
        ] {
            let mut config = json!({"model": "m"});
            config
                .as_object_mut()
                .unwrap()
                .extend(members.as_object().unwrap().clone());
            assert_eq!(openai(config), Err(path.to_owned()), "{members}");
        }
        assert!(openai(json!({"model": "m", "extra_body": {"stream_options": null}})).is_ok());
    }

    #[test]
    fn faults_are_found_with_their_path_and_numbers_keep_their_form() {
        use crate::protocol::decode::from_value;
        let error = from_value::<OpenAiConfig>(json!({"base_url": "http://h"})).unwrap_err();
        assert_eq!(error.path.as_deref(), Some("/model"));
        let config = json!({"model": "m", "temperature": 0.7, "extra_body": {"x-a": {"y": [1.0]}}});
        let decoded: OpenAiConfig = from_value(config).unwrap();
        assert_eq!(json!(decoded.temperature).to_string(), "0.7");
        assert_eq!(
            json!(decoded.extra_body).to_string(),
            r#"{"x-a":{"y":[1.0]}}"#
        );
    }

    #[test]
    fn unknown_members_are_refused() {
        assert!(openai(json!({"model": "m", "modle": 1})).is_err());
        assert!(openai(json!({"model": "m", "tls": {"x": 1}})).is_err());
        let schema = serde_json::to_string(&schemars::schema_for!(OpenAiConfig)).unwrap();
        assert!(schema.contains("\"additionalProperties\":false"));
    }
}
