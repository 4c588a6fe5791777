//! `fawn_runtime`: the object that everything else is made with.

use std::ffi::c_char;

use super::bytes::{self, Out, fawn_buf};
use super::handle::{self, Held};
use super::queue::Queue;
use super::{guard, wait};
use crate::protocol::describe::ABI_VERSION;
use crate::protocol::error::{Error, ErrorCode};
use crate::runtime::{Answer, Runtime};

/// A runtime: configuration, store, capacity. Threads, assemblies, queues and runs belong to one. 0 is none.
///
/// Functions: fawn_runtime_new, _submit, _stats, _shutdown, _free.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type fawn_runtime = u64;

/// Makes a runtime. It starts no OS thread before the first run.
///
/// `abi`: pass FAWN_ABI_VERSION, the version that the program was compiled with.
/// `json`, `len`: the configuration (schema "runtime_config"); `{}` is valid: memory store, no files, no network.
/// `out`: the handle, which you free with fawn_runtime_free; 0 on failure. `err`: the error object on failure.
///
/// Errors: FAWN_ERR_ABI; FAWN_ERR_ARGUMENT if `out` is NULL; the FAWN_ERR_JSON_* and option errors; FAWN_ERR_STORE and
/// FAWN_ERR_STORE_CORRUPT if the store cannot be opened.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn fawn_runtime_new(
    abi: u32,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_runtime,
    err: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    let out = unsafe { Out::new(out) };
    // SAFETY: `err` is NULL or writable, by the contract of the header.
    let err = unsafe { Out::new(err) };
    guard::make(out, err, || {
        if abi != ABI_VERSION {
            return Err(Error::new(
                ErrorCode::Abi,
                format!(
                    "the program was compiled for ABI {abi}, this library serves ABI {ABI_VERSION}"
                ),
            ));
        }
        out.required()?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        Ok(Held::new(Runtime::new(json)?, 0))
    })
}

/// Tells a runtime to do something that is rarely needed: `{"op": "delete_thread", "thread_id": "..."}`
/// (schema "runtime_op"). To delete a thread that there is not is no error.
///
/// `out`: the op's answer, an object, which you free.
///
/// Errors: FAWN_ERR_HANDLE; FAWN_ERR_CLOSED after shutdown; FAWN_ERR_UNKNOWN_VARIANT for an op that does not exist,
/// FAWN_ERR_UNSUPPORTED for one that this version does not have; FAWN_ERR_THREAD_BUSY; the option errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_runtime_submit(
    runtime: fawn_runtime,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        let runtime = handle::find::<Runtime>(runtime)?;
        // SAFETY: `json` is NULL or readable for `len`, by the contract of the header.
        let json = unsafe { bytes::text("json", json, len) }?;
        runtime.submit(json).map(Answer::Done)
    })
}

/// Facts and figures about a runtime: runs, queues, host calls that wait, living handles.
///
/// Works after shutdown too. `out`: the answer (schema "runtime_stats"), which you free. Error: FAWN_ERR_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_runtime_stats(runtime: fawn_runtime, out: *mut fawn_buf) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        let object = handle::find::<Runtime>(runtime)?;
        Ok(Answer::Done(object.stats(&handle::living(Some(runtime)))))
    })
}

/// Shuts a runtime down: cancels its runs, ends open host calls, saves what is to be saved, closes its queues.
///
/// Waits up to `timeout_ms` for that (negative: for ever; 0: only begins it). From the first call on everything else on
/// the runtime and its objects answers FAWN_ERR_CLOSED, except reading what is left in its queues and the results of
/// its runs. May be called again, by several threads at once, to wait once more.
///
/// FAWN_OK: it is down; `out` says what was ended (schema "shutdown_answer"), and you free it.
/// FAWN_TIMEOUT: it is still going down. Error: FAWN_ERR_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_runtime_shutdown(
    runtime: fawn_runtime,
    timeout_ms: i64,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        Ok(handle::find::<Runtime>(runtime)?.shutdown(wait(timeout_ms)))
    })
}

/// Frees a runtime. 0 and handles that are none do nothing.
///
/// Does not wait for runs: a runtime that was not shut down goes down behind the scenes. Its threads, assemblies, queues
/// and runs keep their handles and answer FAWN_ERR_CLOSED until you free them, in any order. The wake-up functions of its
/// queues are not running when this returns and will not run again, unless this is called from inside one, which it may
/// be. Calls that other OS threads are inside of are completed.
#[unsafe(no_mangle)]
pub extern "C" fn fawn_runtime_free(runtime: fawn_runtime) {
    guard::release(runtime, move |object: Held<Runtime>| {
        for queue in handle::children::<Queue>(runtime) {
            queue.wakeup.close();
        }
        object.close();
    });
}
