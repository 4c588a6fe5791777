//! What an agent is told: the system prompt of framework and operator text, and the data channel for everything else.

pub mod sanitize;
