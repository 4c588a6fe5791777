//! Secrets that a request brings for its skills: they are passed on and never shown.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::decode::wrong_type;
use super::error::Error;
use super::json::pointer_token;

/// Name of the member of a request's `context` that holds them.
pub const SECRETS: &str = "secrets";

/// Secrets of one request, by name. Debug output shows the names only, and there is no way to JSON.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RequestSecrets(BTreeMap<String, String>);

impl RequestSecrets {
    /// Reads an object of texts; null is none.
    ///
    /// # Errors
    /// `WrongType`, with the path in `value`. The values are never part of an error.
    pub fn read(value: &Value) -> Result<Self, Error> {
        let members = match value {
            Value::Null => return Ok(RequestSecrets::default()),
            Value::Object(members) => members,
            _ => return Err(wrong_type(value, "an object")),
        };
        let mut secrets = BTreeMap::new();
        for (name, value) in members {
            let Value::String(secret) = value else {
                let path = format!("/{}", pointer_token(name));
                return Err(wrong_type(value, "text").below(&path));
            };
            secrets.insert(name.clone(), secret.clone());
        }
        Ok(RequestSecrets(secrets))
    }

    /// Takes the member `secrets` out of a context, so that nobody who is shown the context sees it. `None` when there is no
    /// such member.
    ///
    /// # Errors
    /// As [`RequestSecrets::read`], below `/secrets`.
    pub fn take(context: &mut Map<String, Value>) -> Result<Option<Self>, Error> {
        let Some(value) = context.shift_remove(SECRETS) else {
            return Ok(None);
        };
        let secrets = RequestSecrets::read(&value);
        secrets
            .map(Some)
            .map_err(|error| error.below(&format!("/{SECRETS}")))
    }

    /// The secret of this name.
    pub fn expose(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Their names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of these names; names that there are no secrets of count for nothing.
    pub fn only<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let picked = names
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.0.get(name)?.clone())));
        RequestSecrets(picked.collect())
    }
}

impl fmt::Debug for RequestSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_and_never_shown() {
        let value = json!({"B": "hunter2", "A": ""});
        let secrets = RequestSecrets::read(&value).expect("sound");
        assert_eq!(secrets.names().collect::<Vec<_>>(), ["A", "B"]);
        assert_eq!(secrets.expose("B"), Some("hunter2"));
        assert_eq!(format!("{secrets:?}"), r#"{"A", "B"}"#);
        let one = secrets.only(["B", "C", "B"]);
        assert_eq!(one.names().collect::<Vec<_>>(), ["B"]);
        for (value, path) in [
            (json!(["hunter2"]), ""),
            (json!("hunter2"), ""),
            (json!({"A/B": {"x": "hunter2"}}), "/A~1B"),
            (json!({"A": 1}), "/A"),
        ] {
            let error = RequestSecrets::read(&value).expect_err("no secrets");
            assert_eq!(error.path.as_deref(), Some(path), "{value}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn taking_them_leaves_the_rest_of_a_context() {
        let mut context = json!({"user_id": "u", "secrets": {"A": "hunter2"}});
        let context = context.as_object_mut().expect("an object");
        let taken = RequestSecrets::take(context).expect("sound").expect("some");
        assert_eq!(taken.expose("A"), Some("hunter2"));
        assert_eq!(json!(context), json!({"user_id": "u"}));
        assert_eq!(RequestSecrets::take(context), Ok(None));
        context.insert(SECRETS.into(), json!({"A": []}));
        let error = RequestSecrets::take(context).expect_err("a list");
        assert_eq!(error.path.as_deref(), Some("/secrets/A"));
    }
}
