//! A custom agent: what its record says about it, and how it is read, with the source that each text has.
//!
//! A record comes in two ways. The operator gives it as JSON: unknown members are refused, texts are the operator's. Or it
//! stands in a `config.yaml` under a user's or agent's directory: unknown keys are dropped, as DeerFlow does, words and
//! numbers are read as leniently as there, and every text is untrusted.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};

use super::agent_github::GithubConfig;
use super::decode::{carry, from_value, wrong_type};
use super::error::{Error, ErrorCode};
use super::trust::{Identifier, OperatorText, SourcedText, UntrustedText};

/// Most tokens that a record may ask its model for (DeerFlow `AgentModelSettings`).
pub const MAX_AGENT_OUTPUT_TOKENS: u64 = 200_000;
/// Highest temperature that a record may ask for (DeerFlow `AgentModelSettings`).
pub const MAX_TEMPERATURE: f64 = 2.0;

/// What a custom agent's record (`config.yaml`, or a member of `agents` in the configuration) says (CA-1).
///
/// Absent and empty differ: no list means no restriction, an empty one means nothing at all (CA-2).
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRecord {
    /// Name: `A-Z a-z 0-9 -`.
    pub name: Identifier,
    /// What it is for; may be empty.
    pub description: SourcedText,
    /// Its personality (`SOUL.md`), trimmed; none when blank.
    pub soul: Option<SourcedText>,
    /// Model it asks for; an empty name counts as none (RC-3).
    pub model: Option<String>,
    /// Groups of configured tools that it has; `None` for all of them.
    pub tool_groups: Option<Vec<String>>,
    /// Skills that it may find and activate; `None` for all that are enabled.
    pub skills: Option<Vec<String>>,
    /// Settings of its model.
    pub model_settings: AgentModelSettings,
    /// Whether it thinks, unless the request says.
    pub thinking_enabled: Option<bool>,
    /// How hard it thinks, unless the request says.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Subagents that it may delegate to; `None` for all, an empty list forbids delegation.
    pub allowed_subagents: Option<Vec<String>>,
    /// Whether it has memory. Default true.
    pub memory_enabled: bool,
    /// The repositories that it answers on (CA-10); `None` for none.
    pub github: Option<GithubConfig>,
}

impl AgentRecord {
    /// A record that says nothing but a name.
    pub fn named(name: Identifier) -> Self {
        AgentRecord {
            name,
            description: SourcedText::Untrusted(UntrustedText::user("")),
            soul: None,
            model: None,
            tool_groups: None,
            skills: None,
            model_settings: AgentModelSettings::default(),
            thinking_enabled: None,
            reasoning_effort: None,
            allowed_subagents: None,
            memory_enabled: true,
            github: None,
        }
    }

    /// Reads a `config.yaml`, given as a value, with the text of the `SOUL.md` beside it. Every text of it is untrusted.
    ///
    /// `name` is that of the folder, which a `name` in the file does not change. An empty file is a record without
    /// anything. Keys that no record has are dropped, those of `model_settings` refused (CA-1, MD-11). Truth values may
    /// be the words and numbers that YAML 1.1 and DeerFlow take for them (`on`, `no`, 1 ...), numbers may stand in quotes.
    ///
    /// # Errors
    /// `WrongType`, `OutOfRange`, `UnknownMember`, `UnknownVariant` or `Conflict`; the path points into the file's value.
    pub fn from_file_value(
        name: &Identifier,
        value: Value,
        soul: Option<&str>,
    ) -> Result<Self, Error> {
        let mut map = match value {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            other => return Err(wrong_type(&other, "a mapping")),
        };
        map.retain(|key, _| FILE_MEMBERS.contains(&key.as_str()));
        match map.shift_remove("name") {
            None | Some(Value::String(_)) => {}
            Some(other) => return Err(wrong_type(&other, "text").below("/name")),
        }
        map.insert("name".to_owned(), name.as_str().into());
        for flag in ["thinking_enabled", "memory_enabled"] {
            map.get_mut(flag).into_iter().for_each(read_flag);
        }
        if let Some(Value::Object(settings)) = map.get_mut("model_settings") {
            settings.values_mut().for_each(read_number);
        }
        if let Some(github) = map.get_mut("github") {
            GithubConfig::prepare_file_value(github);
        }
        let members: Members<String> = from_value(Value::Object(map))?;
        let user = |text: String| SourcedText::Untrusted(UntrustedText::user(text));
        let mut record = members.into_record(String::new(), user)?;
        record.soul = soul.map(trim).filter(|soul| !soul.is_empty()).map(|soul| {
            let soul = UntrustedText::user(soul);
            SourcedText::Untrusted(soul)
        });
        Ok(record)
    }
}

