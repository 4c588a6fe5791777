//! What the configurations of all models behind HTTP share: address, key, headers, TLS, proxy and timeouts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BaseUrl, MAX_WAIT_MS, Secret, check_header_value, not_empty, within};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;

/// TLS settings of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// File of CA certificates in PEM form. Only these are trusted then, not those of the system.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub ca_file: Option<String>,
}

/// How a key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuthStyle {
    /// `Authorization: Bearer KEY`.
    #[serde(rename = "bearer")]
    Bearer,
    /// `x-api-key: KEY`.
    #[serde(rename = "x-api-key")]
    XApiKey,
    /// `api-key: KEY`.
    #[serde(rename = "api-key")]
    ApiKey,
}

impl AuthStyle {
    /// The header that carries the key, in lower case.
    pub const fn header(self) -> &'static str {
        match self {
            AuthStyle::Bearer => "authorization",
            AuthStyle::XApiKey => "x-api-key",
            AuthStyle::ApiKey => "api-key",
        }
    }

    /// The header's value for `key`.
    pub fn value(self, key: &str) -> String {
        match self {
            AuthStyle::Bearer => format!("Bearer {key}"),
            AuthStyle::XApiKey | AuthStyle::ApiKey => key.to_owned(),
        }
    }
}

/// The members of a configuration that concern the connection.
#[derive(Clone, Copy)]
pub(crate) struct Connection<'a> {
    pub(crate) base_url: &'a BaseUrl,
    pub(crate) api_key: Option<&'a Secret>,
    pub(crate) auth: AuthStyle,
    pub(crate) headers: &'a BTreeMap<String, Secret>,
    pub(crate) tls: Option<&'a TlsConfig>,
    pub(crate) proxy: Option<&'a Secret>,
    pub(crate) connect_timeout_ms: u64,
    pub(crate) first_byte_timeout_ms: u64,
    pub(crate) between_bytes_timeout_ms: u64,
    pub(crate) timeout_ms: u64,
}

/// Headers that are ours, or that belong to the connection.
const RESERVED_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Ends of addresses that name a method of an API rather than the API.
const METHOD_PATHS: &[&str] = &["/chat/completions", "/messages", "/completions"];

impl Connection<'_> {
    /// Checks what types cannot: bounds, addresses, header names, contradictions. `own_headers` are those that the
    /// provider sets itself, with the member that does.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfRange`] or [`ErrorCode::Conflict`], with the member's JSON pointer.
    pub(crate) fn check(&self, own_headers: &[(&str, &str)]) -> Result<(), Error> {
        self.base_url.check("/base_url")?;
        let path = self.base_url.shown().trim_end_matches('/');
        if let Some(method) = METHOD_PATHS.iter().find(|end| path.ends_with(**end)) {
            return Err(Error::at(
                ErrorCode::OutOfRange,
                "/base_url",
                format!("leave out {method:?} at the end: the provider adds the path itself"),
            ));
        }
        for (path, value) in [
            ("/connect_timeout_ms", self.connect_timeout_ms),
            ("/first_byte_timeout_ms", self.first_byte_timeout_ms),
            ("/between_bytes_timeout_ms", self.between_bytes_timeout_ms),
            ("/timeout_ms", self.timeout_ms),
        ] {
            within(path, value, 1, MAX_WAIT_MS)?;
        }
        self.check_headers(own_headers)?;
        if let Some(key) = self.api_key {
            not_empty("/api_key", key.expose())?;
            check_header_value(key.expose(), "/api_key")?;
        }
        if let Some(proxy) = self.proxy {
            not_empty("/proxy", proxy.expose())?;
        }
        if let Some(file) = self.tls.and_then(|tls| tls.ca_file.as_deref()) {
            not_empty("/tls/ca_file", file)?;
        }
        Ok(())
    }

    fn check_headers(&self, own_headers: &[(&str, &str)]) -> Result<(), Error> {
        for (name, value) in self.headers {
            let path = format!("/headers/{}", pointer_token(name));
            let lower = name.to_ascii_lowercase();
            let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            if name.is_empty() || !name.bytes().all(token) {
                return Err(Error::at(
                    ErrorCode::OutOfRange,
                    path,
                    "this is no name of an HTTP header",
                ));
            }
            if RESERVED_HEADERS.contains(&lower.as_str()) {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    path,
                    "this header is set by the provider itself",
                ));
            }
            let key = self.api_key.map(|_| (self.auth.header(), "api_key"));
            let mut taken = own_headers.iter().copied().chain(key);
            if let Some((_, member)) = taken.find(|(header, _)| *header == lower) {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    path,
                    format!("{member:?} sets this header already"),
                ));
            }
            check_header_value(value.expose(), &path)?;
        }
        Ok(())
    }
}

pub(super) fn default_true() -> bool {
    true
}
pub(super) fn default_connect_timeout_ms() -> u64 {
    10_000
}
pub(super) fn default_first_byte_timeout_ms() -> u64 {
    600_000
}
pub(super) fn default_between_bytes_timeout_ms() -> u64 {
    300_000
}
pub(super) fn default_timeout_ms() -> u64 {
    1_800_000
}
