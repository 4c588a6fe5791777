//! `fawn_thread`: one conversation and its state.

use std::ffi::c_char;

use super::bytes::{self, Out, fawn_buf};
use super::guard;
use super::handle::{self, Held};
use super::runtime::fawn_runtime;
use crate::runtime::{Answer, Runtime, Thread};

/// A thread: one conversation and its state. (An OS thread is always written out.) 0 is none.
///
/// Functions: fawn_thread_open, _update, _state, _history, _goal, _free.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type fawn_thread = u64;

/// Opens a thread of the runtime's store, or begins one.
///
/// `json`, `len`: which (schema "thread_open"); `{}` begins a new one.
/// `out`: the handle, which you free with fawn_thread_free; 0 on failure. `err`: the error object on failure.
///
/// Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_ARGUMENT if `out` is NULL; the FAWN_ERR_JSON_* and option errors;
/// FAWN_ERR_STORE, FAWN_ERR_STORE_CORRUPT.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn fawn_thread_open(
    runtime: fawn_runtime,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_thread,
    err: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    let out = unsafe { Out::new(out) };
    // SAFETY: `err` is NULL or writable, by the contract of the header.
    let err = unsafe { Out::new(err) };
    guard::make(out, err, || {
        out.required()?;
        let object = handle::find::<Runtime>(runtime)?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        Ok(Held::new(object.open_thread(json)?, runtime))
    })
}

/// Writes to the channels of a thread, as one step and one checkpoint: all of it or nothing. Channel by name, in "values", or
/// several such sets in order in "writes": {"values":{"title":"Trip","messages":[{"role":"user","content":"Hi"}]}}. Each value
/// goes through its channel's reducer: messages are added, those of a known id replaced. Nothing runs; a run without an input
/// goes on from there.
///
/// `json`, `len`: the writes (schema "thread_update"). `out`: the new checkpoint
/// (schema "thread_update_answer"), which you free.
///
/// Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_THREAD_BUSY while a run is in flight; the FAWN_ERR_JSON_* and option
/// errors; the errors of the reducers (-201 and below) with the path of the write; FAWN_ERR_STORE, FAWN_ERR_THREAD_STALE.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn fawn_thread_update(
    thread: fawn_thread,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        let thread = handle::find::<Thread>(thread)?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        thread.update(json).map(Answer::Done)
    })
}

/// Reads the state of a thread, as of its newest checkpoint or of a named one. What another process has written since this
/// one opened the thread is seen once a write has failed with FAWN_ERR_THREAD_STALE, or by a named checkpoint.
///
/// `json`, `len`: what to read (schema "thread_state_query"); `{}` reads all channels of the newest.
/// `out`: the channels' values and the checkpoint they are of (schema "thread_state"), which you free.
///
/// Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED, FAWN_ERR_UNKNOWN_CHECKPOINT; the FAWN_ERR_JSON_* and option errors;
/// FAWN_ERR_STORE, FAWN_ERR_STORE_CORRUPT. May be called while a run is in flight.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_thread_state(
    thread: fawn_thread,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        let thread = handle::find::<Thread>(thread)?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        thread.state(json).map(Answer::Done)
    })
}

/// Lists the checkpoints of a thread, newest first.
///
/// `json`, `len`: which and how many (schema "thread_history_query"); `{}` is all.
/// `out`: the list (schema "thread_history"), which you free.
///
/// Errors: as fawn_thread_state. May be called while a run is in flight.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_thread_history(
    thread: fawn_thread,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        let thread = handle::find::<Thread>(thread)?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        thread.history(json).map(Answer::Done)
    })
}

/// Reads, sets or clears the goal of a thread. Runs on the thread, of whichever assembly, judge an active goal after each turn
/// and add turns of their own until it is reached, blocked or out of turns (events "goal").
///
/// A goal is cleared by this alone: what fawn_thread_update writes to the channel "goal" only ever replaces it, and null
/// keeps it.
///
/// `json`, `len`: `{"op": "get"}`, `{"op": "set", "objective": "..."}`, `{"op": "clear"}`, or `{"op": "command",
/// "argument": "..."}` for what a user wrote behind "/goal" (schema "goal_op").
/// `out`: what was done, the goal, and the newest checkpoint (schema "goal_answer"), which you free.
///
/// Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_OUT_OF_RANGE for an objective that is blank or too long; the
/// FAWN_ERR_JSON_* and option errors; FAWN_ERR_STORE, FAWN_ERR_STORE_CORRUPT. For set and clear also FAWN_ERR_THREAD_BUSY
/// while a run is in flight, FAWN_ERR_CONFLICT if another checkpoint was expected (FAWN_ERR_UNKNOWN_CHECKPOINT if what was
/// expected is no checkpoint's id), FAWN_ERR_THREAD_STALE; get may be called while a run is in flight.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn fawn_thread_goal(
    thread: fawn_thread,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        let thread = handle::find::<Thread>(thread)?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        thread.goal(json).map(Answer::Done)
    })
}

/// Frees a thread's handle. 0 and handles that are none do nothing. What the store holds stays; a run in flight goes on.
#[unsafe(no_mangle)]
pub extern "C" fn fawn_thread_free(thread: fawn_thread) {
    guard::release(thread, |thread: Held<Thread>| thread.close());
}
