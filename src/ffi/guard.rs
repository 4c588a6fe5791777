//! What stands before and after every exported function: fork, hook and panic on the way in, status and buffers on the
//! way out.
//!
//! Every exported function consists of one call into this file. Nothing in it can unwind into the host.

use std::cell::Cell;
use std::ffi::CStr;

use super::buffers;
use super::bytes::{Out, fawn_buf};
use super::handle::{self, Held, Object};
use super::status::{self, FAWN_OK};
use crate::os;
use crate::protocol::error::{Error, ErrorCode};
use crate::runtime::{Answer, guarded};

/// The error object of a forked child. Static, because making a buffer takes a lock.
const FORKED: &CStr =
    c"{\"code\":\"forked\",\"status\":-105,\"message\":\"this process is a fork of one that used \
the library; it cannot use it any more\",\"retryable\":false}";

/// The error object for when there is no buffer to put one in.
const NO_BUFFER: &CStr =
    c"{\"code\":\"internal\",\"status\":-901,\"message\":\"too many buffers are alive: none is \
left for the answer\",\"retryable\":false}";

thread_local! {
    /// How many functions of the host this OS thread is in, called by us.
    static HOST_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, the OS thread is inside a function of the host that we called.
pub(super) struct InHost(());

impl InHost {
    /// Enters the host's function.
    pub(super) fn enter() -> Self {
        let _ = HOST_DEPTH.try_with(|depth| depth.set(depth.get() + 1));
        InHost(())
    }

    /// Whether the calling OS thread is inside one.
    pub(super) fn is() -> bool {
        HOST_DEPTH.try_with(Cell::get).unwrap_or(0) > 0
    }
}

impl Drop for InHost {
    fn drop(&mut self) {
        let _ = HOST_DEPTH.try_with(|depth| depth.set(depth.get().saturating_sub(1)));
    }
}

/// Stack that a call must find. The deepest are those that read JSON of the greatest depth that is allowed, and those
/// that drive runs on the host's thread.
const STACK_NEEDED: usize = 256 * 1024;

/// Runs the body of a call, where there is stack enough for it, and turns its panic into text. Hosts have threads with
/// small stacks (128 KiB is the default of musl) and fibers with smaller ones.
fn run<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    // Never away from inside a function of the host: what is asked for there must not wait for that function.
    if InHost::is() || os::stack_left().is_none_or(|left| left >= STACK_NEEDED) {
        return guarded::catch(body);
    }
    // SAFETY: what a body has is handles, numbers and pointers of the caller; what it gives is values.
    unsafe { os::on_large_stack(|| guarded::catch(body)) }
}

/// Why a call was not carried out.
enum Refusal {
    Forked,
    Error(Error),
}

/// Runs the body of a function, if it may run at all.
fn enter<T>(body: impl FnOnce() -> Result<T, Error>) -> Result<T, Refusal> {
    // First of all, since everything below may take a lock that a thread of the parent held.
    if os::forked() {
        return Err(Refusal::Forked);
    }
    os::watch_forks();
    if InHost::is() {
        return Err(Refusal::Error(Error::new(
            ErrorCode::WrongThread,
            "called from inside a wake-up or drop function: only the _free functions may be",
        )));
    }
    match run(body) {
        Ok(result) => result.map_err(Refusal::Error),
        Err(message) => Err(Refusal::Error(Error::new(
            ErrorCode::Panic,
            format!("a panic was caught: {message}"),
        ))),
    }
}

/// Puts text into the caller's buffer.
fn give(out: Out<fawn_buf>, text: impl FnOnce() -> String, status: i32) -> i32 {
    if out.is_null() {
        return status;
    }
    match buffers::make(text()) {
        Some(buf) => {
            out.set(buf);
            status
        }
        None => {
            out.set(fawn_buf::of_static(NO_BUFFER));
            ErrorCode::Internal.status()
        }
    }
}

/// Reports why a call was not carried out.
fn refuse(err: Out<fawn_buf>, refusal: Refusal) -> i32 {
    match refusal {
        Refusal::Forked => {
            err.set(fawn_buf::of_static(FORKED));
            ErrorCode::Forked.status()
        }
        Refusal::Error(error) => {
            let text = || serde_json::to_string(&error.payload()).unwrap_or_default();
            give(err, text, error.code.status())
        }
    }
}

/// For functions that answer text: `out` gets the answer, or the error object, or nothing.
pub(super) fn answer(
    out: Out<fawn_buf>,
    body: impl FnOnce() -> Result<Answer<String>, Error>,
) -> i32 {
    match enter(body) {
        Ok(Answer::Done(text)) => give(out, || text, FAWN_OK),
        Ok(other) => {
            out.set(fawn_buf::EMPTY);
            status::of_answer(&other)
        }
        Err(refusal) => refuse(out, refusal),
    }
}

