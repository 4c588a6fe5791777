//! `fawn_subagents`: capacity and limits that assemblies share for their subagents.

use std::ffi::c_char;

use super::bytes::{self, Out, fawn_buf};
use super::handle::{self, Held};
use super::runtime::fawn_runtime;
use super::{guard, wait};
use crate::runtime::{Answer, Runtime, Subagents};

/// Capacity and limits for subagents, shared by all assemblies that name it: their subagents compete for the same places
/// and wait in the same queue. Those of two such objects never do. Assemblies that name none share the capacity of the
/// process. 0 is none.
///
/// What it is configured with does not change any more. An assembly names it in its configuration by the number that
/// the handle is: {"factory": "lead", "subagent_runtime": 1688849860263937}. Freeing the handle takes nothing away from
/// such an assembly.
///
/// Functions: fawn_subagents_new, _start, _stop, _stats, _free.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type fawn_subagents = u64;

/// Makes a subagents object. It needs no fawn_subagents_start before assemblies delegate through it.
///
/// `json`, `len`: its configuration (schema "subagents_config"); `{}` is valid. What is absent is as the runtime's
/// configuration has it ("subagent_runtime", and "max_total_per_run" of "subagents").
/// A request's "max_total_subagents" comes before "max_total_per_run", also where it is more.
/// `out`: the handle, which you free with fawn_subagents_free; 0 on failure. `err`: the error object on failure.
///
/// Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_ARGUMENT if `out` is NULL; the FAWN_ERR_JSON_* and option errors;
/// FAWN_ERR_UNSUPPORTED for "batch_config": durable batches are not available in this version.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn fawn_subagents_new(
    runtime: fawn_runtime,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_subagents,
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
        Ok(Held::new(object.new_subagents(json)?, runtime))
    })
}

/// Starts what a subagents object owns besides its capacity: durable batches, of which this version has none. Subagents
/// of agents that wait for them run started or not. May be called again, and after fawn_subagents_stop.
///
/// `out`: `{"started": true}` (schema "subagents_answer"), which you free. Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_subagents_start(
    subagents: fawn_subagents,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        let subagents = handle::find::<Subagents>(subagents)?;
        subagents.start().map(Answer::Done)
    })
}

/// Stops what fawn_subagents_start started, and waits up to `timeout_ms` for that (negative: for ever; 0: only begins
/// it). Subagents of agents that wait for them go on, and new ones begin. May be called again, also without a start.
///
/// FAWN_OK: it is stopped; `out`: `{"started": false}` (schema "subagents_answer"), which you free. FAWN_TIMEOUT: it is
/// still stopping; call it again to wait once more. Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_subagents_stop(
    subagents: fawn_subagents,
    timeout_ms: i64,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        handle::find::<Subagents>(subagents)?.stop(wait(timeout_ms))
    })
}

/// Tells how many subagents run and how many wait at this moment, and the limits of both.
///
/// Works after the runtime's shutdown too. `out`: the figures (schema "subagents_stats"), which you free. Error:
/// FAWN_ERR_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_subagents_stats(
    subagents: fawn_subagents,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        Ok(Answer::Done(handle::find::<Subagents>(subagents)?.stats()))
    })
}

/// Frees a subagents object's handle. 0 and handles that are none do nothing. Assemblies that name the object keep it, and
/// their subagents go on.
#[unsafe(no_mangle)]
pub extern "C" fn fawn_subagents_free(subagents: fawn_subagents) {
    guard::release(subagents, drop::<Held<Subagents>>);
}
