//! `fawn_assembly`: an agent, composed once.

use std::ffi::c_char;

use super::bytes::{self, Out, fawn_buf};
use super::guard;
use super::handle::{self, Held};
use super::runtime::fawn_runtime;
use crate::runtime::{Answer, Assembly, Runtime, Subagents};

/// An assembly: a model, a prompt, tools and middleware, composed once and not changed any more. 0 is none.
///
/// Functions: fawn_assembly_new, _descriptor, _free.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type fawn_assembly = u64;

/// Composes an assembly.
///
/// `json`, `len`: what it is made of (schema "assembly_config"). A fawn_subagents is named by its handle, a number:
/// "subagent_runtime".
/// `out`: the handle, which you free with fawn_assembly_free; 0 on failure. `err`: the error object on failure.
///
/// Errors: FAWN_ERR_HANDLE, also for a fawn_subagents that was freed or is of another runtime; FAWN_ERR_CLOSED;
/// FAWN_ERR_ARGUMENT if `out` is NULL; the FAWN_ERR_JSON_* and option errors; FAWN_ERR_UNKNOWN_MODEL, FAWN_ERR_UNKNOWN_AGENT, FAWN_ERR_NOT_AUTHORIZED, FAWN_ERR_ASSEMBLY_INVALID, FAWN_ERR_STORE. May
/// read files: skills, and the record of a custom agent.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn fawn_assembly_new(
    runtime: fawn_runtime,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_assembly,
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
        let find = |handle| handle::find::<Subagents>(handle).map(|found| (*found).clone());
        Ok(Held::new(object.new_assembly_with(json, &find)?, runtime))
    })
}

/// What an assembly turned out to be (schema "assembly_descriptor"): model, prompt hash, tools, order of middleware,
/// policies, and a fingerprint of all that shapes what it does; or `null` for a bare graph, which is what every factory but
/// `lead` makes.
///
/// `out`: the descriptor, which you free. Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_assembly_descriptor(
    assembly: fawn_assembly,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        handle::find::<Assembly>(assembly)?
            .descriptor()
            .map(Answer::Done)
    })
}

/// Frees an assembly. 0 and handles that are none do nothing. Runs that were started with it go on.
#[unsafe(no_mangle)]
pub extern "C" fn fawn_assembly_free(assembly: fawn_assembly) {
    guard::release(assembly, drop::<Held<Assembly>>);
}
