//! Answers to host calls: what a host says when the library asked it something.

use std::ffi::c_char;

use super::bytes::{self, Out, fawn_buf};
use super::runtime::fawn_runtime;
use super::{guard, handle};
use crate::runtime::Runtime;

/// Adds to the answer of a host call before it is finished: text of a model as it comes, progress of a tool. The call of a
/// middleware takes nothing but its verdict (FAWN_ERR_UNSUPPORTED).
///
/// `call_id`: from the "host_call" event. `json`, `len`: the part (schema "call_part").
/// FAWN_GONE: the call is over (cancelled, or its deadline passed); stop working on it. `err`: the error object on
/// failure.
///
/// May be called from any OS thread, many times; parts of one call arrive in the order of the calls here.
/// Errors: FAWN_ERR_HANDLE, also for a `call_id` that was never given; FAWN_ERR_BEHIND if the run has not yet taken what the
/// call emitted before (wait, then try again); the FAWN_ERR_JSON_* and option errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_call_emit(
    runtime: fawn_runtime,
    call_id: u64,
    json: *const c_char,
    len: libc::size_t,
    err: *mut fawn_buf,
) -> i32 {
    // SAFETY: `err` is NULL or writable, by the contract of the header.
    guard::act(unsafe { Out::new(err) }, || {
        let runtime = handle::find::<Runtime>(runtime)?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        runtime.emit(call_id, json)
    })
}

/// Answers a host call, now or in an hour, from any OS thread.
///
/// `call_id`: from the "host_call" event. `json`, `len`: `{"ok": ...}` or `{"error": {"message": "..."}}` (schema
/// "call_answer"). What stands under "ok" depends on the kind of the call: a tool's answer, a model's reply, or, when you are
/// asked as a middleware, a verdict (schema "middleware_verdict") on what "args" says (schema "middleware_question"). `err`:
/// the error object on failure; the call is still open then, so that an answer that does not fit can be mended.
///
/// FAWN_GONE: it was answered before, was cancelled, or its deadline passed. Of two answers at the same time one gets
/// FAWN_OK. Errors: FAWN_ERR_HANDLE, also for a `call_id` that was never given; the FAWN_ERR_JSON_* and option errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_call_finish(
    runtime: fawn_runtime,
    call_id: u64,
    json: *const c_char,
    len: libc::size_t,
    err: *mut fawn_buf,
) -> i32 {
    // SAFETY: `err` is NULL or writable, by the contract of the header.
    guard::act(unsafe { Out::new(err) }, || {
        let runtime = handle::find::<Runtime>(runtime)?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        runtime.finish(call_id, json)
    })
}
