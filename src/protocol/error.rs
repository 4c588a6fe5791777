//! Error codes and the error object that a host receives.

use serde::Serialize;

/// Declares the closed list of error codes once: variant, status number, name, meaning.
macro_rules! error_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $status:literal, $name:literal;)+) => {
        /// Every way a call, a run or a reducer can fail. Numbers are grouped with gaps and never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl ErrorCode {
            /// All codes, in the order of their declaration.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)+];

            /// The negative status number of the C ABI.
            pub const fn status(self) -> i32 {
                match self { $(ErrorCode::$variant => $status,)+ }
            }

            /// The stable snake_case name, the `code` member of an error object.
            pub const fn name(self) -> &'static str {
                match self { $(ErrorCode::$variant => $name,)+ }
            }

            /// What the code means, in a sentence or two.
            pub fn meaning(self) -> &'static str {
                match self { $(ErrorCode::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

error_codes! {
    /// A pointer is NULL where one is needed, or a length does not fit its pointer.
    Argument = -101, "argument";
    /// The handle was never made by this library, is of another kind, or was freed.
    Handle = -102, "handle";
    /// Text is not valid UTF-8.
    NotUtf8 = -103, "not_utf8";
    /// The caller was built against an ABI that this library does not serve.
    Abi = -104, "abi";
    /// The process was forked after the library was used; the child may not use it.
    Forked = -105, "forked";
    /// The library caught a panic of its own. The process and all other handles go on.
    Panic = -106, "panic";
    /// The runtime was shut down.
    Closed = -107, "closed";
    /// The call was made from inside a wake-up hook.
    WrongThread = -108, "wrong_thread";
    /// Input is larger than 1 GiB.
    TooLarge = -109, "too_large";
    /// What was asked is not available in this version or build.
    Unsupported = -110, "unsupported";

    /// Text is not JSON.
    JsonSyntax = -120, "json_syntax";
    /// JSON is nested deeper than 128.
    JsonDepth = -121, "json_depth";
    /// An object has a member that is not known here.
    UnknownMember = -122, "unknown_member";
    /// A value has the wrong JSON type.
    WrongType = -123, "wrong_type";
    /// A value is outside its bounds.
    OutOfRange = -124, "out_of_range";
    /// A required member is missing.
    MissingMember = -125, "missing_member";
    /// A name is not one of the known ones.
    UnknownVariant = -126, "unknown_variant";
    /// There is no channel of this name.
    UnknownChannel = -127, "unknown_channel";
    /// Members contradict each other.
    Conflict = -128, "conflict";

    /// A write to `messages` is null.
    NullWrite = -201, "null_write";
    /// A message has no role or no content member.
    MessageIncomplete = -202, "message_incomplete";
    /// A message's role or type is not known.
    UnknownRole = -203, "unknown_role";
    /// A value is not a message in any accepted form.
    NotAMessage = -204, "not_a_message";
    /// A member of a message has the wrong type.
    MessageInvalid = -205, "message_invalid";
    /// A member that a message or one of its tool calls needs is missing.
    MessageMember = -206, "message_member";
    /// The arguments text of a tool call is not JSON.
    ArgumentsSyntax = -207, "arguments_syntax";
    /// A message or one of its tool calls has a member that it may not have.
    MessageExtra = -208, "message_extra";
    /// The removal of a message names an id that is not in the thread.
    UnknownMessageId = -210, "unknown_message_id";
    /// Two writes put different sandboxes on one thread.
    SandboxConflict = -211, "sandbox_conflict";
    /// An entry written to a channel lacks a member that its reducer needs.
    EntryMember = -212, "entry_member";
    /// A value written to a channel has a type that its reducer cannot take.
    EntryType = -213, "entry_type";
    /// Two writes of one step meet in a channel that takes one.
    ConflictingWrites = -214, "conflicting_writes";

    /// An assembly names a model or provider that is not configured.
    UnknownModel = -301, "unknown_model";
    /// An assembly is inconsistent: two tools of one name, a schema that is none, a file that cannot be read.
    AssemblyInvalid = -302, "assembly_invalid";
    /// There is no custom agent of this name.
    UnknownAgent = -303, "unknown_agent";
    /// The authorization does not let this user have what the assembly needs.
    NotAuthorized = -304, "not_authorized";

    /// The thread has a run in flight.
    ThreadBusy = -401, "thread_busy";
    /// There is no such checkpoint on this thread.
    UnknownCheckpoint = -402, "unknown_checkpoint";
    /// The store failed to read or write.
    Store = -403, "store";
    /// What the store holds cannot be read.
    StoreCorrupt = -404, "store_corrupt";
    /// Another process changed the thread since it was opened.
    ThreadStale = -405, "thread_stale";

    /// The run used up its steps.
    RecursionLimit = -501, "recursion_limit";
    /// The run was cancelled.
    Cancelled = -502, "cancelled";
    /// A hook of a middleware failed.
    Middleware = -503, "middleware";
    /// The assembly asks the host, but nobody listens: the run was started with queue 0.
    NoQueue = -504, "no_queue";
    /// A host call was not answered before its deadline.
    DeadlineExceeded = -505, "deadline_exceeded";
    /// The run's queue was freed while it was needed.
    QueueClosed = -506, "queue_closed";
    /// What was handed in before has not been taken yet; try again later.
    Behind = -507, "behind";

    /// The model endpoint refused the credentials.
    ModelAuth = -601, "model_auth";
    /// The model endpoint refused the request.
    ModelRequest = -602, "model_request";
    /// The model endpoint asks to slow down.
    ModelRateLimit = -603, "model_rate_limit";
    /// The model endpoint failed or is overloaded.
    ModelServer = -604, "model_server";
    /// The model endpoint could not be reached, or the connection broke.
    ModelConnection = -605, "model_connection";
    /// The model endpoint did not answer in time.
    ModelTimeout = -606, "model_timeout";
    /// The reply is not what the wire format says.
    ModelProtocol = -607, "model_protocol";
    /// The reply's stream ended before its end mark.
    ModelTruncated = -608, "model_truncated";
    /// A scripted model has no reply for this turn.
    ScriptExhausted = -609, "script_exhausted";
    /// The host answered its model call with an error.
    ModelHost = -610, "model_host";
    /// The model was not asked: its calls have failed so often of late that the circuit breaker waits a while.
    ModelUnavailable = -611, "model_unavailable";
    /// The model gave no answer that can be shown; a message of the thread stands in for it.
    ModelNoAnswer = -612, "model_no_answer";

    /// A broken invariant of the library.
    Internal = -901, "internal";
}

/// The statuses that are no errors: number, name in C, meaning. Numbers are never reused.
pub const OUTCOMES: &[(i32, &str, &str)] = &[
    (0, "FAWN_OK", "Done."),
    (
        1,
        "FAWN_TIMEOUT",
        "The time was up before there was an answer. Nothing was lost: ask again.",
    ),
    (
        2,
        "FAWN_CLOSED",
        "The queue is empty and nothing will come any more: it was freed, or its runtime was shut down.",
    ),
    (
        3,
        "FAWN_INTERRUPTED",
        "fawn_queue_interrupt ended the wait.",
    ),
    (
        4,
        "FAWN_GONE",
        "The host call is over: it was answered already, cancelled, or its deadline passed.",
    ),
];

/// One failure: code, message, where in the caller's input, and what caused it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorPayload {
    /// Name of the [`ErrorCode`].
    pub code: &'static str,
    /// Status number of the code.
    pub status: i32,
    /// What went wrong, in words.
    pub message: String,
    /// JSON pointer into what the caller sent; absent when the input is not at fault. One of more than 1,000 characters is cut
    /// off there, and ends with `…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// The HTTP status that an endpoint answered with; absent when none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The endpoint's own short name for what went wrong; absent when it gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
    /// What lay behind it, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cause: Vec<String>,
}

/// The error every layer above the reducers speaks: a code with its facts.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind of failure.
    pub code: ErrorCode,
    /// What went wrong, in words.
    pub message: String,
    /// JSON pointer into the caller's input.
    pub path: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// What a model endpoint itself said, when it was the endpoint that failed.
    pub endpoint: Option<Box<EndpointFailure>>,
    /// What lay behind it, outermost first.
    pub cause: Vec<String>,
}

