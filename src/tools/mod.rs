//! Tools: the checks that stand before every call. Built-in tools join here, one file each.

pub mod arguments;
