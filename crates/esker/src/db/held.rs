//! Finds what holds space, when no space is left (C7).

use crate::base::FileId;
use crate::catalog::DEFAULT_KEYSPACE_ID;
use crate::db::core::Core;
use crate::error::SpaceHeld;
use crate::fs::OpenMode;
use crate::state::State;
use std::collections::HashMap;
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
        let mut files: HashMap<FileId, HashMap<u64, u64>> = HashMap::new();
        for segment in state.version.segments() {
            let meta = segment.meta();
            files.entry(meta.file).or_default().insert(meta.offset, meta.len);
        }
        let bytes = |segments: &HashMap<u64, u64>| segments.values().sum::<u64>();
        let held = Arc::new(SpaceHeld {
            data: files.values().map(bytes).sum(),
            log: self.pipeline.as_ref().map_or(0, |pipeline| pipeline.file_bytes()),
            snapshots,
            branches: self.held_by_branches(&state),
            checkpoints: files
                .iter()
                .filter(|f| self.has_other_names(*f.0))
                .map(|f| bytes(f.1))
                .sum(),
        });
        *last = Some((version, snapshots, held.clone()));
        held
    }

    /// Bytes of segments that only one branch refers to, by branch.
    fn held_by_branches(&self, state: &State) -> Vec<(String, u64)> {
        let catalog = self.catalog.lock();
        // `None`: several branches refer to it.
        let mut owners: HashMap<(FileId, u64), (u64, Option<u64>)> = HashMap::new();
        for (id, tree) in state.version.trees() {
            let Some(branch) = catalog.by_id(*id).map(|keyspace| keyspace.home.branch) else {
                continue;
            };
            for segment in tree.partitions().iter().flat_map(|partition| partition.segments()) {
                let meta = segment.meta();
                let owner = owners
                    .entry((meta.file, meta.offset))
                    .or_insert((meta.len, Some(branch.into())));
                if owner.1 != Some(branch.into()) {
                    owner.1 = None;
                }
            }
        }
        let mut bytes: HashMap<u64, u64> = HashMap::new();
        for (len, owner) in owners.into_values() {
            if let Some(branch) = owner.filter(|branch| *branch != u64::from(DEFAULT_KEYSPACE_ID)) {
                *bytes.entry(branch).or_default() += len;
            }
        }
        let named = catalog.branches().filter_map(|branch| {
            let held = *bytes.get(&u64::from(branch.id))?;
            Some((branch.name.clone(), held))
        });
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|(_, held)| std::cmp::Reverse(*held));
        named
    }

    /// Whether a checkpoint shares the file.
    pub(super) fn has_other_names(&self, id: FileId) -> bool {
        let path = self.files.directory().join(crate::run::file_name(id));
        let file = self.fs.open(&path, OpenMode::Read);
        file.and_then(|file| file.links()).is_ok_and(|links| links > 1)
    }
}
