//! Database configurations to stores.

use std::sync::Arc;

use crate::adapters::store::memory::MemoryStore;
use crate::ports::checkpoint::DynCheckpointStore;
use crate::protocol::config::DatabaseConfig;
use crate::protocol::error::Error;

/// Makes the store of a configuration. A durable one is opened now, so that a wrong path shows before the first thread
/// needs it.
///
/// # Errors
/// Those of opening, at the member at fault; `Unsupported` for a backend that this build does not have.
pub fn open(
    config: &DatabaseConfig,
    is_driven: bool,
) -> Result<Arc<dyn DynCheckpointStore>, Error> {
    match config.sqlite_file() {
        None => Ok(Arc::new(MemoryStore::new())),
        Some(file) => sqlite(file, is_driven).map_err(|error| {
            let member = if config.sqlite_path.is_some() {
                "sqlite_path"
            } else {
                "sqlite_dir"
            };
            error.below(&format!("/database/{member}"))
        }),
    }
}

#[cfg(feature = "sqlite")]
fn sqlite(file: std::path::PathBuf, is_driven: bool) -> Result<Arc<dyn DynCheckpointStore>, Error> {
    use crate::adapters::store::sqlite::{Offload, SqliteStore};

    // A driven runtime has no threads of its own, not even for a slow disk.
    let offload = if is_driven {
        Offload::Inline
    } else {
        Offload::Pool
    };
    let store = SqliteStore::new(file, offload);
    super::sync::block_on(store.prepare())?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: std::path::PathBuf, _: bool) -> Result<Arc<dyn DynCheckpointStore>, Error> {
    Err(Error::new(
        crate::protocol::error::ErrorCode::Unsupported,
        "this build has no SQLite: the feature \"sqlite\" is off",
    ))
}