/// A failed call in the endpoint's own terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointFailure {
    /// The HTTP status, when it is one that says no success.
    pub status: Option<u16>,
    /// The endpoint's short name for what went wrong (`insufficient_quota`, `overloaded_error`, a number), without
    /// secrets and at most [`MAX_PROVIDER_CODE_CHARS`] characters.
    pub code: Option<String>,
}

/// Most characters of a path in an [`ErrorPayload`].
const MAX_PATH_CHARS: usize = 1000;

/// Most characters of [`EndpointFailure::code`].
pub const MAX_PROVIDER_CODE_CHARS: usize = 100;

impl Error {
    /// An error without a place in the input.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error {
            code,
            message: message.into(),
            path: None,
            retryable: false,
            endpoint: None,
            cause: Vec::new(),
        }
    }

    /// An error at a JSON pointer of the input.
    pub fn at(code: ErrorCode, path: impl Into<String>, message: impl Into<String>) -> Self {
        Error {
            path: Some(path.into()),
            ..Error::new(code, message)
        }
    }

    /// Puts the error below `prefix`, for input that is part of a larger document.
    pub fn below(mut self, prefix: &str) -> Self {
        self.path = Some(match self.path {
            Some(path) => format!("{prefix}{path}"),
            None => prefix.to_owned(),
        });
        self
    }

    /// Marks the failure as one that may pass.
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Adds what lay behind the failure.
    pub fn caused_by(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause.push(cause.to_string());
        self
    }

    /// Says what a model endpoint itself said.
    pub fn said(mut self, status: Option<u16>, code: Option<String>) -> Self {
        self.endpoint = Some(Box::new(EndpointFailure { status, code }));
        self
    }

    /// The HTTP status of an endpoint's refusal.
    pub fn http_status(&self) -> Option<u16> {
        self.endpoint.as_ref()?.status
    }

    /// The endpoint's own short name for what went wrong.
    pub fn provider_code(&self) -> Option<&str> {
        self.endpoint.as_ref()?.code.as_deref()
    }

    /// The error object of the ABI.
    pub fn payload(&self) -> ErrorPayload {
        ErrorPayload {
            code: self.code.name(),
            status: self.code.status(),
            message: self.message.clone(),
            path: self.path.as_deref().map(clipped),
            retryable: self.retryable,
            http_status: self.http_status(),
            provider_code: self.provider_code().map(str::to_owned),
            cause: self.cause.clone(),
        }
    }
}

/// As much of a path as is told: the names in it are the caller's, and as long as they like.
fn clipped(path: &str) -> String {
    match path.char_indices().nth(MAX_PATH_CHARS) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_in_part_when_names_in_it_are_endless() {
        let told = |name: &str| {
            let error = Error::at(ErrorCode::UnknownMember, name, "unknown member");
            error.below("/models/0").payload().path.unwrap_or_default()
        };
        assert_eq!(told("/ä"), "/models/0/ä");
        let long = told(&format!("/{}", "ä".repeat(1 << 20)));
        assert!(long.starts_with("/models/0/ää") && long.ends_with("ä…"));
        assert_eq!(long.chars().count(), MAX_PATH_CHARS + 1);
    }

    #[test]
    fn statuses_and_names_are_unique_and_negative() {
        let mut seen = std::collections::HashSet::new();
        for code in ErrorCode::ALL {
            assert!(code.status() < 0);
            assert!(
                seen.insert(code.status().to_string()),
                "{} twice",
                code.status()
            );
            assert!(seen.insert(code.name().to_owned()), "{} twice", code.name());
            assert!(!code.meaning().is_empty());
        }
    }
}
