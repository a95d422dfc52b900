//! Finds what holds space, when no space is left (C7).

use crate::db::core::Core;
use crate::error::SpaceHeld;
use crate::stats::branches::held_by_branches;
use std::sync::Arc;

impl Core {
    /// Which parts of the database hold space.
    pub(super) fn space_held(&self) -> Arc<SpaceHeld> {
        let state = self.state_now();
        let (version, snapshots) =
            (Arc::as_ptr(&state.version).addr(), self.snapshots.list().len());
        let mut last = self.relief.last_held.0.lock();
        if let Some((of, with, held)) = &*last
            && (*of, *with) == (version, snapshots)
        {
            return held.clone();
        }
        let files = state.version.bytes_by_file();
        let copied = files.iter().filter(|(id, _)| self.files.has_other_names(**id));
        let held = Arc::new(SpaceHeld {
            data: files.values().sum(),
            log: self.pipeline.as_ref().map_or(0, |pipeline| pipeline.file_bytes()),
            snapshots,
            branches: held_by_branches(&state, &self.catalog.lock()).0,
            checkpoints: copied.map(|(_, bytes)| bytes).sum(),
        });
        *last = Some((version, snapshots, held.clone()));
        held
    }
}
