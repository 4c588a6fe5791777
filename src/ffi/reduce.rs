//! State without a runtime: one channel's reducer, and the conversion of messages.

use std::ffi::c_char;

use super::bytes::{self, Out, fawn_buf};
use super::guard;
use crate::runtime::Answer;
use crate::state::reduce;

/// Folds updates into the value of a channel, left to right, by the channel's reducer. Pure: no runtime, no thread.
///
/// `channel`, `channel_len`: the name: "messages", "sandbox", "artifacts", "viewed_images", "todos", "goal", "promoted",
/// "delegations" or "skill_context".
/// `json`, `len`: `{"existing": E, "updates": [u1, u2, ...]}` (schema "reduce_input"). For "messages"
/// also `"ids"` and `"form"`: a value that an earlier call answered is fed back with `"form": "canonical"`.
/// `out`: the merged value, which you free.
///
/// Errors: FAWN_ERR_UNKNOWN_CHANNEL; the FAWN_ERR_JSON_* and option errors for the document; the errors of the reducer
/// (-201 and below), with the path of the update at fault. A failed call changes nothing, there being nothing to change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_reduce(
    channel: *const c_char,
    channel_len: libc::size_t,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        // SAFETY: `channel` is NULL or readable for `channel_len`, by the contract of the header.
        let channel = unsafe { bytes::text("channel", channel, channel_len) }?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        reduce::reduce_document(channel, json).map(Answer::Done)
    })
}

/// Brings messages into canonical form: the layout in which threads, events and `fawn_reduce` have them. Gives no ids.
///
/// `json`, `len`: `{"messages": [...]}` in any accepted form (schema "convert_input").
/// `out`: the array of canonical messages (schema "convert_answer"), which you free.
///
/// Errors: as `fawn_reduce` for channel "messages".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_messages_convert(
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        reduce::convert_document(json).map(Answer::Done)
    })
}
