//! What an endpoint says went wrong, as typed errors.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{HeaderMap, HeaderName};
use serde_json::Value;

use super::redact::Redactor;
use crate::ports::model::{EndpointFailure, MAX_PROVIDER_CODE_CHARS, ModelError};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::time::Timestamp;

/// The error of an answer that is no success. `body` is its body, or the beginning of it.
pub(crate) fn from_status(
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    redactor: &Redactor,
) -> ModelError {
    let text = String::from_utf8_lossy(body);
    let said = Said::of_body(&text);
    let (code, mut retryable) = match class_of_status(status) {
        Some(_) if said.is_quota() => (ErrorCode::ModelRateLimit, false),
        Some(class) => class,
        None => (ErrorCode::ModelProtocol, false),
    };
    // Endpoints that know better say so.
    match header(headers, "x-should-retry") {
        Some("true") => retryable = true,
        Some("false") => retryable = false,
        _ => {}
    }
    let mut message = format!("the endpoint answered {status}");
    if let Some(word) = &said.code {
        message.push_str(&format!(" ({word})"));
    }
    if (300..400).contains(&status) {
        message.push_str(", a redirect that is not followed");
    }
    if !said.text.is_empty() {
        message.push_str(&format!(": {}", said.text));
    }
    let mut error = Error::new(code, redactor.clean(&message));
    error.retryable = retryable;
    error.http_status = Some(status);
    // What the endpoint's operator is asked for when the failure is reported to them.
    let request_id = ["request-id", "x-request-id"]
        .into_iter()
        .find_map(|name| header(headers, name).filter(|id| !id.is_empty()));
    if let Some(id) = request_id {
        error
            .cause
            .push(redactor.clean(&format!("request id {}", cut(id))));
    }
    ModelError {
        retry_after: retry_after(headers),
        endpoint: Some(Box::new(EndpointFailure {
            status: Some(status),
            code: said.provider_code(redactor),
        })),
        ..ModelError::from(error)
    }
}

/// The error that an endpoint reports in the place of a reply, after it had answered with success. `reported` is the
/// value of its `error` member.
pub(crate) fn from_reported(reported: &Value, redactor: &Redactor) -> ModelError {
    let said = Said::of_error(reported);
    let (code, retryable) = said.class();
    let mut message = "the endpoint reports an error".to_owned();
    if let Some(word) = &said.code {
        message.push_str(&format!(" ({word})"));
    }
    if !said.text.is_empty() {
        message.push_str(&format!(": {}", said.text));
    }
    let mut error = Error::new(code, redactor.clean(&message));
    error.retryable = retryable;
    ModelError {
        endpoint: Some(Box::new(EndpointFailure {
            status: None,
            code: said.provider_code(redactor),
        })),
        ..ModelError::from(error)
    }
}

/// The beginning of a short text.
fn cut(text: &str) -> String {
    text.chars().take(MAX_PROVIDER_CODE_CHARS).collect()
}

/// The beginning of a body, for errors about what it is not. Of an HTML page only the title.
pub(crate) fn excerpt(body: &str) -> String {
    let text = body.trim();
    if text.is_empty() {
        return "nothing".to_owned();
    }
    if text.starts_with('<') {
        let lower = text.to_ascii_lowercase();
        let title = lower.find("<title>").and_then(|start| {
            let end = lower[start..].find("</title>")?;
            text.get(start + "<title>".len()..start + end)
        });
        return match title {
            Some(title) => format!("a page titled {:?}", title.trim()),
            None => "a page".to_owned(),
        };
    }
    text.chars().take(300).collect()
}

/// The parts of an error document that all dialects have.
struct Said {
    /// Its short name: a word, or a number.
    code: Option<String>,
    /// Its longer word for the kind of error.
    kind: Option<String>,
    text: String,
}

impl Said {
    fn of_body(body: &str) -> Said {
        let value = match serde_json::from_str(body) {
            // Some endpoints wrap the error object in a list.
            Ok(Value::Array(mut list)) if list.len() == 1 => list.remove(0),
            Ok(value) => value,
            Err(_) => Value::Null,
        };
        match &value {
            Value::Object(object) => match object.get("error") {
                Some(error) if !error.is_null() => {
                    let mut said = Said::of_error(error);
                    if said.text.is_empty() {
                        said.text = Said::of_error(&value).text;
                    }
                    said
                }
                _ => Said::of_error(&value),
            },
            _ => Said {
                code: None,
                kind: None,
                text: if body.trim().is_empty() {
                    String::new()
                } else {
                    excerpt(body)
                },
            },
        }
    }

