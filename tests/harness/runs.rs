//! Whole runs through the runtime's facade.
