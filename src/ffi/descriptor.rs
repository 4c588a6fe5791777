//! Descriptors as data: what tells two agents apart, and a picture of one.

use std::ffi::c_char;

use super::bytes::{self, Out, fawn_buf};
use super::guard;
use crate::agent::{descriptor_diagram, descriptor_diff};
use crate::runtime::Answer;

/// Tells what makes one agent another than the other: which tool, middleware, skill, setting or policy came, went or changed,
/// whether the prompt did, and whether only what is no part of an agent's identity (build, requested model) changed. Pure: no
/// runtime, no assembly.
///
/// `json`, `len`: `{"before": D, "after": D}` (schema "descriptor_pair"), each as fawn_assembly_descriptor answered it, now or
/// in another version; a bare graph's `null` is refused.
/// `out`: the changes, as data and in words (schema "descriptor_diff"), which you free. `same` says whether the fingerprints
/// are equal; they are computed anew, and a stated one that does not belong to its facts is warned of.
///
/// Errors: the FAWN_ERR_JSON_* and option errors for the document; FAWN_ERR_MISSING_MEMBER and FAWN_ERR_WRONG_TYPE, with the
/// path below `/before` or `/after`, for a descriptor that is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_descriptor_diff(
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        descriptor_diff::diff_document(json).map(Answer::Done)
    })
}

/// Draws an agent: its loop, its middleware in order, its tools by source and its subagents, as a Mermaid flowchart. Pure: no
/// runtime, no assembly. Names of tools and agents cannot break the drawing's syntax, nor bring markup into it.
///
/// `json`, `len`: a descriptor (schema "assembly_descriptor") as fawn_assembly_descriptor answered it, now or in another
/// version; a bare graph's `null` is refused.
/// `out`: `{"mermaid": "flowchart TD ..."}` (schema "descriptor_diagram"), which you free.
///
/// Errors: the FAWN_ERR_JSON_* errors; FAWN_ERR_MISSING_MEMBER and FAWN_ERR_WRONG_TYPE, with the path, for a descriptor that
/// is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_descriptor_diagram(
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        descriptor_diagram::diagram_document(json).map(Answer::Done)
    })
}
