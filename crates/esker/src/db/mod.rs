//! Wires the layers into a database; no algorithm lives here.

pub mod options;
pub mod stats;
