//! Turns a panic into a value, at each polling of a future or around a call.
//!
//! Guarding the *building* of a future would miss every panic of its body: the body runs when it is polled.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is inside [`catch`]; a panic hook that asks knows that the panic will be reported as a value.
pub fn is_guarded() -> bool {
    DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false)
}

/// Runs `call`; a panic becomes its text.
///
/// # Errors
/// The text of the panic.
pub fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    struct Depth;
    impl Drop for Depth {
        fn drop(&mut self) {
            let _ = DEPTH.try_with(|depth| depth.set(depth.get() - 1));
        }
    }
    let _ = DEPTH.try_with(|depth| depth.set(depth.get() + 1));
    let _depth = Depth;
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| text(panic.as_ref()))
}

fn text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a text".to_owned()
    }
}

/// A future whose panics become values. After a panic it must not be polled again.
pub struct Guarded<F>(Pin<Box<F>>);

impl<F: Future> Guarded<F> {
    /// Guards `future`.
    pub fn new(future: F) -> Self {
        Guarded(Box::pin(future))
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match catch(|| self.0.as_mut().poll(context)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn a_panic_while_polling_is_a_value() {
        let mut future = Guarded::new(async { panic!("inside {}", 1) });
        let mut context = Context::from_waker(Waker::noop());
        let polled: Poll<Result<(), String>> = Pin::new(&mut future).poll(&mut context);
        assert_eq!(polled, Poll::Ready(Err("inside 1".to_owned())));
        assert!(!is_guarded());
    }
}
