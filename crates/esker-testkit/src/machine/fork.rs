//! A branch or named snapshot, beside its model.

use crate::model::Model;
use esker::Db;

/// A branch or named snapshot and what it must hold.
pub(super) struct Fork {
    pub(super) name: String,
    pub(super) snapshot: bool,
    pub(super) model: Model,
}

impl Fork {
    pub(super) fn open(&self, db: &Db) -> Db {
        let opened = if self.snapshot {
            db.open_named_snapshot(&self.name)
        } else {
            db.open_branch(&self.name)
        };
        opened.unwrap_or_else(|e| panic!("open of {}: {e}", self.name))
    }
}
