//! The lock that the models put under the admission: at each use of it another thread may come in between.

use std::sync::PoisonError;

pub use loom::sync::Mutex;
use loom::sync::MutexGuard;

/// As the library's own.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
