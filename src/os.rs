//! The system calls that std does not offer: the fork flag, and the signal mask of the threads we start.
//!
//! Beside `src/ffi` the one file with `unsafe`. Where a platform has no such thing (no fork, no signals) the functions
//! do nothing.

#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};

/// Set in the child of a fork. Read before any lock is taken, since a lock may be held by a thread that the child
/// does not have.
#[cfg(unix)]
static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether the fork handler is in place.
#[cfg(unix)]
static WATCHING: AtomicBool = AtomicBool::new(false);

/// Runs in the child, between `fork` and its return there. Async-signal-safe: one store.
#[cfg(unix)]
extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Whether this process is a fork of one in which [`watch_forks`] had been called. One relaxed load.
pub fn forked() -> bool {
    #[cfg(unix)]
    return FORKED.load(Ordering::Relaxed);
    #[cfg(not(unix))]
    false
}

/// Sees to it that children forked from now on know what they are.
///
/// Called at the first use of the library rather than when it is loaded: a server that loads it, forks its workers and
/// uses it only there has left no lock and no thread behind, and its workers may go on.
pub fn watch_forks() {
    #[cfg(unix)]
    if !WATCHING.load(Ordering::Acquire) {
        // Registered first, said afterwards: no call gets past this line without the handler in place. Two threads
        // may both register, which is harmless.
        // SAFETY: the handler is a static function of this library, which is never unloaded.
        let status = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        if status == 0 {
            WATCHING.store(true, Ordering::Release);
        }
    }
}

/// Runs `f` with every signal blocked in the calling thread, and restores the mask afterwards, also when `f` panics.
///
/// OS threads inherit the mask of the one that starts them: start ours in here. A signal meant for the host then never
/// lands on a thread that the host's language knows nothing about, and a write to a closed pipe is an error instead of
/// the end of the process.
pub fn with_signals_blocked<T>(f: impl FnOnce() -> T) -> T {
    #[cfg(unix)]
    let _restore = Blocked::all();
    f()
}

/// The mask to go back to.
#[cfg(unix)]
struct Blocked(Option<libc::sigset_t>);

#[cfg(unix)]
impl Blocked {
    /// Blocks everything that can be blocked. If the system refuses, the mask stays and nothing is restored.
    fn all() -> Self {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `all` is a place for a signal set, which the call fills.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: `all` was filled above; `before` is a place for a signal set.
        let status =
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        if status != 0 {
            return Blocked(None);
        }
        // SAFETY: on success the call has written the mask that was in force.
        Blocked(Some(unsafe { before.assume_init() }))
    }
}

#[cfg(unix)]
impl Drop for Blocked {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: `before` is the mask that the system gave us; no old mask is asked for.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Whether `signal` is blocked in the calling thread.
    fn is_blocked(signal: libc::c_int) -> bool {
        let mut mask = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: with no new set the call only reads the mask into `mask`.
        let status = unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), mask.as_mut_ptr())
        };
        assert_eq!(status, 0);
        // SAFETY: written by the call above.
        unsafe { libc::sigismember(mask.as_ptr(), signal) == 1 }
    }

    #[test]
    fn threads_started_inside_block_signals_and_the_caller_gets_its_mask_back() {
        assert!(!is_blocked(libc::SIGUSR1));
        let thread = with_signals_blocked(|| {
            assert!(is_blocked(libc::SIGUSR1));
            std::thread::spawn(|| is_blocked(libc::SIGUSR1) && is_blocked(libc::SIGPIPE))
        });
        assert!(!is_blocked(libc::SIGUSR1));
        assert!(thread.join().unwrap());
    }

    #[test]
    fn a_panic_inside_restores_the_mask_too() {
        let caught = std::panic::catch_unwind(|| {
            with_signals_blocked(|| std::panic::resume_unwind(Box::new("planted")))
        });
        assert!(caught.is_err());
        assert!(!is_blocked(libc::SIGUSR1));
    }
}
