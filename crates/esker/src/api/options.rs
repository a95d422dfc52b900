//! Re-exports of the options, which lower layers need too.

pub use crate::options::{Compression, Durability, LogKind, Options, Recovery};
