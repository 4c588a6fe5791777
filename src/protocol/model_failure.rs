//! Why a model call failed, in classes: by our own codes first, then by the words of the endpoint.
//!
//! Source: DeerFlow `LLMErrorHandlingMiddleware`, MW-LLM-1. Its order is kept: quota, auth, burst rate, what passes, busy, the
//! rest. Where our code says that the text is our own, no words are looked for in it: it may name an endpoint, and an
//! endpoint may be named anything.

use super::error::{Error, ErrorCode};

/// Why a model call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The account has nothing left.
    Quota,
    /// The credentials are refused, or do not reach that far.
    Auth,
    /// The rate of requests grew too fast.
    BurstRate,
    /// Something that passes by itself: a broken connection, a timeout, a server that failed, a limit of the rate.
    Transient,
    /// The endpoint says that it has too much to do.
    Busy,
    /// Anything else.
    Generic,
}

impl FailureReason {
    /// Name in events and messages.
    pub const fn name(self) -> &'static str {
        match self {
            FailureReason::Quota => "quota",
            FailureReason::Auth => "auth",
            FailureReason::BurstRate => "burst_rate",
            FailureReason::Transient => "transient",
            FailureReason::Busy => "busy",
            FailureReason::Generic => "generic",
        }
    }

    /// The class of a failure.
    pub fn of(error: &Error) -> FailureReason {
        let passes = match error.retryable {
            true => FailureReason::Transient,
            false => FailureReason::Generic,
        };
        if !speaks_for_itself(error.code) {
            return passes;
        }
        let said = format!(
            "{} {}",
            error.message,
            error.provider_code().unwrap_or_default()
        )
        .to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let status = error.http_status();
        if status == Some(402) || says(QUOTA) {
            FailureReason::Quota
        } else if error.code == ErrorCode::ModelAuth || says(AUTH) {
            FailureReason::Auth
        } else if says(BURST_RATE) {
            FailureReason::BurstRate
        } else if matches!(
            error.code,
            ErrorCode::ModelServer | ErrorCode::ModelRateLimit
        ) || status.is_some_and(|status| PASSING.contains(&status))
        {
            FailureReason::Transient
        } else if says(BUSY) {
            FailureReason::Busy
        } else {
            passes
        }
    }

    /// Whether a failure of this class may pass, so that the same model is worth another attempt.
    ///
    /// Where the endpoint or the host has said that it will not, that holds, with one exception: gateways report an upstream
    /// that is busy as a bad request, and then the words count.
    pub fn may_pass(self, error: &Error) -> bool {
        match self {
            FailureReason::Quota | FailureReason::Auth | FailureReason::Generic => false,
            FailureReason::Transient => error.retryable,
            FailureReason::BurstRate | FailureReason::Busy => {
                error.retryable || error.code == ErrorCode::ModelRequest
            }
        }
    }
}

/// Whether an error is a model's failure, which another attempt or another model may mend. What ends a run whatever the
/// model, such as a queue that was freed, is not.
pub const fn is_of_the_model(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ModelAuth
            | ErrorCode::ModelRequest
            | ErrorCode::ModelRateLimit
            | ErrorCode::ModelServer
            | ErrorCode::ModelConnection
            | ErrorCode::ModelTimeout
            | ErrorCode::ModelProtocol
            | ErrorCode::ModelTruncated
            | ErrorCode::ModelHost
            | ErrorCode::ScriptExhausted
            | ErrorCode::DeadlineExceeded
    )
}

/// Whether the text of an error is that of the endpoint or the host, and not our own.
const fn speaks_for_itself(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ModelAuth
            | ErrorCode::ModelRequest
            | ErrorCode::ModelRateLimit
            | ErrorCode::ModelServer
            | ErrorCode::ModelHost
    )
}

/// Statuses of what passes, whatever the code.
const PASSING: &[u16] = &[408, 409, 425, 429, 500, 502, 503, 504];

// Words in lower case, as they stand in codes and texts of endpoints, in English and in Chinese.

const QUOTA: &[&str] = &[
    "quota",
    "billing",
    "credit",
    "payment",
    "insufficient balance",
    "insufficient_balance",
    "余额不足",
    "额度不足",
    "超出限额",
    "配额",
    "欠费",
];

const AUTH: &[&str] = &[
    "authentication",
    "unauthorized",
    "unauthorised",
    "invalid api key",
    "invalid_api_key",
    "incorrect api key",
    "permission",
    "forbidden",
    "access denied",
    "无权",
    "未授权",
    "鉴权失败",
];

const BURST_RATE: &[&str] = &[
    "limit_burst_rate",
    "burst_rate",
    "burst rate",
    "burst-rate",
    "increased too quickly",
    "slope limit",
    "增长过快",
    "突发流量",
];

