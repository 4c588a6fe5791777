//! Models as DeerFlow names them, by a Python class: `use: langchain_openai:ChatOpenAI` and its members, turned into those of
//! our providers.

mod classes;
mod members;

use serde_json::{Map, Value, json};

pub use self::classes::class_names;
use self::classes::{CLASSES, CLAUDE, Class, DEEPSEEK, Family, MINIMAX};
pub(crate) use self::members::schemas;
use self::members::{CHAT, CLAUDE_ONLY, MESSAGES, OURS, Rule};
use super::MAX_WAIT_MS;
use super::connection::{default_connect_timeout_ms, default_first_byte_timeout_ms};
use crate::protocol::decode::{hint, unknown_member, wrong_type};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;

/// Longest silence in a stream of LangChain's OpenAI-compatible classes, in milliseconds (MD-9).
const STREAM_CHUNK_TIMEOUT_MS: u64 = 240_000;
/// The part of `max_tokens` that DeerFlow's Claude class gives to thinking where no budget is set, in percent.
const THINKING_PERCENT: u64 = 80;

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
            let shown: String = use_class.chars().take(80).collect();
            let text = format!("the class {shown:?} is not available in this version{known}");
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
            let rest = path
                .strip_prefix('/')
                .and_then(|path| path.strip_prefix(&**ours));
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
                Value::Object(members) => members.into_iter().try_for_each(|(member, value)| {
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
            self.model
                .renamed
                .push((ours.to_owned(), theirs.to_owned()));
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
