//! Failures of a constructor: all wrong members at once, in the order of their declaration.

use crate::protocol::error::{Error, ErrorCode};

/// One wrong member.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// [`ErrorCode::MessageMember`] when it is missing, [`ErrorCode::MessageInvalid`] when it has the wrong type or value.
    pub code: ErrorCode,
    /// JSON pointer into the message.
    pub path: String,
    /// What is wrong.
    pub what: String,
}

/// Everything that is wrong with a message. Never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Failures(pub Vec<Failure>);

impl Failures {
    /// One failure alone.
    pub fn one(code: ErrorCode, path: impl Into<String>, what: impl Into<String>) -> Self {
        Failures(vec![Failure {
            code,
            path: path.into(),
            what: what.into(),
        }])
    }
}

impl From<Failures> for Error {
    /// The first failure is the error, the others are its causes, each with its pointer into the message.
    fn from(failures: Failures) -> Error {
        let mut failures = failures.0.into_iter();
        let Some(first) = failures.next() else {
            return Error::new(ErrorCode::MessageInvalid, "a message is not valid");
        };
        let mut error = Error::at(first.code, first.path, first.what);
        error.cause = failures
            .map(|failure| format!("{}: {}", failure.path, failure.what))
            .collect();
        error
    }
}
