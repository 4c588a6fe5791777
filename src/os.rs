//! The system calls that std does not offer: the fork flag, the signal mask of the threads we start, how much stack is left,
//! files by their name in an open folder.
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

/// Blocks every signal in the calling OS thread for the rest of its life: for threads of ours that others start for us.
pub fn block_signals() {
    #[cfg(unix)]
    std::mem::forget(Blocked::all());
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

/// Stack of the threads that [`on_large_stack`] starts. Address space; only what is used takes memory.
const LARGE_STACK: usize = 2 << 20;

/// How many bytes of stack the calling OS thread has left. 0 if it runs on a stack that is not its own, as with fibers, whose
/// size nobody knows. `None` where the platform does not tell.
///
/// The bounds are asked for once per OS thread; after that this is a comparison.
pub fn stack_left() -> Option<usize> {
    use std::cell::Cell;
    thread_local! {
        /// Lowest and highest address; equal if the platform did not tell.
        static BOUNDS: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
    }
    let known = BOUNDS.try_with(Cell::get).ok().flatten();
    let (low, high) = known.unwrap_or_else(|| {
        let bounds = stack_bounds().unwrap_or((0, 0));
        let _ = BOUNDS.try_with(|cell| cell.set(Some(bounds)));
        bounds
    });
    if low == high {
        return None;
    }
    let local = 0u8;
    let here = &raw const local as usize;
    Some(match low <= here && here < high {
        true => here - low,
        false => 0,
    })
}

/// Lowest and highest address of the calling OS thread's stack.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn stack_bounds() -> Option<(usize, usize)> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: `attributes` is a place for attributes, which the call fills on success.
    let status = unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) };
    if status != 0 {
        return None;
    }
    let mut low = std::ptr::null_mut();
    let mut size = 0;
    // SAFETY: the attributes were filled above; the other two are places for the answers.
    let status =
        unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size) };
    // SAFETY: the attributes were filled above, and are not used after this.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (status == 0).then_some((low as usize, low as usize + size))
}

/// Lowest and highest address of the calling OS thread's stack.
#[cfg(target_vendor = "apple")]
fn stack_bounds() -> Option<(usize, usize)> {
    // SAFETY: asks about the calling thread, which is alive.
    let high = unsafe { libc::pthread_get_stackaddr_np(libc::pthread_self()) } as usize;
    // SAFETY: as above.
    let size = unsafe { libc::pthread_get_stacksize_np(libc::pthread_self()) };
    Some((high - size, high))
}

/// Not told here.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn stack_bounds() -> Option<(usize, usize)> {
    None
}

