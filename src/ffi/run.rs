//! `fawn_run`: one execution on a thread.

use std::ffi::c_char;

use super::assembly::fawn_assembly;
use super::bytes::{self, Out, fawn_buf};
use super::handle::{self, Held};
use super::queue::{self, fawn_queue};
use super::thread::fawn_thread;
use super::{guard, wait};
use crate::runtime::{Answer, Assembly, Run, Thread};

/// A run: one execution of an assembly on a thread, from request to result. 0 is none.
///
/// Functions: fawn_run_start, _submit, _wait, _free.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type fawn_run = u64;

/// Starts a run. Returns as soon as the run is admitted; everything else comes through the queue.
///
/// `assembly`, `thread`, `queue`: of one runtime. `queue` 0: nobody listens, the result is had by fawn_run_wait; refused
/// with FAWN_ERR_NO_QUEUE if the assembly calls the host.
/// `json`, `len`: the request (schema "run_request").
/// `out`: the handle, which you free with fawn_run_free; 0 on failure. NULL: you do not want one, the run goes by itself.
/// `err`: the error object on failure.
///
/// Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_THREAD_BUSY if another run is in flight and the request does not
/// say what to do then; FAWN_ERR_UNKNOWN_CHECKPOINT; the FAWN_ERR_JSON_* and option errors; the errors of the reducer for
/// the input's messages.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn fawn_run_start(
    assembly: fawn_assembly,
    thread: fawn_thread,
    queue: fawn_queue,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_run,
    err: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    let out = unsafe { Out::new(out) };
    // SAFETY: `err` is NULL or writable, by the contract of the header.
    let err = unsafe { Out::new(err) };
    guard::make(out, err, || {
        let assembly = handle::find::<Assembly>(assembly)?;
        let thread = handle::find::<Thread>(thread)?;
        let queue = queue::optional(queue)?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        let run = assembly
            .runtime()
            .start_run(&assembly, &thread, queue.as_ref(), json)?;
        Ok(Held::new(run, assembly.runtime))
    })
}

/// Tells a run something: `{"op": "cancel" | "status" | ...}` (schema "run_op").
///
/// Returns when the op was taken, not when it has had its effect. `out`: its answer (schema "run_op_answer"), which you
/// free.
///
/// Errors: FAWN_ERR_HANDLE; FAWN_ERR_UNKNOWN_VARIANT for an op that does not exist, FAWN_ERR_UNSUPPORTED for one that this
/// version does not have; the option errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_run_submit(
    run: fawn_run,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        let run = handle::find::<Run>(run)?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        run.submit(json).map(Answer::Done)
    })
}

/// Waits for the end of a run and answers its result: status, final state, error (schema "run_result").
///
/// `timeout_ms`: how long to wait: negative for ever, 0 not at all. May be called again, and by several OS threads: all
/// get the same result, perhaps a moment before the event "run_end" is in the queue. `out`: the result, which you free.
/// A run that failed is a result, and FAWN_OK.
///
/// FAWN_TIMEOUT: it goes on. FAWN_CLOSED: the runtime was freed and nobody drives it to its end. Error: FAWN_ERR_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_run_wait(run: fawn_run, timeout_ms: i64, out: *mut fawn_buf) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        handle::find::<Run>(run)?.wait(wait(timeout_ms))
    })
}

/// Frees a run's handle. 0 and handles that are none do nothing. The run goes on; to end it, submit "cancel".
#[unsafe(no_mangle)]
pub extern "C" fn fawn_run_free(run: fawn_run) {
    guard::release(run, drop::<Held<Run>>);
}
