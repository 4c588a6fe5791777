//! Checkpoint stores.
use std::sync::Arc;

use crate::ports::checkpoint::DynCheckpointStore;
use crate::protocol::config::DatabaseConfig;
use crate::protocol::error::{Error, ErrorCode};

/// One store, for both ways of use.
pub struct Stores {
    /// For tasks of a driver with worker threads: blocking work goes to the driver's pool.
    pub store: Arc<dyn DynCheckpointStore>,
    /// For the calling OS thread: futures are ready at once.
    pub inline: Arc<dyn DynCheckpointStore>,
}

/// Makes the store of a configuration.
pub fn open(_config: &DatabaseConfig, _driven: bool) -> Result<Stores, Error> {
    Err(Error::new(ErrorCode::Unsupported, "placeholder"))
}
