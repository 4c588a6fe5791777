//! HTTP as model providers need it: one client per endpoint, one call over it, failures as typed errors, keys out of
//! sight.

mod client;
mod exchange;
mod failure;
mod redact;

pub(crate) use client::{Endpoint, EndpointConfig};
pub(crate) use exchange::exchange;
