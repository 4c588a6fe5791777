//! The lock of an admission, named apart so that the models in `tests/capacity` can put another in its place.

pub use std::sync::Mutex;

pub use crate::runtime::sync::lock;
