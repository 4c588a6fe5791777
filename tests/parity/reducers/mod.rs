//! Reducers and channel values against the reference: its recorded answers, its rules by name, and slow models.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod generated;
mod models;
mod random;
mod rules;
mod vectors;