const BUSY: &[&str] = &[
    "server busy",
    "server is busy",
    "temporarily unavailable",
    "upstream request failed",
    "try again later",
    "please try again",
    "please retry",
    "overloaded",
    "high demand",
    "rate limit",
    "负载较高",
    "服务繁忙",
    "系统繁忙",
    "稍后重试",
    "稍后再试",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: ErrorCode, retryable: bool, message: &str) -> Error {
        let mut error = Error::new(code, message);
        error.retryable = retryable;
        error
    }

    fn judged(error: &Error) -> (&'static str, bool) {
        let reason = FailureReason::of(error);
        (reason.name(), reason.may_pass(error))
    }

    #[test]
    fn llm_1_our_codes_alone_are_enough() {
        for (code, retryable, reason) in [
            (ErrorCode::ModelAuth, false, "auth"),
            (ErrorCode::ModelAuth, true, "auth"),
            (ErrorCode::ModelRequest, false, "generic"),
            (ErrorCode::ModelRequest, true, "transient"),
            (ErrorCode::ModelRateLimit, true, "transient"),
            (ErrorCode::ModelServer, true, "transient"),
            (ErrorCode::ModelServer, false, "transient"),
            (ErrorCode::ModelConnection, true, "transient"),
            (ErrorCode::ModelConnection, false, "generic"),
            (ErrorCode::ModelTimeout, true, "transient"),
            (ErrorCode::ModelTruncated, true, "transient"),
            (ErrorCode::ModelProtocol, true, "transient"),
            (ErrorCode::ModelProtocol, false, "generic"),
            (ErrorCode::ModelHost, true, "transient"),
            (ErrorCode::ModelHost, false, "generic"),
            (ErrorCode::ScriptExhausted, false, "generic"),
            (ErrorCode::DeadlineExceeded, false, "generic"),
        ] {
            let error = error(code, retryable, "x");
            let passes = retryable && reason == "transient";
            assert_eq!(judged(&error), (reason, passes), "{code:?} {retryable}");
        }
    }

    #[test]
    fn llm_1_words_of_both_languages_are_understood_in_their_order() {
        let request = |text| error(ErrorCode::ModelRequest, false, text);
        for (text, reason, passes) in [
            ("You exceeded your current QUOTA", "quota", false),
            ("Your credit balance is too low", "quota", false),
            ("Insufficient Balance", "quota", false),
            ("账户余额不足", "quota", false),
            ("您已欠费，请充值", "quota", false),
            ("Incorrect API key provided", "auth", false),
            ("Permission denied", "auth", false),
            ("该令牌无权访问", "auth", false),
            (
                "Request rate increased too quickly, slow down",
                "burst_rate",
                true,
            ),
            ("请求速率增长过快", "burst_rate", true),
            (
                "The server is overloaded, please try again later",
                "busy",
                true,
            ),
            ("upstream request failed", "busy", true),
            ("当前服务繁忙，请稍后重试", "busy", true),
            ("messages.3: field required", "generic", false),
            // The earlier class counts.
            ("billing is forbidden", "quota", false),
            ("forbidden: rate limit", "auth", false),
            ("burst rate limit, please retry", "burst_rate", true),
        ] {
            assert_eq!(judged(&request(text)), (reason, passes), "{text}");
        }
        // The endpoint's short name counts like its words.
        let named = request("slow down").said(Some(429), Some("limit_burst_rate".to_owned()));
        assert_eq!(judged(&named).0, "burst_rate");
    }

    #[test]
    fn llm_1_statuses_tell_where_words_do_not() {
        for status in [408, 409, 425, 429, 500, 502, 503, 504] {
            let error = error(ErrorCode::ModelRequest, true, "x").said(Some(status), None);
            assert_eq!(judged(&error), ("transient", true), "{status}");
        }
        let paid = error(ErrorCode::ModelRequest, false, "x").said(Some(402), None);
        assert_eq!(judged(&paid), ("quota", false));
        // A limit of the rate that speaks of the quota is one of the account.
        let error = error(ErrorCode::ModelRateLimit, true, "quota exceeded").said(Some(429), None);
        assert_eq!(judged(&error), ("quota", false));
    }

    #[test]
    fn a_no_of_the_endpoint_holds_and_text_of_ours_is_not_searched() {
        let busy = error(ErrorCode::ModelHost, false, "overloaded, try again later");
        assert_eq!(judged(&busy), ("busy", false));
        let burst = error(ErrorCode::ModelRateLimit, false, "burst rate");
        assert_eq!(judged(&burst), ("burst_rate", false));
        let named = error(
            ErrorCode::ModelConnection,
            true,
            "no connection to https://billing.permission.example within 5 ms",
        );
        assert_eq!(judged(&named), ("transient", true));
    }
}
