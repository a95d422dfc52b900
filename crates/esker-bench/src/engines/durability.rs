//! The durability classes: what a finished write survives.
//!
//! Every engine is opened at one class and reports which classes it offers. A report never puts engines
//! of different classes side by side.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a finished write survives. Engines of different classes are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing.
    Buffered,
    /// The death of the process.
    #[default]
    Process,
    /// Power loss.
    Disk,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buffered => "buffered",
            Self::Process => "process",
            Self::Disk => "disk",
        })
    }
}
