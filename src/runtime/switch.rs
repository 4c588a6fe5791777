//! How a run, or a delegation that may not be one yet, is asked to end.

use std::sync::Mutex;

use tokio_util::sync::CancellationToken;

use super::sync::lock;

/// Every wait of a run looks at it.
#[derive(Default)]
pub struct Switch {
    token: CancellationToken,
    /// Whether somebody has asked, and what was said first.
    first: Mutex<Option<Option<String>>>,
}

impl Switch {
    /// Asks for the end. The first reason counts; answers whether this was the first time.
    pub fn cancel(&self, reason: Option<String>) -> bool {
        let is_first = {
            let mut first = lock(&self.first);
            let is_first = first.is_none();
            first.get_or_insert(reason);
            is_first
        };
        self.token.cancel();
        is_first
    }

    /// Whether somebody has asked.
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until somebody asks.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Why; `None` without a reason, and while nobody has asked.
    pub fn reason(&self) -> Option<String> {
        lock(&self.first).clone().flatten()
    }
}
