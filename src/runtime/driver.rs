//! Who drives: worker threads of the runtime's own, or the host's threads while they are inside a call.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Builder;

use super::sync::lock;
use crate::os;
use crate::protocol::error::{Error, ErrorCode};

/// A tokio runtime that never blocks when it goes away, whoever lets go of it last and wherever.
struct Tokio(Option<tokio::runtime::Runtime>);

impl Drop for Tokio {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs tasks. Nothing is started before the first task.
pub struct Driver {
    workers: usize,
    state: Mutex<State>,
}

enum State {
    Idle,
    Started(Arc<Tokio>),
    Closed,
}

impl Driver {
    /// A driver with so many worker threads; 0 leaves the driving to the host.
    pub fn new(workers: usize) -> Self {
        Driver {
            workers,
            state: Mutex::new(State::Idle),
        }
    }

    /// How many worker threads it has, or will have once there is something to do.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Whether the host's threads drive.
    pub fn is_driven(&self) -> bool {
        self.workers == 0
    }

    /// Starts a task.
    ///
    /// # Errors
    /// `Closed` after [`Driver::close`]; `Internal` when the system gives no thread.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let tokio = self.started()?;
        if let Some(runtime) = &tokio.0 {
            runtime.spawn(task);
        }
        Ok(())
    }

    /// Drives everything on this OS thread until `future` is done. Only in driven mode; several OS threads take turns.
    ///
    /// # Errors
    /// As [`Driver::spawn`].
    pub fn drive<F: Future>(&self, future: F) -> Result<F::Output, Error> {
        let tokio = self.started()?;
        match &tokio.0 {
            Some(runtime) => Ok(runtime.block_on(future)),
            None => Err(closed()),
        }
    }

    /// Drives without waiting: gives the tasks that are ready a turn, and those that they have made ready another, and asks
    /// after each whether there is an answer. No timer is set, since the finest one is a millisecond.
    ///
    /// # Errors
    /// As [`Driver::spawn`].
    pub fn turn<T>(&self, mut answer: impl FnMut() -> Option<T>) -> Result<Option<T>, Error> {
        self.drive(async {
            for _ in 0..2 {
                tokio::task::yield_now().await;
                let found = answer();
                if found.is_some() {
                    return found;
                }
            }
            None
        })
    }

    /// Drops what is running, without waiting for it.
    pub fn close(&self) {
        // The tasks are dropped outside the lock: they may come back here.
        let state = std::mem::replace(&mut *lock(&self.state), State::Closed);
        drop(state);
    }

    fn started(&self) -> Result<Arc<Tokio>, Error> {
        let mut state = lock(&self.state);
        match &*state {
            State::Started(tokio) => return Ok(tokio.clone()),
            State::Closed => return Err(closed()),
            State::Idle => {}
        }
        let mut builder = if self.is_driven() {
            Builder::new_current_thread()
        } else {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(self.workers);
            builder
        };
        builder
            .thread_name("fawn")
            .thread_keep_alive(Duration::from_secs(10))
            .on_thread_start(|| {
                // Threads of the blocking pool are started by whoever needs one, the host's threads included.
                os::block_signals();
                super::guarded::quiet_thread();
            })
            .enable_all();
        // Threads inherit the mask of the thread that starts them; ours take no signals.
        let runtime = os::with_signals_blocked(|| builder.build()).map_err(|error| {
            Error::new(
                ErrorCode::Internal,
                "the runtime's threads could not be started",
            )
            .caused_by(error)
        })?;
        let tokio = Arc::new(Tokio(Some(runtime)));
        *state = State::Started(tokio.clone());
        Ok(tokio)
    }
}

fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the runtime was shut down")
}