/// Members that a `config.yaml` may have; the soul stands in a file of its own.
const FILE_MEMBERS: &[&str] = &[
    "name",
    "description",
    "model",
    "tool_groups",
    "skills",
    "model_settings",
    "thinking_enabled",
    "reasoning_effort",
    "allowed_subagents",
    "memory_enabled",
    "github",
];

/// The name of a custom agent: 1 to 64 characters of `A-Z a-z 0-9 -` (CA-1). It is safe in a path and in a prompt.
///
/// # Errors
/// `OutOfRange`, without a path.
pub fn agent_name(text: &str) -> Result<Identifier, Error> {
    let name = Identifier::new(text).filter(|name| !name.as_str().contains('_'));
    name.ok_or_else(|| {
        let shown: String = text.chars().take(80).collect();
        Error::new(
            ErrorCode::OutOfRange,
            format!(
                "an agent's name is 1 to {} characters of A-Z, a-z, 0-9 and -, which {shown:?} is not",
                Identifier::MAX_CHARS
            ),
        )
    })
}

/// A custom agent, given in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "T: Deserialize<'de>"))]
#[schemars(rename = "Agent")]
struct Members<T> {
    /// Name, 1 to 64 characters of `A-Z a-z 0-9 -`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9-]{1,64}$"))]
    name: String,
    /// What it is for. Default: nothing.
    #[serde(default)]
    description: Option<T>,
    /// Its personality, for its system text. Blank counts as none. Default: none.
    #[serde(default)]
    soul: Option<T>,
    /// Name of the model that it asks for, unless the request says. Default: the first of the runtime's models.
    #[serde(default)]
    model: Option<String>,
    /// Groups of tools that it has. Default: all. An empty list: none.
    #[serde(default)]
    tool_groups: Option<Vec<String>>,
    /// Skills that it may find and activate. Default: all that are enabled. An empty list: none.
    #[serde(default)]
    skills: Option<Vec<String>>,
    /// Settings of its model, which go before those of the model's profile.
    #[serde(default)]
    model_settings: Option<AgentModelSettings>,
    /// Whether it thinks, unless the request says. Default: it does.
    #[serde(default)]
    thinking_enabled: Option<bool>,
    /// How hard it thinks, unless the request says. Default: the model's own way.
    #[serde(default)]
    reasoning_effort: Option<ReasoningEffort>,
    /// Subagents that it may delegate to. Default: all. An empty list forbids delegation, whatever the request says.
    #[serde(default)]
    allowed_subagents: Option<Vec<String>>,
    /// Whether it has memory. False: nothing is remembered and nothing recalled. It does not switch on what is switched
    /// off for all. Default true.
    #[serde(default = "yes")]
    memory_enabled: bool,
    /// The repositories that it answers on. Default: none.
    #[serde(default)]
    github: Option<GithubConfig>,
}

fn yes() -> bool {
    true
}

