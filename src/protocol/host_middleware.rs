//! Configuration of a middleware that the host is: where it is asked, what it is told, and what counts when it is silent.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::config::check_deadline;
use super::decode::{carry, hint};
use super::error::{Error, ErrorCode};

/// How long the host has for one verdict unless the configuration says otherwise, in milliseconds: as long as for a tool.
pub const DEFAULT_TIMEOUT_MS: u64 = 600_000;
/// How many of the newest messages come with a question unless the configuration says otherwise.
pub const DEFAULT_MESSAGES: usize = 1;
/// Most messages that come with a question.
pub const MAX_MESSAGES: usize = 1000;

/// A hook, by its name in LangChain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookName {
    /// Once, before the loop.
    BeforeAgent,
    /// Before each model call.
    BeforeModel,
    /// Around each model call; the host is asked before it.
    WrapModelCall,
    /// After each model call.
    AfterModel,
    /// Around each tool call.
    WrapToolCall,
    /// Once, after the loop.
    AfterAgent,
}

impl HookName {
    /// All hooks, in the order of a run.
    pub const ALL: &'static [HookName] = &[
        HookName::BeforeAgent,
        HookName::BeforeModel,
        HookName::WrapModelCall,
        HookName::AfterModel,
        HookName::WrapToolCall,
        HookName::AfterAgent,
    ];

    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            HookName::BeforeAgent => "before_agent",
            HookName::BeforeModel => "before_model",
            HookName::WrapModelCall => "wrap_model_call",
            HookName::AfterModel => "after_model",
            HookName::WrapToolCall => "wrap_tool_call",
            HookName::AfterAgent => "after_agent",
        }
    }
}

impl<'de> Deserialize<'de> for HookName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = HookName::ALL.iter().find(|hook| hook.name() == name);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = HookName::ALL.iter().map(|hook| hook.name()).collect();
            let shown: String = name.chars().take(80).collect();
            carry(&Error::at(
                ErrorCode::UnknownVariant,
                "",
                format!("there is no hook {shown:?}{}", hint(&name, &known)),
            ))
        })
    }
}

impl JsonSchema for HookName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HookName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = HookName::ALL.iter().map(|hook| hook.name()).collect();
        schemars::json_schema!({"description": "A hook.", "enum": json!(names)})
    }
}

/// Where in a run the host is asked: a hook, and for tool calls whether before the call or after it. It decides which
/// verdicts there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// `before_agent`.
    BeforeAgent,
    /// `before_model`.
    BeforeModel,
    /// `wrap_model_call`, before the call.
    ModelCall,
    /// `after_model`.
    AfterModel,
    /// `wrap_tool_call`, before the call.
    BeforeTool,
    /// `wrap_tool_call`, after the call.
    AfterTool,
    /// `after_agent`.
    AfterAgent,
}

impl Point {
    /// Its hook.
    pub const fn hook(self) -> HookName {
        match self {
            Point::BeforeAgent => HookName::BeforeAgent,
            Point::BeforeModel => HookName::BeforeModel,
            Point::ModelCall => HookName::WrapModelCall,
            Point::AfterModel => HookName::AfterModel,
            Point::BeforeTool | Point::AfterTool => HookName::WrapToolCall,
            Point::AfterAgent => HookName::AfterAgent,
        }
    }

    /// Whether it is before or after the call; only of tool calls.
    pub const fn phase(self) -> Option<&'static str> {
        match self {
            Point::BeforeTool => Some("before"),
            Point::AfterTool => Some("after"),
            _ => None,
        }
    }
}

/// When the host is asked about a tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Before it is made.
    #[default]
    Before,
    /// When there is a result.
    After,
    /// Both times.
    Both,
}

impl When {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            When::Before => "before",
            When::After => "after",
            When::Both => "both",
        }
    }
}

/// What counts when the host gives no verdict: its time is up, it says that it cannot, or its queue is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// The run goes on as if the host had said so.
    Continue,
    /// As if the host had denied it.
    Deny,
    /// The run ends with an error.
    #[default]
    Fail,
}

impl OnTimeout {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            OnTimeout::Continue => "continue",
            OnTimeout::Deny => "deny",
            OnTimeout::Fail => "fail",
        }
    }
}

