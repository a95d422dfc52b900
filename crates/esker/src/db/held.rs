//! Finds what holds space, when no space is left (C7).

use crate::db::core::Core;
use crate::error::SpaceHeld;
use crate::stats::branches::held_by_branches;
use std::sync::Arc;

impl Core {
    /// Which parts of the database hold space.
    pub(super) fn space_held(&self) -> Arc<SpaceHeld> {
        let state = self.state_now();
        let snapshots = self.snapshots.list().len();
        let replaced = self.state.retired.count();
        self.relief.last_held.of((Arc::as_ptr(&state.version).addr(), snapshots, replaced), || {
            let files = state.version.bytes_by_file();
            let copied = files.iter().filter(|(id, _)| self.files.has_other_names(**id));
            SpaceHeld {
                data: files.values().sum(),
                log: self.pipeline.as_ref().map_or(0, |pipeline| pipeline.file_bytes()),
                snapshots,
                replaced: self.state.retired.held(&state).data,
                branches: held_by_branches(&state, &self.catalog.lock()).0,
                checkpoints: copied.map(|(_, bytes)| bytes).sum(),
            }
        })
    }
}