    fn of_error(error: &Value) -> Said {
        let word = |name: &str| match error.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let text = match error {
            Value::String(text) => text.clone(),
            _ => ["message", "detail", "error"]
                .into_iter()
                .filter_map(|name| error.get(name))
                .find_map(|value| match value {
                    Value::String(text) => Some(text.clone()),
                    Value::Array(_) => Some(value.to_string()),
                    _ => None,
                })
                .unwrap_or_default(),
        };
        Said {
            code: word("code").or_else(|| word("type")),
            kind: word("type").or_else(|| word("status")),
            text,
        }
    }

    fn has_word(&self, words: &[&str]) -> bool {
        [&self.code, &self.kind].into_iter().flatten().any(|said| {
            let said = said.to_ascii_lowercase();
            words.iter().any(|word| said.contains(word))
        })
    }

    /// Whether the account has nothing left, which waiting does not change.
    fn is_quota(&self) -> bool {
        self.has_word(&["insufficient_quota", "billing", "credit_balance"])
            // Said in words only, under the name of a bad request.
            || self.text.to_ascii_lowercase().contains("credit balance is too low")
    }

    /// The short name, fit to be shown.
    fn provider_code(&self, redactor: &Redactor) -> Option<String> {
        // Cleaned before it is cut: half a secret is not recognised.
        self.code
            .as_deref()
            .map(|code| cut(&redactor.clean(code)))
            .filter(|code| !code.is_empty())
    }

    /// The class of an error that came without a status.
    fn class(&self) -> (ErrorCode, bool) {
        if self.is_quota() {
            return (ErrorCode::ModelRateLimit, false);
        }
        let number = self.code.as_deref().and_then(|code| code.parse().ok());
        if let Some(class) = number.and_then(class_of_status) {
            return class;
        }
        let words: [(&[&str], _, _); 4] = [
            (
                &["rate_limit", "too_many", "resource_exhausted"],
                ErrorCode::ModelRateLimit,
                true,
            ),
            (
                &["auth", "api_key", "permission"],
                ErrorCode::ModelAuth,
                false,
            ),
            (
                &[
                    "invalid_request",
                    "context",
                    "not_found",
                    "content_policy",
                    "too_large",
                ],
                ErrorCode::ModelRequest,
                false,
            ),
            (&["timeout"], ErrorCode::ModelTimeout, true),
        ];
        words
            .iter()
            .find(|(words, ..)| self.has_word(words))
            .map_or((ErrorCode::ModelServer, true), |(_, code, retryable)| {
                (*code, *retryable)
            })
    }
}

/// Code of an HTTP status, and whether the failure may pass; `None` for what is no failure status.
fn class_of_status(status: u16) -> Option<(ErrorCode, bool)> {
    Some(match status {
        401 | 403 => (ErrorCode::ModelAuth, false),
        408 => (ErrorCode::ModelTimeout, true),
        409 | 425 => (ErrorCode::ModelRequest, true),
        429 => (ErrorCode::ModelRateLimit, true),
        500..=599 => (ErrorCode::ModelServer, true),
        300..=499 => (ErrorCode::ModelRequest, false),
        _ => return None,
    })
}

fn header<'a>(headers: &'a HeaderMap, name: &'static str) -> Option<&'a str> {
    headers
        .get(HeaderName::from_static(name))?
        .to_str()
        .ok()
        .map(str::trim)
}

