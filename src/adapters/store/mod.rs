//! Checkpoint stores.
