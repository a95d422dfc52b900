//! Re-exports of the options, which the layer below needs too.

pub use crate::options::{Compression, Durability, LogKind, Options, Recovery};
