//! Catches panics of our own code, silently: around a call, and around each poll of a future.
//!
//! A panic must neither reach the host nor be printed on its stderr. Printing is the work of std's panic hook, and the
//! hook is one per copy of std. In the shared library that copy is ours alone; in the rlib, which our own tests link,
//! it is also the test program's. So the hook that is put in place here does nothing but keep the place of the panic
//! when the panicking thread is [quiet](Quiet), and hands every other panic to the hook that was there before.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

thread_local! {
    /// How many quiet scopes the thread is in.
    static QUIET: Cell<u32> = const { Cell::new(0) };
    /// Where the last panic of a quiet scope was.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// While it lives, panics of this OS thread print nothing.
pub struct Quiet {
    /// Bound to the thread whose counter it holds.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Quiet {
    /// Makes the calling OS thread quiet, and sees to it that the panic hook knows about quiet threads.
    pub fn enter() -> Self {
        install_hook();
        // A thread that is being torn down has no counter any more; its panics are caught all the same.
        let _ = QUIET.try_with(|depth| depth.set(depth.get() + 1));
        Quiet {
            _thread: std::marker::PhantomData,
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = QUIET.try_with(|depth| depth.set(depth.get().saturating_sub(1)));
    }
}

/// Makes an OS thread quiet for the rest of its life: for threads that are ours from start to end.
pub fn quiet_thread() {
    std::mem::forget(Quiet::enter());
}

/// Puts our panic hook before the one that is there, once.
fn install_hook() {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    // Hooks cannot be changed by a thread that is panicking: then a later call does it.
    if INSTALLED.load(Ordering::Acquire)
        || std::thread::panicking()
        || INSTALLED.swap(true, Ordering::AcqRel)
    {
        return;
    }
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if QUIET.try_with(Cell::get).unwrap_or(0) == 0 {
            previous(info);
        } else {
            let _ = PLACE.try_with(|place| place.set(place_of(info)));
        }
    }));
}

/// File and line of a panic. Only the last parts of the path: the rest is where somebody built the library.
fn place_of(info: &PanicHookInfo<'_>) -> Option<String> {
    let location = info.location()?;
    let mut parts: Vec<&str> = location.file().rsplit(['/', '\\']).take(3).collect();
    parts.reverse();
    Some(format!("{}:{}", parts.join("/"), location.line()))
}

/// What a caught panic says: its message and its place in our source.
fn describe(payload: Box<dyn Any + Send>) -> String {
    let what = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    };
    match PLACE.try_with(Cell::take).ok().flatten() {
        Some(place) => format!("{what} (at {place})"),
        None => what,
    }
}

/// Runs `f` and turns a panic into its text.
///
/// # Errors
/// Message and place of the panic.
pub fn catch<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    let _quiet = Quiet::enter();
    // What `f` touched and left half done is guarded by its owner: locks recover, a run that panicked is ended.
    catch_unwind(AssertUnwindSafe(f)).map_err(describe)
}

/// A future whose panics become values.
///
/// The guard is around each poll. `catch_unwind(|| async { .. })` would guard the making of the future only, and
/// whoever waits for it would wait for ever.
pub struct Guarded<F: ?Sized> {
    /// `None` once it has panicked or ended; it is not touched again.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Guarded<F> {
    /// Guards `future`.
    pub fn new(future: F) -> Self {
        Guarded::boxed(Box::pin(future))
    }
}

impl<F: Future + ?Sized> Guarded<F> {
    /// Guards a future that is on the heap.
    pub fn boxed(future: Pin<Box<F>>) -> Self {
        Guarded {
            future: Some(future),
        }
    }
}

impl<F: Future + ?Sized> Future for Guarded<F> {
    /// The future's value, or message and place of its panic.
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = self.future.as_mut() else {
            return Poll::Ready(Err("polled after its end".to_owned()));
        };
        let ended = match catch(|| future.as_mut().poll(context)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Ok(value),
            Err(message) => Err(message),
        };
        // What the future still holds may panic when it is dropped: that must not escape either.
        let future = self.future.take();
        let dropped = catch(|| drop(future));
        Poll::Ready(ended.and_then(|value| dropped.map(|()| value)))
    }
}

impl<F: ?Sized> Drop for Guarded<F> {
    fn drop(&mut self) {
        // A future that is given up midway runs its destructors here, on whatever thread gave it up.
        if let Some(future) = self.future.take() {
            let _ = catch(|| drop(future));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// Polls once, without anybody to wake.
    fn poll<F: Future>(future: &mut Guarded<F>) -> Poll<Result<F::Output, String>> {
        Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_panic_while_polling_is_a_value_and_the_future_is_dropped_once() {
        struct Counted<'a>(&'a Cell<u32>);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let drops = Cell::new(0);
        let held = Counted(&drops);
        let mut future = Guarded::new(async move {
            let _held = held;
            std::future::poll_fn::<(), _>(|_| panic!("planted {}", 7)).await;
        });
        let Poll::Ready(Err(message)) = poll(&mut future) else {
            panic!("the panic did not come back as a value");
        };
        assert!(
            message.starts_with("planted 7 (at src/runtime/guarded.rs:"),
            "{message}"
        );
        assert_eq!(drops.get(), 1);
        assert!(matches!(poll(&mut future), Poll::Ready(Err(_))));
    }

    #[test]
    fn a_future_that_ends_gives_its_value() {
        assert_eq!(poll(&mut Guarded::new(async { 3 })), Poll::Ready(Ok(3)));
    }

    #[test]
    fn a_destructor_that_panics_is_caught_when_the_future_is_given_up() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("in a destructor");
            }
        }
        let bomb = Bomb;
        let mut future = Guarded::new(async move {
            let _bomb = bomb;
            std::future::pending::<()>().await;
        });
        assert!(poll(&mut future).is_pending());
        drop(future);
    }

    #[test]
    fn quiet_scopes_nest_and_end() {
        let depth = || QUIET.with(Cell::get);
        let before = depth();
        let outer = Quiet::enter();
        let inner = Quiet::enter();
        assert_eq!(depth(), before + 2);
        drop(inner);
        drop(outer);
        assert_eq!(depth(), before);
        assert_eq!(
            catch(|| panic!("x")).map_err(|text| text.starts_with("x (at ")),
            Err::<(), _>(true)
        );
        assert_eq!(depth(), before);
    }
}
