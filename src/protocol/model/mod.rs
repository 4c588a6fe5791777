//! Configuration of model providers: what a host writes to name a model and how to reach it.

mod anthropic;
mod connection;
mod langchain;
mod openai;
mod profile;
mod retry;
mod scripted;
mod secret;

use serde_json::Number;

pub use anthropic::{AnthropicConfig, default_max_tokens};
#[cfg(feature = "http")]
pub(crate) use connection::Connection;
pub use connection::{AuthStyle, TlsConfig};
pub(crate) use langchain::schemas as langchain_schemas;
pub use langchain::{LangchainModel, class_names};
pub use openai::OpenAiConfig;
pub use profile::{ModelProfile, ModelWishes, settled};
pub use retry::{MAX_RETRIES, RetryConfig, RetryPolicy, RetryRules};
pub use scripted::{
    Chunks, ModelFault, ReplyContent, ScriptedConfig, ScriptedError, ScriptedInvalidToolCall,
    ScriptedReply, ScriptedToolCall, ScriptedUsage, check_replies,
};
pub use secret::{BaseUrl, Secret};

use super::error::{Error, ErrorCode};

/// Longest delay or timeout that a configuration may ask for: one day, in milliseconds.
pub const MAX_WAIT_MS: u64 = 86_400_000;

/// Most tokens that a configuration may ask for.
const MAX_TOKENS: u64 = (1 << 53) - 1;

/// Checks that `value` can be sent as a header: visible ASCII, spaces and tabs.
///
/// # Errors
/// [`ErrorCode::OutOfRange`] at `path`; the text never holds the value.
pub(crate) fn check_header_value(value: &str, path: &str) -> Result<(), Error> {
    if value
        .bytes()
        .all(|b| b == b'\t' || (b' '..=b'~').contains(&b))
    {
        Ok(())
    } else {
        Err(Error::at(
            ErrorCode::OutOfRange,
            path,
            "a header may hold visible ASCII characters only",
        ))
    }
}

fn not_empty(path: &str, text: &str) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::at(
            ErrorCode::OutOfRange,
            path,
            "this must not be empty",
        ));
    }
    Ok(())
}

fn within(path: &str, value: u64, min: u64, max: u64) -> Result<(), Error> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::at(
        ErrorCode::OutOfRange,
        path,
        format!("{value} is not within {min}..={max}"),
    ))
}

fn number_within(path: &str, value: Option<&Number>, max: f64) -> Result<(), Error> {
    let Some(value) = value else { return Ok(()) };
    match value.as_f64() {
        Some(number) if (0.0..=max).contains(&number) => Ok(()),
        _ => Err(Error::at(
            ErrorCode::OutOfRange,
            path,
            if max == f64::MAX {
                format!("{value} is less than 0")
            } else {
                format!("{value} is not within 0..={max}")
            },
        )),
    }
}