impl<T> Members<T> {
    /// Checks what the types do not hold. `empty` is the description of a record without one, `sourced` says whose the
    /// texts are.
    fn into_record(
        self,
        empty: T,
        sourced: impl Fn(T) -> SourcedText,
    ) -> Result<AgentRecord, Error> {
        let name = agent_name(&self.name).map_err(|error| error.below("/name"))?;
        let model_settings = self.model_settings.unwrap_or_default();
        let model_settings = model_settings
            .checked()
            .map_err(|error| error.below("/model_settings"))?;
        if let Some(github) = &self.github {
            github.validate().map_err(|error| error.below("/github"))?;
        }
        Ok(AgentRecord {
            name,
            description: sourced(self.description.unwrap_or(empty)),
            soul: self.soul.map(sourced),
            model: self.model.filter(|model| !model.is_empty()),
            tool_groups: self.tool_groups,
            skills: self.skills,
            model_settings,
            thinking_enabled: self.thinking_enabled,
            reasoning_effort: self.reasoning_effort,
            allowed_subagents: self.allowed_subagents,
            memory_enabled: self.memory_enabled,
            github: self.github,
        })
    }
}

impl<'de> Deserialize<'de> for AgentRecord {
    /// Reads what the operator gives as JSON.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        if let Some(Value::String(soul)) = value.get_mut("soul") {
            let trimmed = trim(soul);
            value["soul"] = match trimmed {
                "" => Value::Null,
                trimmed => trimmed.into(),
            };
        }
        from_value::<Members<OperatorText>>(value)
            .and_then(|members| {
                let empty = OperatorText::from_operator_directory("");
                members.into_record(empty, SourcedText::Operator)
            })
            .map_err(|error| carry(&error))
    }
}

impl JsonSchema for AgentRecord {
    fn schema_name() -> Cow<'static, str> {
        "Agent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Members::<OperatorText>::json_schema(generator)
    }
}

/// Settings of a custom agent's model (MD-11).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentModelSettings {
    /// Sampling temperature, 0 to 2. Default: the profile's.
    #[serde(default)]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<Number>,
    /// Most tokens to write, 1 to 200000. Default: the profile's.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200000))]
    pub max_tokens: Option<u64>,
}

impl AgentModelSettings {
    /// Checks the bounds. A temperature becomes a number with a fraction (`1` is `1.0`), as it is in DeerFlow, so that
    /// both ways of writing it are one assembly.
    fn checked(mut self) -> Result<Self, Error> {
        if let Some(temperature) = &self.temperature {
            let temperature = temperature.as_f64().unwrap_or(f64::NAN);
            let fitting = (0.0..=MAX_TEMPERATURE).contains(&temperature);
            self.temperature = match Number::from_f64(temperature).filter(|_| fitting) {
                Some(number) => Some(number),
                None => {
                    return Err(Error::at(
                        ErrorCode::OutOfRange,
                        "/temperature",
                        format!("temperature must be 0 to {MAX_TEMPERATURE}, not {temperature}"),
                    ));
                }
            };
        }
        match self.max_tokens {
            Some(tokens) if !(1..=MAX_AGENT_OUTPUT_TOKENS).contains(&tokens) => Err(Error::at(
                ErrorCode::OutOfRange,
                "/max_tokens",
                format!("max_tokens must be 1 to {MAX_AGENT_OUTPUT_TOKENS}, not {tokens}"),
            )),
            _ => Ok(self),
        }
    }
}

/// How hard a custom agent thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

impl ReasoningEffort {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            ReasoningEffort::Low => "low",
            ReasoningEffort::Medium => "medium",
            ReasoningEffort::High => "high",
        }
    }
}

/// Text without the whitespace around it, by Python's idea of whitespace, as DeerFlow reads souls.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// Makes a truth value of the words and numbers that stand for one; leaves everything else to the decoder.
pub(super) fn read_flag(value: &mut Value) {
    let flag = match value {
        Value::String(word) => match word.to_ascii_lowercase().as_str() {
            "1" | "t" | "true" | "y" | "yes" | "on" => Some(true),
            "0" | "f" | "false" | "n" | "no" | "off" => Some(false),
            _ => None,
        },
        Value::Number(number) => match number.as_f64() {
            Some(1.0) => Some(true),
            Some(0.0) => Some(false),
            _ => None,
        },
        _ => None,
    };
    if let Some(flag) = flag {
        *value = Value::Bool(flag);
    }
}

