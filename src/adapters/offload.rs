//! Where work that waits for a disk is done.

use tokio::runtime::Handle;

use crate::protocol::error::{Error, ErrorCode};

/// Where the work of a call is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Offload {
    /// On the thread that polls. For a runtime that the host's threads drive.
    Inline,
    /// On tokio's blocking threads, so that a slow disk holds up nothing else. Without a tokio runtime around it, on the
    /// thread that polls.
    #[default]
    Pool,
}

impl Offload {
    /// Does `job`. Once it has begun it is finished, also when the future is dropped.
    ///
    /// # Errors
    /// Those of the job; `Panic` when it panicked on another thread, `Closed` when the tokio runtime goes down.
    pub async fn run<T: Send + 'static>(
        self,
        job: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        if self == Offload::Pool
            && let Ok(runtime) = Handle::try_current()
        {
            return runtime.spawn_blocking(job).await.unwrap_or_else(|failure| {
                Err(if failure.is_panic() {
                    Error::new(ErrorCode::Panic, "a call of the store panicked")
                } else {
                    Error::new(ErrorCode::Closed, "the runtime is shutting down")
                })
            });
        }
        job()
    }
}
