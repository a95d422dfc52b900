//! Code that keyspaces need and that the database was opened without.

use crate::model::{is_folded, merges};

/// Code that was not given when the database was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Withheld {
    pub(super) comparator: bool,
    pub(super) operator: bool,
}

impl Withheld {
    /// Whether the keyspace of a slot lacks nothing.
    pub(super) fn allows(self, slot: usize) -> bool {
        !(self.comparator && is_folded(slot) || self.operator && merges(slot))
    }
}
