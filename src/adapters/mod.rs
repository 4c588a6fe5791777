//! Implementations of ports: models, stores, the clock.

pub mod model;
pub mod store;
pub mod system_clock;
