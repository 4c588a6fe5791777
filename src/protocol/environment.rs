//! References to the environment in a configuration: text that begins with `$`.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::decode::from_value;
use super::error::{Error, ErrorCode};
use super::json::pointer_token;

/// Shortest value that is hidden from error texts; shorter ones stand in every text.
const MIN_HIDDEN_CHARS: usize = 4;

/// What references were resolved to, to keep it out of error texts and descriptors.
#[derive(Default)]
pub struct References(Vec<(String, String)>);

/// Puts the values of variables in the place of texts such as `$NAME`, in the whole of `config`; `$$…` stands for a literal
/// text that begins with `$`.
///
/// What the types of this library resolve by themselves, and only when it is sent, stays as it is: keys, headers and proxies
/// of models. So do the replies of scripted models, which are text, and the names of members.
///
/// `lookup` answers the value of a variable. An empty value is one.
///
/// # Errors
/// `MissingMember` at the text whose variable is not set; `OutOfRange` at one that names no variable.
///
/// Source: DeerFlow `AppConfig.resolve_env_variables`.
pub fn resolve(
    config: &mut Value,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<References, Error> {
    let mut resolver = Resolver {
        lookup,
        found: References::default(),
    };
    resolver.value(config, &mut String::new(), false)?;
    Ok(resolver.found)
}

/// Reads a configuration: resolves its references by `lookup`, decodes and checks it. Answers what was resolved as well.
///
/// # Errors
/// Those of [`resolve`], of decoding and of `check`, at the member at fault; no value of a variable stands in their text.
pub fn read<T: DeserializeOwned>(
    mut value: Value,
    lookup: &dyn Fn(&str) -> Option<String>,
    check: impl FnOnce(&T) -> Result<(), Error>,
) -> Result<(T, References), Error> {
    let references = resolve(&mut value, lookup)?;
    let checked = from_value(value).and_then(|config| check(&config).map(|()| config));
    match checked {
        Ok(config) => Ok((config, references)),
        Err(error) => Err(references.hide(error)),
    }
}

impl References {
    /// Takes members out whose text holds a value that came from the environment, at every depth: the operator keeps there
    /// what nobody is to see.
    pub fn leave_out(&self, members: &mut serde_json::Map<String, Value>) {
        members.retain(|_, value| !self.is_told_by(value));
        for value in members.values_mut() {
            self.leave_out_below(value);
        }
    }

    fn leave_out_below(&self, value: &mut Value) {
        match value {
            Value::Object(members) => self.leave_out(members),
            Value::Array(items) => {
                items.retain(|item| !self.is_told_by(item));
                items.iter_mut().for_each(|item| self.leave_out_below(item));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn is_told_by(&self, value: &Value) -> bool {
        let Value::String(text) = value else {
            return false;
        };
        let mut values = self.0.iter().map(|(_, value)| value);
        values.any(|value| value.len() >= MIN_HIDDEN_CHARS && text.contains(value.as_str()))
    }

    /// An error without the values that came from the environment: the names of the variables stand there instead.
    pub fn hide(&self, mut error: Error) -> Error {
        for (name, value) in &self.0 {
            let shown = format!("${name}");
            let quoted = format!("{value:?}");
            // Texts are cut where they are quoted in errors.
            let cut: String = value.chars().take(80).collect();
            let forms = [quoted.trim_matches('"'), value, &cut];
            for form in forms
                .into_iter()
                .filter(|form| form.len() >= MIN_HIDDEN_CHARS)
            {
                error.message = error.message.replace(form, &shown);
                for cause in &mut error.cause {
                    *cause = cause.replace(form, &shown);
                }
            }
        }
        error
    }
}

struct Resolver<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    found: References,
}

impl Resolver<'_> {
    /// `in_models`: whether this is part of a model's configuration.
    fn value(
        &mut self,
        value: &mut Value,
        path: &mut String,
        in_models: bool,
    ) -> Result<(), Error> {
        match value {
            Value::String(text) => {
                if let Some(resolved) = self.text(text, path)? {
                    *text = resolved;
                }
                Ok(())
            }
            Value::Array(items) => items.iter_mut().enumerate().try_for_each(|(place, item)| {
                self.below(item, &place.to_string(), path, in_models)
            }),
            Value::Object(members) => members.iter_mut().try_for_each(|(name, member)| {
                if name.starts_with("x-") || (in_models && stays(name)) {
                    return Ok(());
                }
                let in_models = in_models || (path.is_empty() && name == "models");
                self.below(member, name, path, in_models)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn below(
        &mut self,
        value: &mut Value,
        token: &str,
        path: &mut String,
        in_models: bool,
    ) -> Result<(), Error> {
        let length = path.len();
        path.push('/');
        path.push_str(&pointer_token(token));
        let resolved = self.value(value, path, in_models);
        path.truncate(length);
        resolved
    }

    fn text(&mut self, text: &str, path: &str) -> Result<Option<String>, Error> {
        let Some(name) = text.strip_prefix('$') else {
            return Ok(None);
        };
        if name.starts_with('$') {
            return Ok(Some(name.to_owned()));
        }
        // The text itself is not shown: it may be a password that begins with the sign.
        if !is_name(name) {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                path,
                "text that begins with $ names a variable of the environment, and this is no name of one; write $$ for the sign itself",
            ));
        }
        match (self.lookup)(name) {
            Some(value) => {
                self.found.0.push((name.to_owned(), value.clone()));
                Ok(Some(value))
            }
            None => Err(Error::at(
                ErrorCode::MissingMember,
                path,
                format!("the environment variable {name} is not set"),
            )),
        }
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Members of models that are left alone: secrets that resolve later, and text of scripts.
fn stays(name: &str) -> bool {
    matches!(name, "headers" | "default_headers" | "proxy" | "replies")
        || name.ends_with("api_key")
        || name.ends_with("_proxy")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use serde_json::json;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOME_DIR" => Some("/srv/agents".to_owned()),
            "EMPTY" => Some(String::new()),
            "SECRET" => Some("sk-\"canary".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn texts_are_resolved_at_every_depth_and_secrets_of_models_are_not() {
        let mut config = json!({
            "home": "$HOME_DIR", "title": {"model_name": "$EMPTY"}, "tools": [{"name": "a", "api_key": "$SECRET"}],
            "$HOME_DIR": "$$HOME_DIR", "skills": {"path": "a$HOME_DIR"}, "max_recursion_limit": 3,
            "models": [{
                "model": "$HOME_DIR", "api_key": "$UNSET", "openai_api_key": "$UNSET", "proxy": "$UNSET",
                "openai_proxy": "$UNSET", "headers": {"x": "$UNSET"}, "default_headers": {"x": "$UNSET"},
                "replies": [{"content": "$5"}], "extra_body": {"user": "$HOME_DIR"},
                "fallbacks": [{"api_key": "$UNSET", "base_url": "$HOME_DIR"}],
            }],
        });
        resolve(&mut config, &environment).unwrap();
        assert_eq!(
            config,
            json!({
                "home": "/srv/agents", "title": {"model_name": ""}, "tools": [{"name": "a", "api_key": "sk-\"canary"}],
                "$HOME_DIR": "$HOME_DIR", "skills": {"path": "a$HOME_DIR"}, "max_recursion_limit": 3,
                "models": [{
                    "model": "/srv/agents", "api_key": "$UNSET", "openai_api_key": "$UNSET", "proxy": "$UNSET",
                    "openai_proxy": "$UNSET", "headers": {"x": "$UNSET"}, "default_headers": {"x": "$UNSET"},
                    "replies": [{"content": "$5"}], "extra_body": {"user": "/srv/agents"},
                    "fallbacks": [{"api_key": "$UNSET", "base_url": "/srv/agents"}],
                }],
            })
        );
    }

    #[test]
    fn what_cannot_be_resolved_is_named_with_its_path() {
        for (value, code, path, shown) in [
            (
                json!({"skills": {"path": "$NOT_SET"}}),
                ErrorCode::MissingMember,
                "/skills/path",
                Some("NOT_SET"),
            ),
            (
                json!({"tools": [{}, {"a/b": "$NOT_SET"}]}),
                ErrorCode::MissingMember,
                "/tools/1/a~1b",
                Some("NOT_SET"),
            ),
            (
                json!({"home": "$5ecret word"}),
                ErrorCode::OutOfRange,
                "/home",
                None,
            ),
            (json!({"home": "$"}), ErrorCode::OutOfRange, "/home", None),
        ] {
            let error = resolve(&mut value.clone(), &environment).err().unwrap();
            assert_eq!((error.code, error.path.as_deref()), (code, Some(path)));
            match shown {
                Some(name) => assert!(error.message.contains(name), "{}", error.message),
                None => assert!(!error.message.contains("5ecret"), "{}", error.message),
            }
        }
    }

    #[test]
    fn values_stay_out_of_later_errors() {
        let mut config = json!({"admission_policy": "$SECRET"});
        let references = resolve(&mut config, &environment).unwrap();
        let text = format!("{} is not known", config["admission_policy"]);
        let error = Error::new(ErrorCode::UnknownVariant, text).caused_by("sk-\"canary");
        let error = references.hide(error);
        assert_eq!(error.message, "\"$SECRET\" is not known");
        assert_eq!(error.cause, ["$SECRET"]);
    }
}
