//! Models as DeerFlow names them, by a Python class: `use: langchain_openai:ChatOpenAI` and its members, turned into those of
//! our providers.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::connection::{default_connect_timeout_ms, default_first_byte_timeout_ms};
use super::{AnthropicConfig, MAX_WAIT_MS, OpenAiConfig};
use crate::protocol::decode::{hint, unknown_member, wrong_type};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;

/// Longest silence in a stream of LangChain's OpenAI-compatible classes, in milliseconds (MD-9).
const STREAM_CHUNK_TIMEOUT_MS: u64 = 240_000;
/// The part of `max_tokens` that DeerFlow's Claude class gives to thinking where no budget is set, in percent.
const THINKING_PERCENT: u64 = 80;

/// Which of our providers stands for a class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    /// `openai`.
    Chat,
    /// `anthropic`.
    Messages,
}

/// A class that one of our providers can stand for.
struct Class {
    name: &'static str,
    family: Family,
    /// Where it goes unless it is told; none for the provider's own default.
    base_url: Option<&'static str>,
    /// The variable with the key, unless it is told another.
    key_variable: &'static str,
    /// Whether it sends `max_tokens` as `max_completion_tokens`.
    renames_max_tokens: bool,
    /// Whether the reasoning of earlier replies goes back to the model.
    replays_reasoning: bool,
}

const fn chat(name: &'static str, base_url: Option<&'static str>, key: &'static str) -> Class {
    Class {
        name,
        family: Family::Chat,
        base_url,
        key_variable: key,
        renames_max_tokens: false,
        replays_reasoning: false,
    }
}

const fn openai(name: &'static str, replays_reasoning: bool) -> Class {
    Class {
        renames_max_tokens: true,
        replays_reasoning,
        ..chat(name, None, "OPENAI_API_KEY")
    }
}

const fn messages(name: &'static str) -> Class {
    Class {
        name,
        family: Family::Messages,
        base_url: None,
        key_variable: "ANTHROPIC_API_KEY",
        renames_max_tokens: false,
        replays_reasoning: false,
    }
}

const DEEPSEEK: &str = "https://api.deepseek.com/v1";

/// The classes that are known, with the addresses and variables that they have in their packages.
const CLASSES: &[Class] = &[
    openai("langchain_openai:ChatOpenAI", false),
    openai("deerflow.models.patched_openai:PatchedChatOpenAI", true),
    openai("deerflow.models.patched_mimo:PatchedChatMiMo", true),
    openai("deerflow.models.patched_stepfun:PatchedChatStepFun", true),
    openai("deerflow.models.patched_minimax:PatchedChatMiniMax", true),
    openai("deerflow.models.vllm_provider:VllmChatModel", true),
    chat(
        "langchain_deepseek:ChatDeepSeek",
        Some(DEEPSEEK),
        "DEEPSEEK_API_KEY",
    ),
    Class {
        replays_reasoning: true,
        ..chat(
            "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
            Some(DEEPSEEK),
            "DEEPSEEK_API_KEY",
        )
    },
    chat(
        "langchain_groq:ChatGroq",
        Some("https://api.groq.com/openai/v1"),
        "GROQ_API_KEY",
    ),
    chat(
        "langchain_xai:ChatXAI",
        Some("https://api.x.ai/v1"),
        "XAI_API_KEY",
    ),
    chat(
        "langchain_together:ChatTogether",
        Some("https://api.together.xyz/v1"),
        "TOGETHER_API_KEY",
    ),
    chat(
        "langchain_fireworks:ChatFireworks",
        Some("https://api.fireworks.ai/inference/v1"),
        "FIREWORKS_API_KEY",
    ),
    messages("langchain_anthropic:ChatAnthropic"),
    messages(CLAUDE),
];

const CLAUDE: &str = "deerflow.models.claude_provider:ClaudeChatModel";
const MINIMAX: &str = "deerflow.models.patched_minimax:PatchedChatMiniMax";

