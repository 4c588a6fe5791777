//! x
mod reducers;
