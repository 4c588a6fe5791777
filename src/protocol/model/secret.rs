//! Texts of a configuration that must not be shown: keys, and addresses that may hold one.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use crate::protocol::error::{Error, ErrorCode};

/// Text that must not be seen: a key, a header value, a proxy URL with credentials.
///
/// A text of the form `$NAME` names a variable of the environment and is no secret itself; `$$…` stands for a
/// literal text that begins with `$`. Debug output and serialisation show `[secret]` or `$NAME`, never the value.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes a literal or a `$NAME` reference.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text as it was written. For the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The variable of the environment that holds the value, if the text is a `$NAME` reference.
    pub fn variable(&self) -> Option<&str> {
        let name = self.0.strip_prefix('$')?;
        let mut bytes = name.bytes();
        let starts = bytes
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        (starts && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')).then_some(name)
    }

    /// The value: the literal, or what `lookup` finds for the named variable.
    ///
    /// # Errors
    /// [`ErrorCode::MissingMember`] at `path` when the variable is not set or empty.
    pub fn resolve(
        &self,
        path: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, Error> {
        match self.variable() {
            Some(name) => lookup(name)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| {
                    Error::at(
                        ErrorCode::MissingMember,
                        path,
                        format!("the environment variable {name} is not set"),
                    )
                }),
            None if self.0.starts_with("$$") => Ok(self.0[1..].to_owned()),
            None => Ok(self.0.clone()),
        }
    }

    fn shown(&self) -> &str {
        match self.variable() {
            Some(_) => &self.0,
            None => "[secret]",
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "writeOnly": true})
    }
}

/// The address of an endpoint. Debug output and serialisation leave out its query, where some endpoints want a key.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct BaseUrl(String);

impl BaseUrl {
    /// Takes an address as it is.
    pub fn new(url: impl Into<String>) -> Self {
        BaseUrl(url.into())
    }

    /// The whole address, query included.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The address without its query: fit to be shown once [`BaseUrl::check`] has passed.
    pub fn shown(&self) -> &str {
        self.0.split('?').next().unwrap_or_default()
    }

    /// Whether its query has a member of this name.
    pub fn has_query_member(&self, name: &str) -> bool {
        let query = self.0.split_once('?').map_or("", |(_, query)| query);
        query
            .split('&')
            .any(|member| member.split('=').next() == Some(name))
    }

    /// Checks that this is an http or https address with a host, without credentials and without a fragment.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfRange`] at `path`.
    pub fn check(&self, path: &str) -> Result<(), Error> {
        let refuse = |what: &str| Err(Error::at(ErrorCode::OutOfRange, path, what));
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return refuse("the address must begin with http:// or https://");
        };
        if !matches!(scheme, "http" | "https") {
            return refuse("the address must begin with http:// or https://");
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return refuse("the address must not hold credentials; use \"api_key\" or \"headers\"");
        }
        if authority.is_empty() || authority.starts_with(':') {
            return refuse("the address has no host");
        }
        if self.0.contains('#') {
            return refuse("the address must not have a fragment");
        }
        if self.0.bytes().any(|b| b.is_ascii_control() || b == b' ') {
            return refuse("the address must not hold spaces or control characters");
        }
        Ok(())
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&without_secrets(self), f)
    }
}

/// What of an address may be shown before it was checked: no query and no credentials.
fn without_secrets(url: &BaseUrl) -> String {
    match url.shown().split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://{host}")
        }
        None => "[no address]".to_owned(),
    }
}

impl Serialize for BaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&without_secrets(self))
    }
}

impl JsonSchema for BaseUrl {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "BaseUrl".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "uri", "pattern": "^https?://"})
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reference_is_a_dollar_and_a_name() {
        let lookup = |name: &str| (name == "KEY").then(|| "value".to_owned());
        let resolve = |text: &str| Secret::new(text).resolve("/api_key", &lookup);
        assert_eq!(resolve("$KEY").unwrap(), "value");
        assert_eq!(resolve("literal").unwrap(), "literal");
        assert_eq!(resolve("$$KEY").unwrap(), "$KEY");
        assert_eq!(resolve("$1").unwrap(), "$1");
        let missing = resolve("$OTHER").unwrap_err();
        assert_eq!(missing.code, ErrorCode::MissingMember);
        assert_eq!(missing.path.as_deref(), Some("/api_key"));
        assert!(missing.message.contains("OTHER"));
    }

    #[test]
    fn what_is_secret_in_an_address_is_not_shown() {
        let url = BaseUrl::new("https://u:sk-1@h/v1?k=sk-2");
        assert_eq!(
            format!("{url:?} {}", json!(url)),
            "\"https://h/v1\" \"https://h/v1\""
        );
    }
}