/// For functions that answer nothing but how it went.
pub(super) fn act(err: Out<fawn_buf>, body: impl FnOnce() -> Result<Answer<()>, Error>) -> i32 {
    match enter(body) {
        Ok(answer) => {
            err.set(fawn_buf::EMPTY);
            status::of_answer(&answer)
        }
        Err(refusal) => refuse(err, refusal),
    }
}

/// For functions that make an object: `out` gets its handle, or 0. If `out` is NULL the object is let go.
pub(super) fn make<T: Object>(
    out: Out<u64>,
    err: Out<fawn_buf>,
    body: impl FnOnce() -> Result<Held<T>, Error>,
) -> i32 {
    let made = enter(|| {
        let held = body()?;
        if out.is_null() {
            return Ok(0);
        }
        handle::insert(held)
    });
    match made {
        Ok(handle) => {
            out.set(handle);
            err.set(fawn_buf::EMPTY);
            FAWN_OK
        }
        Err(refusal) => {
            out.set(0);
            refuse(err, refusal)
        }
    }
}

/// For functions that free: the handle is spent at once, then `close` lets go of the object. They have no status, and
/// in a forked child they do nothing.
///
/// They may be called from inside a function of the host. Whoever called that function may hold locks of the runtime, so
/// `close` is left to an OS thread of its own then.
pub(super) fn release<T: Object>(handle: u64, close: impl FnOnce(Held<T>) + Send + 'static) {
    if os::forked() {
        return;
    }
    let Ok(Some(held)) = guarded::catch(|| handle::remove::<T>(handle)) else {
        return;
    };
    // A destructor that panicked has nobody to tell.
    if InHost::is() {
        os::start_thread(move || drop(guarded::catch(|| close(held))));
    } else {
        drop(run(|| close(held)));
    }
}

/// For the function that frees a buffer: as [`release`], and there is always stack enough for it.
pub(super) fn release_memory(body: impl FnOnce()) {
    if !os::forked() {
        drop(guarded::catch(body));
    }
}

/// For functions that work everywhere, in a forked child too: they take no lock.
pub(super) fn anywhere<T>(body: impl FnOnce() -> T) -> T {
    body()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Runtime;

    /// Calls `answer` and gives status, error object or text, as a host would see them.
    fn call(body: impl FnOnce() -> Result<Answer<String>, Error>) -> (i32, String) {
        let mut buf = fawn_buf {
            data: c"left over".as_ptr(),
            len: 3,
            owner: 0,
        };
        // SAFETY: `buf` is ours and outlives the call.
        let status = answer(unsafe { Out::new(&raw mut buf) }, body);
        if buf.data.is_null() {
            assert_eq!(buf, fawn_buf::EMPTY);
            return (status, String::new());
        }
        // SAFETY: a buffer holds `len` bytes of text.
        let bytes = unsafe { std::slice::from_raw_parts(buf.data.cast::<u8>(), buf.len) };
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        buffers::give_back(buf);
        (status, text)
    }

    #[test]
    fn only_answers_and_errors_fill_the_buffer() {
        assert_eq!(
            call(|| Ok(Answer::Done("{}".to_owned()))),
            (0, "{}".to_owned())
        );
        assert_eq!(call(|| Ok(Answer::TimedOut)), (1, String::new()));
        assert_eq!(call(|| Ok(Answer::Gone)), (4, String::new()));
        let error = Error::at(ErrorCode::WrongType, "/a/0", "not a number");
        assert_eq!(
            call(|| Err(error)),
            (
                -123,
                "{\"code\":\"wrong_type\",\"status\":-123,\"message\":\"not a number\",\"path\":\"/a/0\",\
                 \"retryable\":false}"
                    .to_owned()
            )
        );
    }

    #[test]
    fn a_panic_is_an_error_object_with_message_and_place() {
        let (status, text) = call(|| panic!("planted"));
        assert_eq!(status, ErrorCode::Panic.status());
        assert!(text.contains("planted (at src/ffi/guard.rs:"), "{text}");
    }

    #[test]
    fn calls_from_inside_the_hosts_functions_are_refused() {
        let _inside = InHost::enter();
        let (status, text) = call(|| Ok(Answer::Done(String::new())));
        assert_eq!(status, ErrorCode::WrongThread.status());
        assert!(text.contains("\"code\":\"wrong_thread\""));
        let object = Runtime::new("{}").unwrap();
        let runtime = handle::insert(Held::new(object, 0)).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let caller = std::thread::current().id();
        release(runtime, move |runtime: Held<Runtime>| {
            runtime.close();
            sender.send(std::thread::current().id()).unwrap();
        });
        assert!(handle::find::<Runtime>(runtime).is_err());
        assert_ne!(receiver.recv().unwrap(), caller);
    }

    #[test]
    fn static_error_objects_are_what_their_codes_say() {
        for (text, code) in [
            (FORKED, ErrorCode::Forked),
            (NO_BUFFER, ErrorCode::Internal),
        ] {
            let object: serde_json::Value = serde_json::from_slice(text.to_bytes()).unwrap();
            assert_eq!(object["code"], code.name());
            assert_eq!(object["status"], code.status());
        }
    }
}
