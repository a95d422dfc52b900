//! libesker, shared and static: the functions of `esker-ffi` under the names that C links with.

pub use esker_ffi::*;