/// A middleware that the host is: at each of its hooks a host call of the kind `middleware` asks for a verdict.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostMiddlewareConfig {
    /// Where the host is asked, at least one hook. Other hooks cost nothing.
    #[schemars(length(min = 1))]
    pub hooks: Vec<HookName>,
    /// Only calls of these tools, for `wrap_tool_call`. Default: all calls.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// When the host is asked about a tool call. Default `before`.
    #[serde(default)]
    pub when: Option<When>,
    /// Channels whose values come with each question; `messages` has a member of its own.
    #[serde(default)]
    pub reads: Vec<String>,
    /// How many of the newest messages come with each question but those about tool calls, 0 to 1000. Default 1.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub messages: Option<u32>,
    /// How long the host has for one verdict, in milliseconds. Default 600000.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// What counts when there is no verdict by then. Default `fail`.
    #[serde(default)]
    pub on_timeout: OnTimeout,
}

impl HostMiddlewareConfig {
    /// Checks bounds and contradictions. Whether there are such channels and tools is checked by who knows them.
    ///
    /// # Errors
    /// `OutOfRange` or `Conflict` at the member at fault.
    pub fn validate(&self) -> Result<(), Error> {
        if self.hooks.is_empty() {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/hooks",
                "a middleware of the host needs a hook at least, or nobody asks it",
            ));
        }
        let twice = |list: &str, place: usize, name: &str| {
            Error::at(
                ErrorCode::Conflict,
                format!("/{list}/{place}"),
                format!("{name:?} stands here twice"),
            )
        };
        for (place, hook) in self.hooks.iter().enumerate() {
            if self.hooks[..place].contains(hook) {
                return Err(twice("hooks", place, hook.name()));
            }
        }
        for (list, names) in [
            ("tools", self.tools.as_deref().unwrap_or_default()),
            ("reads", &self.reads),
        ] {
            for (place, name) in names.iter().enumerate() {
                if names[..place].contains(name) {
                    return Err(twice(list, place, name));
                }
            }
        }
        if !self.asks_at(HookName::WrapToolCall) {
            for (member, is_given) in [
                ("tools", self.tools.is_some()),
                ("when", self.when.is_some()),
            ] {
                if is_given {
                    return Err(Error::at(
                        ErrorCode::Conflict,
                        format!("/{member}"),
                        format!(
                            "{member:?} is about the hook \"wrap_tool_call\", which is not among the hooks"
                        ),
                    ));
                }
            }
        }
        if self.tools.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/tools",
                "an empty list means no call at all; leave \"tools\" out for all calls",
            ));
        }
        if self.messages() > MAX_MESSAGES {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/messages",
                format!("messages must be 0 to {MAX_MESSAGES}"),
            ));
        }
        check_deadline("/timeout_ms", self.timeout_ms)
    }

    /// Checks that `tools` names nothing but tools that are known.
    ///
    /// # Errors
    /// `UnknownVariant` at the name, with the nearest known one: a guard of a misspelt tool guards nothing.
    pub fn check_tools(&self, known: &[&str]) -> Result<(), Error> {
        let names = self.tools.iter().flatten().enumerate();
        for (place, name) in names {
            if !known.contains(&name.as_str()) {
                let shown: String = name.chars().take(80).collect();
                return Err(Error::at(
                    ErrorCode::UnknownVariant,
                    format!("/tools/{place}"),
                    format!("there is no tool {shown:?}{}", hint(name, known)),
                ));
            }
        }
        Ok(())
    }

    /// Whether the host is asked at this hook.
    pub fn asks_at(&self, hook: HookName) -> bool {
        self.hooks.contains(&hook)
    }

    /// When it is asked about tool calls.
    pub fn when(&self) -> When {
        self.when.unwrap_or_default()
    }

    /// How many messages come with a question.
    pub fn messages(&self) -> usize {
        self.messages
            .map_or(DEFAULT_MESSAGES, |count| count as usize)
    }

    /// How long the host has, in milliseconds.
    pub fn timeout_ms(&self) -> u64 {
        self.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)
    }
}
