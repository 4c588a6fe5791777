//! Thread state: channels, reducers, the linear message fold. Pure functions and values; no clock, file or random source.

pub mod channels;
pub mod coerce;
pub mod delta;
pub mod ids;
pub(crate) mod message_marks;
mod message_text;
pub mod messages;
mod overlay;
pub mod python;
pub mod reads;
pub mod reduce;
pub mod reducers;
pub mod thread;
pub mod transcript;
pub mod update;
pub(crate) mod user_message;
pub mod values;

pub use thread::{Overlay, Selection, ThreadState, View};