/// What becomes of a member.
#[derive(Clone, Copy)]
enum Rule {
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
const CHAT: &[(&str, Rule)] = &[
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
const MESSAGES: &[(&str, Rule)] = &[
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
const CLAUDE_ONLY: &[(&str, Rule)] = &[
    ("retry_max_attempts", Rule::Attempts),
    ("enable_prompt_caching", Rule::Off),
    ("prompt_cache_size", Rule::Either),
    ("auto_thinking_budget", Rule::AutoBudget),
];

/// Members of ours that may stand beside those of a class.
const OURS: &[&str] = &[
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

/// Names of the classes that `use` may have.
pub fn class_names() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().map(|class| class.name)
}

/// The class that a named model was given as, and what its members were called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LangchainModel {
    /// `use`, as it was written.
    pub class: String,
    /// Members that another one made void (MD-9: `api_base` beside `base_url`).
    pub void_members: Vec<&'static str>,
    /// Our pointers and theirs, without the first slash.
    renamed: Vec<(String, String)>,
    renames_max_tokens: bool,
}

impl LangchainModel {
    /// Turns the members of a model of this class into those of one of our providers, `provider` included. Members that
    /// are null count as absent (MD-6).
    ///
    /// # Errors
    /// `Unsupported` at `/use` for another class, and at members that ask for what our providers do not have;
    /// `UnknownMember`, `WrongType`, `OutOfRange` or `Conflict` at the member at fault.
    pub fn translate(
        use_class: &str,
        members: Map<String, Value>,
    ) -> Result<(LangchainModel, Map<String, Value>), Error> {
        let Some(class) = CLASSES.iter().find(|class| class.name == use_class) else {
            let names: Vec<&str> = class_names().collect();
            let known = hint(use_class, &names);
            let text = format!("this class is not available in this version{known}");
            return Err(Error::at(ErrorCode::Unsupported, "/use", text));
        };
        let mut work = Translation {
            class,
            model: LangchainModel {
                class: use_class.to_owned(),
                renames_max_tokens: class.renames_max_tokens,
                ..LangchainModel::default()
            },
            ours: Map::new(),
            timeout_ms: None,
            chunk_timeout_ms: Some(STREAM_CHUNK_TIMEOUT_MS),
            has_auto_budget: class.name == CLAUDE,
        };
        let has_base_url = ["base_url", "openai_api_base"]
            .iter()
            .any(|name| members.get(*name).is_some_and(|value| !value.is_null()));
        for (name, value) in members {
            if value.is_null() {
                continue;
            }
            // The DeepSeek classes have an `api_base` of their own, for the others it is another name.
            if name == "api_base" && has_base_url && class.base_url != Some(DEEPSEEK) {
                work.model.void_members.push("api_base");
                continue;
            }
            work.take(&name, value)
                .map_err(|error| error.below(&format!("/{}", pointer_token(&name))))?;
        }
        Ok(work.finish())
    }

    /// Turns settings of `when_thinking_enabled` and `when_thinking_disabled` into those of our provider.
    pub fn translate_settings(&mut self, member: &str, settings: &mut Map<String, Value>) {
        if self.renames_max_tokens
            && let Some(tokens) = settings.shift_remove("max_tokens")
        {
            settings.insert("max_completion_tokens".to_owned(), tokens);
            self.renamed.push((
                format!("{member}/max_completion_tokens"),
                format!("{member}/max_tokens"),
            ));
        }
    }

    /// The name that `max_tokens` of an agent goes by in the provider's settings.
    pub fn renames_max_tokens(&self) -> bool {
        self.renames_max_tokens
    }

    /// An error of our provider, with the path that the configuration has.
    pub fn in_their_words(&self, mut error: Error) -> Error {
        let Some(path) = &error.path else {
            return error;
        };
        for (ours, theirs) in &self.renamed {
            let rest = path.strip_prefix('/').and_then(|path| path.strip_prefix(&**ours));
            if let Some(rest) = rest
                && (rest.is_empty() || rest.starts_with('/'))
            {
                error.path = Some(format!("/{theirs}{rest}"));
                break;
            }
        }
        error
    }
}

struct Translation {
    class: &'static Class,
    model: LangchainModel,
    ours: Map<String, Value>,
    timeout_ms: Option<u64>,
    chunk_timeout_ms: Option<u64>,
    has_auto_budget: bool,
}

impl Translation {
    fn rules(class: &Class) -> impl Iterator<Item = &'static (&'static str, Rule)> {
        let (family, more): (_, &[_]) = match class.family {
            Family::Chat => (CHAT, &[]),
            Family::Messages if class.name == CLAUDE => (MESSAGES, CLAUDE_ONLY),
            Family::Messages => (MESSAGES, &[]),
        };
        family.iter().chain(more)
    }

    /// Takes one member. Errors have no path yet.
    fn take(&mut self, name: &str, value: Value) -> Result<(), Error> {
        let rule = Translation::rules(self.class).find(|(theirs, _)| *theirs == name);
        match rule.map(|(_, rule)| *rule) {
            Some(Rule::Is("max_tokens")) if self.class.renames_max_tokens => {
                self.set("max_completion_tokens", name, value)
            }
            Some(Rule::Is(ours)) => self.set(ours, name, value),
            Some(Rule::Timeout) => {
                if self.timeout_ms.is_some() {
                    return Err(twice());
                }
                self.timeout_ms = Some(milliseconds(&value)?.max(1));
                Ok(())
            }
            Some(Rule::ChunkTimeout) => {
                let timeout = milliseconds(&value)?;
                self.chunk_timeout_ms = (timeout > 0).then_some(timeout);
                Ok(())
            }
            Some(Rule::Body) => self.body(name, name, value),
            Some(Rule::Bodies) => match value {
                Value::Object(members) => members
                    .into_iter()
                    .try_for_each(|(member, value)| {
                        let theirs = format!("{name}/{}", pointer_token(&member));
                        let added = self.body(&member, &theirs, value);
                        added.map_err(|error| error.below(&format!("/{}", pointer_token(&member))))
                    }),
                other => Err(wrong_type(&other, "an object")),
            },
            Some(Rule::Header(header)) => self.header(header, name, value),
            Some(Rule::Betas) => {
                let betas: Vec<String> = crate::protocol::decode::from_value(value)?;
                self.header("anthropic-beta", name, betas.join(",").into())
            }
            Some(Rule::NotStream) => {
                let flag = flag(&value)?;
                self.set("stream", name, Value::Bool(!flag))
            }
            Some(Rule::StreamUsage) => match flag(&value)? {
                true => Ok(()),
                false => self.body("stream_options", name, Value::Null),
            },
            Some(Rule::Attempts) => match value.as_u64() {
                Some(attempts @ 1..) => self.set("max_retries", name, json!(attempts - 1)),
                _ => Err(out_of_range("attempts are counted from 1")),
            },
            Some(Rule::Off) => match flag(&value)? {
                false => Ok(()),
                true => Err(unsupported()),
            },
            Some(Rule::Either) => match value {
                Value::Bool(_) | Value::Number(_) => Ok(()),
                other => Err(wrong_type(&other, "a boolean or a number")),
            },
            Some(Rule::AutoBudget) => {
                self.has_auto_budget = flag(&value)?;
                Ok(())
            }
            Some(Rule::OutputVersion) => match value.as_str() {
                Some("v0" | "v1") => Ok(()),
                Some(_) => Err(unsupported()),
                None => Err(wrong_type(&value, "text")),
            },
            None if OURS.contains(&name) => self.set_as_is(name, value),
            None => {
                let known: Vec<&str> = Translation::rules(self.class)
                    .map(|(theirs, _)| *theirs)
                    .chain(OURS.iter().copied())
                    .collect();
                // The path is put in front by the caller.
                Err(Error {
                    path: None,
                    ..unknown_member(name, &known)
                })
            }
        }
    }

    fn set(&mut self, ours: &'static str, theirs: &str, value: Value) -> Result<(), Error> {
        if ours == "extra_body" {
            return match value {
                Value::Object(members) => members
                    .into_iter()
                    .try_for_each(|(member, value)| self.body(&member, "", value)),
                other => Err(wrong_type(&other, "an object")),
            };
        }
        if ours == "headers" {
            return match value {
                Value::Object(members) => members.into_iter().try_for_each(|(member, value)| {
                    let token = pointer_token(&member);
                    self.header(&member, &format!("{theirs}/{token}"), value)
                }),
                other => Err(wrong_type(&other, "an object")),
            };
        }
        if ours != theirs {
            self.model.renamed.push((ours.to_owned(), theirs.to_owned()));
        }
        self.set_as_is(ours, value)
    }

    fn set_as_is(&mut self, ours: &str, value: Value) -> Result<(), Error> {
        if self.ours.insert(ours.to_owned(), value).is_some() {
            return Err(twice());
        }
        Ok(())
    }

    fn body(&mut self, member: &str, theirs: &str, value: Value) -> Result<(), Error> {
        self.nested("extra_body", member, theirs, value)
    }

    fn header(&mut self, header: &str, theirs: &str, value: Value) -> Result<(), Error> {
        self.nested("headers", header, theirs, value)
    }

    fn nested(&mut self, map: &str, member: &str, theirs: &str, value: Value) -> Result<(), Error> {
        if !theirs.is_empty() {
            let ours = format!("{map}/{}", pointer_token(member));
            self.model.renamed.push((ours, theirs.to_owned()));
        }
        let whole = self.ours.entry(map).or_insert_with(|| json!({}));
        let members = whole.as_object_mut();
        let before = members.and_then(|members| members.insert(member.to_owned(), value));
        match before {
            Some(_) => Err(twice()),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> (LangchainModel, Map<String, Value>) {
        let class = self.class;
        let mut defaults = vec![("api_key", json!(format!("${}", class.key_variable)))];
        if let Some(base_url) = class.base_url {
            defaults.push(("base_url", base_url.into()));
        }
        if class.replays_reasoning {
            defaults.push(("replay_reasoning", true.into()));
        }
        let first_byte = self.timeout_ms.unwrap_or(default_first_byte_timeout_ms());
        let between = match class.family {
            Family::Chat => self.chunk_timeout_ms.unwrap_or(u64::MAX).min(first_byte),
            Family::Messages => first_byte,
        };
        let connect = default_connect_timeout_ms().min(first_byte);
        defaults.push(("connect_timeout_ms", connect.into()));
        defaults.push(("first_byte_timeout_ms", first_byte.into()));
        defaults.push(("between_bytes_timeout_ms", between.into()));
        for (name, value) in defaults {
            self.ours.entry(name).or_insert(value);
        }
        if class.name == MINIMAX {
            // What makes the endpoint tell reasoning and answer apart.
            let body = self.ours.entry("extra_body").or_insert_with(|| json!({}));
            if let Some(body) = body.as_object_mut() {
                body.entry("reasoning_split").or_insert(true.into());
            }
        }
        if self.has_auto_budget {
            let tokens = self.ours.get("max_tokens").and_then(Value::as_u64);
            let tokens = tokens.unwrap_or(8_192);
            if let Some(Value::Object(thinking)) = self.ours.get_mut("thinking")
                && thinking.get("type") == Some(&json!("enabled"))
            {
                let budget = tokens.saturating_mul(THINKING_PERCENT) / 100;
                thinking.entry("budget_tokens").or_insert(budget.into());
            }
        }
        let provider = match class.family {
            Family::Chat => "openai",
            Family::Messages => "anthropic",
        };
        self.ours.insert("provider".to_owned(), provider.into());
        (self.model, self.ours)
    }
}

fn twice() -> Error {
    Error::new(
        ErrorCode::Conflict,
        "another member says the same thing already",
    )
}

fn unsupported() -> Error {
    let text = "this is not available in this version";
    Error::new(ErrorCode::Unsupported, text)
}

fn out_of_range(text: &str) -> Error {
    Error::new(ErrorCode::OutOfRange, text)
}

fn flag(value: &Value) -> Result<bool, Error> {
    value.as_bool().ok_or_else(|| Error {
        path: None,
        ..wrong_type(value, "a boolean")
    })
}

/// Seconds, with a fraction or not, as milliseconds.
fn milliseconds(value: &Value) -> Result<u64, Error> {
    let Some(seconds) = value.as_f64() else {
        return Err(Error {
            path: None,
            ..wrong_type(value, "a number of seconds")
        });
    };
    let milliseconds = seconds * 1_000.0;
    if (0.0..=MAX_WAIT_MS as f64).contains(&milliseconds) {
        return Ok(milliseconds.round() as u64);
    }
    Err(out_of_range("this must be 0 to 86400 seconds"))
}

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
