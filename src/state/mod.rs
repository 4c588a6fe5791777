//! Thread state: channels, reducers, the linear message fold. Pure functions and values; no clock, file or random source.

pub mod channels;
pub mod delta;
pub mod ids;
pub mod reduce;
pub mod update;
