//! What the library says about itself: versions, names of statuses, schemas, living handles; and the release of buffers.

use std::ffi::c_char;

use super::bytes::{self, Out, fawn_buf};
use super::{buffers, guard, handle, status};
use crate::agent;
use crate::protocol::describe;
use crate::runtime::Answer;

/// The version of the ABI that the library serves. A program that was compiled with another `FAWN_ABI_VERSION` is
/// refused by `fawn_runtime_new`, with a message that says both numbers.
///
/// Never fails, takes no lock, may be called in a forked child.
#[unsafe(no_mangle)]
pub extern "C" fn fawn_abi_version() -> u32 {
    guard::anywhere(|| describe::ABI_VERSION)
}

/// The version of the library, as static text: "0.1.0". Not to be freed.
///
/// Never fails, takes no lock, may be called in a forked child.
#[unsafe(no_mangle)]
pub extern "C" fn fawn_version() -> *const c_char {
    guard::anywhere(|| concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast())
}

/// The name of a status as it stands in this header, as static text: "FAWN_ERR_HANDLE". Not to be freed.
/// "FAWN_UNKNOWN" for a number that this version does not know.
///
/// Never fails, takes no lock, may be called in a forked child.
#[unsafe(no_mangle)]
pub extern "C" fn fawn_status_name(status: i32) -> *const c_char {
    guard::anywhere(|| status::name(status))
}

/// Answers questions about the library, as JSON. Needs no runtime.
///
/// `what`, `len`: the topic, plain text rather than JSON:
/// - "" or "index": the topics;
/// - "build": version, ABI, features and target of this build;
/// - "errors": the closed list of error codes with status and meaning, and the outcomes that are no errors;
/// - "schemas": the names of the JSON schemas, each with a sentence;
/// - "schema/NAME": one JSON Schema (draft 2020-12);
/// - "handles": the living handles with their kinds, and how many buffers are alive.
///
/// `out`: the answer, which you free.
///
/// FAWN_ERR_UNKNOWN_VARIANT if there is no such topic; the message names those that exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_describe(
    what: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        // SAFETY: `what` is NULL or readable for `len`, by the contract of the header.
        let what = unsafe { bytes::text("what", what, len) }?;
        #[cfg(feature = "test-panics")]
        if let Some(message) = what.strip_prefix("panic:") {
            panic!("{message}");
        }
        #[cfg(feature = "test-panics")]
        if let Some(point) = what.strip_prefix("arm:") {
            crate::runtime::inject::arm(point);
            return Ok(Answer::Done("{}".to_owned()));
        }
        let elsewhere = |topic: &str| {
            if topic == "middleware" {
                return agent::middleware_catalog().to_string();
            }
            let (count, bytes) = buffers::living();
            let handles = handle::living(None);
            format!("{{\"handles\":{handles},\"buffers\":{{\"count\":{count},\"bytes\":{bytes}}}}}")
        };
        describe::describe(what, elsewhere).map(Answer::Done)
    })
}

/// Frees a buffer and empties it.
///
/// NULL, an empty buffer, a buffer that was freed, and a copy of one are harmless: `owner` is checked. So is calling it
/// from inside a wake-up function. Two threads may not free the same `fawn_buf` struct at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_buf_free(buf: *mut fawn_buf) {
    guard::anywhere(|| {
        // SAFETY: `buf` is NULL, or a buffer that nobody else uses now, by the contract of the header.
        let buf = unsafe { Out::new(buf) }.take();
        // A forked child has its struct emptied; the memory goes when the child does.
        guard::release_memory(|| buffers::give_back(buf));
    });
}
