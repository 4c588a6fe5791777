//! Locks that survive a panic of their holder, waiting with a bound, and running a ready future in place.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long a call may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until there is an answer.
    Forever,
    /// At most so long; zero does not block.
    For(Duration),
}

impl Wait {
    /// When to give up; `None` for never, also when the time is beyond what the clock can tell.
    pub fn deadline(self) -> Option<Instant> {
        match self {
            Wait::Forever => None,
            Wait::For(duration) => Instant::now().checked_add(duration),
        }
    }
}

/// What a call that waits comes back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The answer.
    Done(T),
    /// The time is up.
    TimedOut,
    /// There is nothing more to come.
    Closed,
    /// The wait was interrupted.
    Interrupted,
    /// The call is over: answered before, cancelled or past its deadline.
    Gone,
}

/// Locks, whether or not an earlier holder panicked: what our locks guard is sound between any two statements, and a run
/// that panicked has its thread read again from the store.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a future to its end on this OS thread. For futures that need no runtime: those of inline stores are ready at once.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    if let Poll::Ready(output) = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        return output;
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}