/// Runs `f` on an OS thread of our own with 2 MiB of stack and waits for it. On the calling one if none can be started.
///
/// # Safety
/// Neither `f` nor its result is bound to the calling OS thread: no lock guard, nothing thread-local.
pub unsafe fn on_large_stack<T>(f: impl FnOnce() -> T) -> T {
    struct AnyThread<T>(T);
    // SAFETY: by the contract of the function; and the two threads never run at the same time, since one waits for the
    // other.
    unsafe impl<T> Send for AnyThread<T> {}

    let mut f = AnyThread(Some(f));
    let result = std::thread::scope(|scope| {
        let borrowed = AnyThread(&mut f);
        let body = move || {
            // Takes the wrapper as a whole, not the field, which alone could not be sent.
            let AnyThread(f) = { borrowed };
            f.0.take().map(|f| AnyThread(f()))
        };
        let builder = std::thread::Builder::new().stack_size(LARGE_STACK);
        let thread = with_signals_blocked(|| builder.spawn_scoped(scope, body)).ok()?;
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    match (result, f.0) {
        (Some(AnyThread(result)), _) => result,
        (None, Some(f)) => f(),
        (None, None) => unreachable!("`f` ran and gave no result"),
    }
}

/// Starts an OS thread that blocks all signals and that nobody waits for. If none can be started `f` is dropped.
pub fn start_thread(f: impl FnOnce() + Send + 'static) {
    let builder = std::thread::Builder::new().name("fawn".to_owned());
    drop(with_signals_blocked(|| builder.spawn(f)));
}

/// Files and folders by their name in a folder that is open already: nothing that is renamed or linked on the way there
/// meanwhile changes which they are. Names have no `/`, and links are never followed.
#[cfg(unix)]
pub mod at {
    use std::ffi::CStr;
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd};

    /// What a name stands for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Facts {
        /// Whether it is a regular file.
        pub is_regular: bool,
        /// Whether it is a link.
        pub is_link: bool,
        /// Whether it has other names besides this one.
        pub has_other_names: bool,
    }

    /// The answer of a call that gives -1 for an error; again when a signal came.
    fn checked(mut call: impl FnMut() -> libc::c_int) -> io::Result<libc::c_int> {
        loop {
            let answer = call();
            if answer != -1 {
                return Ok(answer);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Opens what has this name; `flags` as `open(2)` has them, `mode` for a file that is made. Never waits for the other end of
    /// a pipe, and makes no terminal the process's own.
    ///
    /// # Errors
    /// Those of the system; a link gives one.
    pub fn open(dir: &File, name: &CStr, flags: i32, mode: u32) -> io::Result<File> {
        let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        let made = checked(|| {
            // SAFETY: the descriptor is open while `dir` lives, and the name ends with a NUL.
            unsafe { libc::openat(dir.as_raw_fd(), name.as_ptr(), flags, mode) }
        })?;
        // SAFETY: the call has made this descriptor, and nobody else has it.
        Ok(unsafe { File::from_raw_fd(made) })
    }

    /// What has this name.
    ///
    /// # Errors
    /// Those of the system.
    pub fn facts(dir: &File, name: &CStr) -> io::Result<Facts> {
        let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        checked(|| {
            // SAFETY: as in `open`; `found` is a place for the answer.
            unsafe { libc::fstatat(dir.as_raw_fd(), name.as_ptr(), found.as_mut_ptr(), flags) }
        })?;
        // SAFETY: on success the call has written it.
        let found = unsafe { found.assume_init() };
        let kind = found.st_mode & libc::S_IFMT;
        Ok(Facts {
            is_regular: kind == libc::S_IFREG,
            is_link: kind == libc::S_IFLNK,
            has_other_names: found.st_nlink > 1,
        })
    }

    /// Makes a folder of this name, with the permissions that the process gives to new folders.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make_dir(dir: &File, name: &CStr) -> io::Result<()> {
        // SAFETY: as in `open`.
        checked(|| unsafe { libc::mkdirat(dir.as_raw_fd(), name.as_ptr(), 0o777) }).map(drop)
    }

    /// Gives the file `from` the name `to`, in place of what had it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn rename(dir: &File, from: &CStr, to: &CStr) -> io::Result<()> {
        let fd = dir.as_raw_fd();
        // SAFETY: as in `open`, for both names.
        checked(|| unsafe { libc::renameat(fd, from.as_ptr(), fd, to.as_ptr()) }).map(drop)
    }

    /// Takes a file's name away.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(dir: &File, name: &CStr) -> io::Result<()> {
        // SAFETY: as in `open`.
        checked(|| unsafe { libc::unlinkat(dir.as_raw_fd(), name.as_ptr(), 0) }).map(drop)
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
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn stack_that_is_left_is_known_and_can_be_had_more_of() {
        let builder = std::thread::Builder::new().stack_size(128 * 1024);
        let thread = builder.spawn(|| {
            let here = stack_left().unwrap();
            assert!(here > 32 * 1024 && here < 192 * 1024, "{here}");
            let text = String::from("borrowed");
            let caller = std::thread::current().id();
            // SAFETY: nothing in the closure is bound to this thread.
            let (left, length) = unsafe {
                on_large_stack(|| {
                    assert_ne!(std::thread::current().id(), caller);
                    assert!(is_blocked(libc::SIGUSR1));
                    (stack_left().unwrap(), text.len())
                })
            };
            assert!(left > 1024 * 1024, "{left}");
            assert_eq!(length, 8);
        });
        thread.unwrap().join().unwrap();
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
