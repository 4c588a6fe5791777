//! Status numbers: the expected outcomes, the negative numbers of errors, and their names in C.

use std::ffi::c_char;

pub use crate::protocol::error::OUTCOMES;

use crate::protocol::error::ErrorCode;
use crate::runtime::Answer;

/// Done.
pub const FAWN_OK: i32 = 0;
/// The time was up first.
pub const FAWN_TIMEOUT: i32 = 1;
/// There will be no more.
pub const FAWN_CLOSED: i32 = 2;
/// `fawn_queue_interrupt` ended the wait.
pub const FAWN_INTERRUPTED: i32 = 3;
/// What was asked about is over.
pub const FAWN_GONE: i32 = 4;

/// The status of an answer.
pub(super) fn of_answer<T>(answer: &Answer<T>) -> i32 {
    match answer {
        Answer::Done(_) => FAWN_OK,
        Answer::TimedOut => FAWN_TIMEOUT,
        Answer::Closed => FAWN_CLOSED,
        Answer::Interrupted => FAWN_INTERRUPTED,
        Answer::Gone => FAWN_GONE,
    }
}

/// Longest name with its final NUL.
const NAME_BYTES: usize = 48;

/// A status and its name in C, NUL-terminated.
struct Named {
    status: i32,
    name: [u8; NAME_BYTES],
}

/// All statuses. Made by the compiler, so that looking one up takes no lock and works in a forked child.
static NAMES: [Named; OUTCOMES.len() + ErrorCode::ALL.len()] = names();

/// `prefix` followed by `name` in capitals.
const fn c_name(prefix: &str, name: &str) -> [u8; NAME_BYTES] {
    let (prefix, name) = (prefix.as_bytes(), name.as_bytes());
    assert!(prefix.len() + name.len() < NAME_BYTES, "a name is too long");
    let mut text = [0; NAME_BYTES];
    let mut at = 0;
    while at < prefix.len() {
        text[at] = prefix[at];
        at += 1;
    }
    while at < prefix.len() + name.len() {
        text[at] = name[at - prefix.len()].to_ascii_uppercase();
        at += 1;
    }
    text
}

const fn names() -> [Named; OUTCOMES.len() + ErrorCode::ALL.len()] {
    let mut all = [const {
        Named {
            status: 0,
            name: [0; NAME_BYTES],
        }
    }; OUTCOMES.len() + ErrorCode::ALL.len()];
    let mut at = 0;
    while at < OUTCOMES.len() {
        all[at].status = OUTCOMES[at].0;
        all[at].name = c_name("", OUTCOMES[at].1);
        at += 1;
    }
    while at < all.len() {
        let code = ErrorCode::ALL[at - OUTCOMES.len()];
        all[at].status = code.status();
        all[at].name = c_name("FAWN_ERR_", code.name());
        at += 1;
    }
    all
}

/// The name of a status in C, as static NUL-terminated text; `FAWN_UNKNOWN` for a number that is none.
pub(super) fn name(status: i32) -> *const c_char {
    let found = NAMES.iter().find(|named| named.status == status);
    match found {
        Some(named) => named.name.as_ptr().cast(),
        None => c"FAWN_UNKNOWN".as_ptr(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn text(status: i32) -> &'static str {
        // SAFETY: `name` answers static NUL-terminated text.
        unsafe { CStr::from_ptr(name(status)) }.to_str().unwrap()
    }

    #[test]
    fn every_status_has_the_name_that_the_header_gives_it() {
        for (status, name, _) in OUTCOMES {
            assert_eq!(text(*status), *name);
        }
        for (answer, name) in [
            (Answer::Done(()), "FAWN_OK"),
            (Answer::TimedOut, "FAWN_TIMEOUT"),
            (Answer::Closed, "FAWN_CLOSED"),
            (Answer::Interrupted, "FAWN_INTERRUPTED"),
            (Answer::Gone, "FAWN_GONE"),
        ] {
            assert_eq!(text(of_answer(&answer)), name);
        }
        for code in ErrorCode::ALL {
            assert_eq!(
                text(code.status()),
                format!("FAWN_ERR_{}", code.name().to_uppercase())
            );
        }
        for unknown in [i32::MIN, -1, 5, i32::MAX] {
            assert_eq!(text(unknown), "FAWN_UNKNOWN");
        }
    }
}
