//! Runs machines.
