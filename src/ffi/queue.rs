//! `fawn_queue`: everything that comes to the host, taken by the host.

use std::ffi::c_char;
use std::sync::Arc;

use super::bytes::{self, Out, fawn_buf};
use super::handle::{self, Held};
use super::runtime::fawn_runtime;
use super::wakeup::{self, Registration, fawn_drop_fn, fawn_wakeup_fn};
use super::{guard, wait};
use crate::protocol::error::Error;
use crate::runtime::{self, Answer, Runtime};

/// A queue: events of runs, calls to the host, logs. The host takes them; nothing is pushed at it. 0 is none.
///
/// Functions: fawn_queue_new, _take, _interrupt, _set_wakeup, _free.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type fawn_queue = u64;

/// A runtime's queue, with the place for the host's hook.
#[derive(Clone)]
pub(super) struct Queue {
    /// What the runtime fills.
    queue: runtime::Queue,
    /// The registration of the hook.
    pub(super) wakeup: Arc<wakeup::Slot>,
}

/// Makes a queue.
///
/// `json`, `len`: its options (schema "queue_config"); `{}` is valid.
/// `out`: the handle, which you free with fawn_queue_free; 0 on failure. `err`: the error object on failure.
///
/// Errors: FAWN_ERR_HANDLE, FAWN_ERR_CLOSED; FAWN_ERR_ARGUMENT if `out` is NULL; the FAWN_ERR_JSON_* and option errors.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn fawn_queue_new(
    runtime: fawn_runtime,
    json: *const c_char,
    len: libc::size_t,
    out: *mut fawn_queue,
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
        let queue = Queue {
            queue: object.new_queue(json)?,
            wakeup: Arc::default(),
        };
        Ok(Held::new(queue, runtime))
    })
}

/// Takes what is in a queue, oldest first, or waits until there is something.
///
/// `timeout_ms`: how long to wait: negative for ever, 0 not at all.
/// `max_events`: take at most so many; 0: all that are there.
/// `out`: a JSON array of at least one event (schema "event" each), which you free.
///
/// FAWN_TIMEOUT: nothing came. FAWN_INTERRUPTED: fawn_queue_interrupt was called. FAWN_CLOSED: the queue is empty and was
/// freed, or its runtime is down. In these cases `out` is empty. Error: FAWN_ERR_HANDLE.
///
/// Several OS threads may take from one queue; each event goes to one of them. In a runtime with `"workers": 0` it is in
/// here, and in fawn_run_wait, that runs make progress.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_queue_take(
    queue: fawn_queue,
    timeout_ms: i64,
    max_events: u32,
    out: *mut fawn_buf,
) -> i32 {
    // SAFETY: `out` is NULL or writable, by the contract of the header.
    guard::answer(unsafe { Out::new(out) }, || {
        handle::find::<Queue>(queue)?
            .queue
            .take(wait(timeout_ms), max_events)
    })
}

/// Ends one fawn_queue_take early: the one that waits now (any one, if several do), or else the next. Never lost.
///
/// Never blocks. Error: FAWN_ERR_HANDLE (there is no error object).
#[unsafe(no_mangle)]
pub extern "C" fn fawn_queue_interrupt(queue: fawn_queue) -> i32 {
    guard::act(Out::NOWHERE, || {
        handle::find::<Queue>(queue)?.queue.interrupt();
        Ok(Answer::Done(()))
    })
}

/// Registers the function that is called when an empty queue gets something to take; NULL clears it.
///
/// For hosts with an event loop of their own: the function tells the loop, and the loop calls fawn_queue_take with a
/// timeout of 0 until FAWN_TIMEOUT. If there is something to take already, the function is called at once.
///
/// `wakeup(user_data)` is called on OS threads of the library, or inside a call of the host's own; at most once each time
/// the queue goes from empty to not empty, and when it is closed; perhaps on several OS threads at once, perhaps before
/// this function returns.
/// It must return soon and must not unwind, longjmp or end the OS thread. It must not call the library: calls answer
/// FAWN_ERR_WRONG_THREAD, except for the _free functions.
/// `drop(user_data)`, if not NULL, is called exactly once when the registration has ended, because it was replaced or
/// cleared, or the queue or its runtime was freed: after the last call of `wakeup` has returned, under the same rules. If
/// this function fails nothing is registered and `drop` is not called.
///
/// When this returns, the function that was registered before is not running and will not run again, and its `drop` has
/// returned: do not call it while holding a lock that `wakeup` takes. With `wakeup` NULL the other two are ignored.
///
/// `err`: the error object on failure. Error: FAWN_ERR_HANDLE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fawn_queue_set_wakeup(
    queue: fawn_queue,
    wakeup: fawn_wakeup_fn,
    user_data: usize,
    drop: fawn_drop_fn,
    err: *mut fawn_buf,
) -> i32 {
    // SAFETY: `err` is NULL or writable, by the contract of the header.
    guard::act(unsafe { Out::new(err) }, || {
        let queue = handle::find::<Queue>(queue)?;
        let registration = wakeup.map(|wakeup| Registration::new(wakeup, user_data, drop));
        queue
            .wakeup
            .replace(registration, |hook| queue.queue.set_wakeup(hook))?;
        Ok(Answer::Done(()))
    })
}

/// Frees a queue. 0 and handles that are none do nothing.
///
/// What is in it is lost, its open host calls fail, and runs that need it end. An OS thread that waits in
/// fawn_queue_take gets FAWN_CLOSED. The wake-up function is not running when this returns and will not run again, unless
/// this is called from inside a wake-up function, which it may be.
#[unsafe(no_mangle)]
pub extern "C" fn fawn_queue_free(queue: fawn_queue) {
    guard::release(queue, |queue: Held<Queue>| {
        queue.wakeup.close();
        queue.queue.close();
    });
}

/// The runtime's queue behind a handle; `None` for 0.
///
/// # Errors
/// `Handle` if the handle is not 0 and names no living queue.
pub(super) fn optional(queue: fawn_queue) -> Result<Option<runtime::Queue>, Error> {
    if queue == 0 {
        return Ok(None);
    }
    Ok(Some(handle::find::<Queue>(queue)?.queue.clone()))
}