/// How long the endpoint asks to wait: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date.
///
/// A date counts from the answer's own `date` header, so that clocks need not agree. What is negative, past or not
/// readable counts as not said.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = |text: &str, unit: f64| {
        let number: f64 = text.parse().ok()?;
        (number > 0.0)
            .then(|| Duration::try_from_secs_f64(number * unit).ok())
            .flatten()
    };
    if let Some(wait) = header(headers, "retry-after-ms").and_then(|text| seconds(text, 0.001)) {
        return Some(wait);
    }
    let text = header(headers, "retry-after")?;
    if let Some(wait) = seconds(text, 1.0) {
        return Some(wait);
    }
    let until = http_date(text)?;
    let now = header(headers, "date").and_then(http_date).or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(Timestamp(i64::try_from(since.as_micros()).ok()?))
    })?;
    let micros = u64::try_from(until.0 - now.0)
        .ok()
        .filter(|wait| *wait > 0)?;
    Some(Duration::from_micros(micros))
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, the one form of an HTTP date that is still written.
fn http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words = text.split_once(", ")?.1.split(' ');
    let (day, month, year, time, zone) = (
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
    );
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    (zone == "GMT")
        .then(|| Timestamp::parse(&format!("{year}-{month:02}-{day}T{time}Z")))
        .flatten()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.insert(HeaderName::from_static(name), value.parse().unwrap());
        }
        headers
    }

    fn failure(status: u16, body: &str) -> Error {
        from_status(
            status,
            &HeaderMap::new(),
            body.as_bytes(),
            &Redactor::default(),
        )
        .error
    }

    #[test]
    fn every_status_has_its_code() {
        for (status, code, retryable) in [
            (401, ErrorCode::ModelAuth, false),
            (403, ErrorCode::ModelAuth, false),
            (400, ErrorCode::ModelRequest, false),
            (404, ErrorCode::ModelRequest, false),
            (409, ErrorCode::ModelRequest, true),
            (422, ErrorCode::ModelRequest, false),
            (307, ErrorCode::ModelRequest, false),
            (408, ErrorCode::ModelTimeout, true),
            (429, ErrorCode::ModelRateLimit, true),
            (500, ErrorCode::ModelServer, true),
            (501, ErrorCode::ModelServer, true),
            (503, ErrorCode::ModelServer, true),
            (529, ErrorCode::ModelServer, true),
            (204, ErrorCode::ModelProtocol, false),
        ] {
            let error = failure(status, "");
            assert_eq!((error.code, error.retryable), (code, retryable), "{status}");
        }
    }

    #[test]
    fn code_and_text_of_every_dialect_are_shown() {
        for (body, shown) in [
            (
                r#"{"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                "the endpoint answered 400 (invalid_api_key): bad key",
            ),
            (
                r#"{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}"#,
                "the endpoint answered 400 (400): too long",
            ),
            (
                r#"{"error":{"message":"m","type":"t","code":null}}"#,
                "the endpoint answered 400 (t): m",
            ),
            (r#"{"error":"plain"}"#, "the endpoint answered 400: plain"),
            (r#"{"detail":"nope"}"#, "the endpoint answered 400: nope"),
            (
                r#"{"detail":[{"loc":["x"]}]}"#,
                r#"the endpoint answered 400: [{"loc":["x"]}]"#,
            ),
            (
                r#"[{"error":{"code":400,"message":"m","status":"S"}}]"#,
                "the endpoint answered 400 (400): m",
            ),
            (
                "<html><head><title>Bad Gateway</title>",
                "the endpoint answered 400: a page titled \"Bad Gateway\"",
            ),
            ("just text\n", "the endpoint answered 400: just text"),
            ("", "the endpoint answered 400"),
        ] {
            assert_eq!(failure(400, body).message, shown, "{body}");
        }
    }

    #[test]
    fn an_empty_account_is_not_worth_a_retry() {
        let error = failure(
            429,
            r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#,
        );
        assert_eq!(
            (error.code, error.retryable),
            (ErrorCode::ModelRateLimit, false)
        );
    }

    #[test]
    fn the_endpoint_has_the_last_word_on_retries() {
        let never = headers(&[("x-should-retry", "false")]);
        assert!(
            !from_status(503, &never, b"", &Redactor::default())
                .error
                .retryable
        );
        let always = headers(&[("x-should-retry", "true")]);
        assert!(
            from_status(400, &always, b"", &Redactor::default())
                .error
                .retryable
        );
    }

    #[test]
    fn errors_without_a_status_are_told_by_number_or_word() {
        use serde_json::json;
        for (reported, code, retryable) in [
            (json!({"code": 429}), ErrorCode::ModelRateLimit, true),
            (json!({"code": "401"}), ErrorCode::ModelAuth, false),
            (json!({"code": 400}), ErrorCode::ModelRequest, false),
            (
                json!({"type": "rate_limit_error"}),
                ErrorCode::ModelRateLimit,
                true,
            ),
            (
                json!({"code": "invalid_api_key"}),
                ErrorCode::ModelAuth,
                false,
            ),
            (
                json!({"code": "context_length_exceeded"}),
                ErrorCode::ModelRequest,
                false,
            ),
            (
                json!({"type": "server_error"}),
                ErrorCode::ModelServer,
                true,
            ),
            (json!("overloaded"), ErrorCode::ModelServer, true),
        ] {
            let error = from_reported(&reported, &Redactor::default()).error;
            assert_eq!(
                (error.code, error.retryable),
                (code, retryable),
                "{reported}"
            );
        }
    }

    #[test]
    fn the_wait_is_read_in_all_three_forms() {
        let wait = |lines: &[(&'static str, &str)]| retry_after(&headers(lines));
        assert_eq!(wait(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
        assert_eq!(
            wait(&[("retry-after", "2"), ("retry-after-ms", "150.5")]),
            Some(Duration::from_micros(150_500))
        );
        assert_eq!(
            wait(&[
                ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")
            ]),
            Some(Duration::from_secs(30))
        );
        assert!(wait(&[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")]).is_some());
        for nothing in [
            "-1",
            "0",
            "NaN",
            "inf",
            "1e300",
            "soon",
            "",
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Foo 1994 08:49:37 GMT",
        ] {
            assert_eq!(wait(&[("retry-after", nothing)]), None, "{nothing}");
        }
    }
}