/// Makes a number of one in quotes; leaves everything else to the decoder.
pub(super) fn read_number(value: &mut Value) {
    if let Value::String(text) = value
        && let Ok(number) = trim(text).parse::<Number>()
    {
        *value = Value::Number(number);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use serde_json::json;

    use super::super::trust::Source;
    use super::*;

    fn name() -> Identifier {
        agent_name("helper-1").unwrap()
    }

    fn file(value: Value) -> Result<AgentRecord, (ErrorCode, String)> {
        AgentRecord::from_file_value(&name(), value, None).map_err(place)
    }

    fn operator(value: Value) -> Result<AgentRecord, (ErrorCode, String)> {
        from_value(value).map_err(place)
    }

    fn place(error: Error) -> (ErrorCode, String) {
        (error.code, error.path.unwrap_or_default())
    }

    #[test]
    fn ca1_names_are_letters_digits_and_hyphens() {
        for good in ["a", "A-9", "-", &"x".repeat(64)] {
            assert!(agent_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a_b",
            "a.b",
            "..",
            "a/b",
            "a b",
            "ä",
            "a\n",
            "a\0",
            &"x".repeat(65),
        ] {
            assert_eq!(
                agent_name(bad).unwrap_err().code,
                ErrorCode::OutOfRange,
                "{bad:?}"
            );
        }
    }

    #[test]
    fn ca1_every_member_is_read_from_the_operator_and_its_texts_are_his() {
        let value = json!({
            "name": "helper-1", "description": "Helps.", "soul": " \u{1c}Kind.\n", "model": "m",
            "tool_groups": ["web"], "skills": [], "model_settings": {"temperature": 1, "max_tokens": 9},
            "thinking_enabled": false, "reasoning_effort": "high", "allowed_subagents": ["bash"],
            "memory_enabled": false, "github": {"bindings": [{"repo": "a/b"}]}, "x-note": 1,
        });
        let record = operator(value).unwrap();
        let his = |text: &str| SourcedText::Operator(OperatorText::from_operator_directory(text));
        let expected = AgentRecord {
            name: name(),
            description: his("Helps."),
            soul: Some(his("Kind.")),
            model: Some("m".to_owned()),
            tool_groups: Some(vec!["web".to_owned()]),
            skills: Some(vec![]),
            model_settings: AgentModelSettings {
                temperature: Number::from_f64(1.0),
                max_tokens: Some(9),
            },
            thinking_enabled: Some(false),
            reasoning_effort: Some(ReasoningEffort::High),
            allowed_subagents: Some(vec!["bash".to_owned()]),
            memory_enabled: false,
            github: Some(GithubConfig {
                bindings: vec![from_value(json!({"repo": "a/b"})).unwrap()],
                ..GithubConfig::default()
            }),
        };
        assert_eq!(record, expected);
        assert_eq!(
            record.model_settings.temperature.unwrap().to_string(),
            "1.0"
        );
    }

    #[test]
    fn pt1_no_text_of_a_file_is_ever_the_operators() {
        let value = json!({"description": "d", "soul": "from the file", "name": "other"});
        let record = AgentRecord::from_file_value(&name(), value, Some("\n soul \n")).unwrap();
        assert_eq!(record.name, name(), "the folder names the agent");
        assert_eq!(record.description.source(), Source::User);
        let soul = record.soul.unwrap();
        assert_eq!((soul.source(), soul.expose()), (Source::User, "soul"));
        let blank = AgentRecord::from_file_value(&name(), json!({}), Some(" \t\n")).unwrap();
        assert_eq!(blank.soul, None, "a `soul` key or a blank file makes none");
    }

    #[test]
    fn ca2_null_and_empty_lists_differ() {
        for list in ["tool_groups", "skills", "allowed_subagents"] {
            let of = |value: Value| {
                let record = file(json!({ list: value })).unwrap();
                match list {
                    "tool_groups" => record.tool_groups,
                    "skills" => record.skills,
                    _ => record.allowed_subagents,
                }
            };
            assert_eq!(of(Value::Null), None);
            assert_eq!(of(json!([])), Some(vec![]));
            assert_eq!(of(json!(["a"])), Some(vec!["a".to_owned()]));
        }
    }

    #[test]
    fn ca1_unknown_keys_of_a_file_are_dropped_and_those_of_an_operator_refused() {
        let value = json!({"name": "n", "colour": 1});
        assert_eq!(file(value.clone()), file(json!({})));
        assert_eq!(
            operator(value),
            Err((ErrorCode::UnknownMember, "/colour".to_owned()))
        );
        let settings = json!({"name": "n", "model_settings": {"top_p": 1}});
        let refused = (ErrorCode::UnknownMember, "/model_settings/top_p".to_owned());
        assert_eq!(file(settings.clone()), Err(refused.clone()));
        assert_eq!(operator(settings), Err(refused));
    }

    #[test]
    fn an_empty_file_is_a_record_with_all_defaults() {
        assert_eq!(file(Value::Null), Ok(AgentRecord::named(name())));
        assert_eq!(file(json!({"model": ""})), Ok(AgentRecord::named(name())));
    }

    #[test]
    fn a_file_may_say_yes_and_no_in_words_and_numbers_in_quotes() {
        for (word, flag) in [
            (json!("off"), false),
            (json!("No"), false),
            (json!(0), false),
            (json!("true"), true),
            (json!(1.0), true),
        ] {
            let record = file(json!({"memory_enabled": word, "thinking_enabled": word})).unwrap();
            assert_eq!(
                (record.memory_enabled, record.thinking_enabled),
                (flag, Some(flag))
            );
            assert!(operator(json!({"name": "n", "memory_enabled": word})).is_err());
        }
        let settings = json!({"model_settings": {"temperature": "0.5", "max_tokens": " 7 "}});
        let settings = file(settings).unwrap().model_settings;
        assert_eq!(settings.temperature, Number::from_f64(0.5));
        assert_eq!(settings.max_tokens, Some(7));
    }

    #[test]
    fn faults_say_where_they_are() {
        use ErrorCode::{OutOfRange, UnknownVariant, WrongType};
        for (value, code, path) in [
            (json!([]), WrongType, ""),
            (json!({"name": 5}), WrongType, "/name"),
            (json!({"description": 5}), WrongType, "/description"),
            (json!({"skills": "all"}), WrongType, "/skills"),
            (json!({"skills": ["a", null]}), WrongType, "/skills/1"),
            (
                json!({"memory_enabled": null}),
                WrongType,
                "/memory_enabled",
            ),
            (
                json!({"memory_enabled": "maybe"}),
                WrongType,
                "/memory_enabled",
            ),
            (
                json!({"reasoning_effort": "huge"}),
                UnknownVariant,
                "/reasoning_effort",
            ),
            (json!({"model_settings": []}), WrongType, "/model_settings"),
            (
                json!({"model_settings": {"temperature": 2.1}}),
                OutOfRange,
                "/model_settings/temperature",
            ),
            (
                json!({"model_settings": {"temperature": -1}}),
                OutOfRange,
                "/model_settings/temperature",
            ),
            (
                json!({"model_settings": {"max_tokens": 0}}),
                OutOfRange,
                "/model_settings/max_tokens",
            ),
            (
                json!({"model_settings": {"max_tokens": 200001}}),
                OutOfRange,
                "/model_settings/max_tokens",
            ),
            (
                json!({"model_settings": {"max_tokens": 1.5}}),
                WrongType,
                "/model_settings/max_tokens",
            ),
        ] {
            assert_eq!(file(value.clone()), Err((code, path.to_owned())), "{value}");
        }
        assert_eq!(
            operator(json!({"name": "a_b"})),
            Err((OutOfRange, "/name".to_owned()))
        );
        assert_eq!(
            operator(json!({})),
            Err((ErrorCode::MissingMember, "/name".to_owned()))
        );
    }
}
