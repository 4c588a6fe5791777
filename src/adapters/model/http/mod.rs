//! HTTP as model providers need it: one client per endpoint, failures as typed errors, keys out of sight.

mod client;
mod failure;
mod redact;

pub(crate) use client::{Answer, Deadline, Endpoint, EndpointConfig, ReadFault};
pub(crate) use failure::{excerpt, from_reported};
