//! Checkpoint stores: one suite over all of them, and what only a store in a file can get wrong.

mod concurrency;
mod histories;
mod suite;
mod support;

#[cfg(feature = "sqlite")]
mod crash;
#[cfg(feature = "sqlite")]
mod damage;
#[cfg(feature = "sqlite")]
mod files;
#[cfg(feature = "sqlite")]
mod size;
#[cfg(feature = "sqlite")]
mod traffic;
