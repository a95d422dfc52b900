//! The immutable description of all trees, and how edits change it.
//!
//! 1. A version never changes: an edit builds new arrays and shares all unchanged parts.
//! 2. Applying the edits of a manifest in their order gives the version that they describe. An edit
//!    that does not fit is refused as a whole.
//! 3. Trees of branches share partitions and spans by address, so each is counted and written once.

use crate::base::{FileId, KeyspaceId, Seq};
use crate::error::{Error, Result};
use crate::manifest::sharing::{Places, shared_tree, tree_edits};
use crate::manifest::{Draft, Edit, Tree, TreeEdit};
use crate::run::{Segment, SegmentMeta};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// All trees of a database.
#[derive(Debug, Default)]
pub struct Version {
    /// Sorted by keyspace.
    trees: Vec<(KeyspaceId, Arc<Tree>)>,
}

impl Version {
    /// The tree of a keyspace; `None`: nothing was ever flushed there.
    #[inline]
    pub fn tree(&self, keyspace: KeyspaceId) -> Option<&Arc<Tree>> {
        let at = self.trees.binary_search_by_key(&keyspace, |(id, _)| *id).ok()?;
        Some(&self.trees[at].1)
    }

    /// Every tree, by keyspace.
    pub fn trees(&self) -> &[(KeyspaceId, Arc<Tree>)] {
        &self.trees
    }

    /// Bytes of the bases of all trees; what branches share counts for each.
    pub fn base_bytes(&self) -> u64 {
        self.trees.iter().map(|(_, tree)| tree.rows()[0].base_bytes()).sum()
    }

    /// This version with some trees replaced or, for `None`, removed.
    #[must_use]
    pub fn with_trees(&self, changes: Vec<(KeyspaceId, Option<Arc<Tree>>)>) -> Self {
        let mut trees: std::collections::BTreeMap<_, _> = self.trees.iter().cloned().collect();
        for (id, tree) in changes {
            match tree {
                Some(tree) => trees.insert(id, tree),
                None => trees.remove(&id),
            };
        }
        Self { trees: trees.into_iter().collect() }
    }

    /// The trees as one edit, for the first record of a new manifest.
    pub fn tree_edits(&self) -> Vec<(KeyspaceId, TreeEdit)> {
        self.tree_edits_of(|_| true)
    }

    /// Like [`Self::tree_edits`], for some keyspaces. A partition that several trees share is
    /// written once.
    pub fn tree_edits_of(&self, which: impl Fn(KeyspaceId) -> bool) -> Vec<(KeyspaceId, TreeEdit)> {
        let mut places = Places::new();
        let mut edits = Vec::new();
        for (id, tree) in self.trees.iter().filter(|(id, _)| which(*id)) {
            edits.extend(tree_edits(*id, tree, &mut places).into_iter().map(|edit| (*id, edit)));
        }
        edits
    }

    /// Every segment that this version refers to, once per reference.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.trees.iter().flat_map(|(_, tree)| tree.all().flat_map(|p| p.segments()))
    }

    /// The newest sequence number in it.
    pub fn newest(&self) -> Seq {
        self.segments().map(|segment| segment.meta().max_seq).max().unwrap_or(0)
    }

    /// Bytes of the segments in each file, every segment once.
    pub fn bytes_by_file(&self) -> HashMap<FileId, u64> {
        let mut files: HashMap<FileId, HashMap<u64, u64>> = HashMap::new();
        for segment in self.segments() {
            let meta = segment.meta();
            files.entry(meta.file).or_default().insert(meta.offset, meta.len);
        }
        files.into_iter().map(|(id, segments)| (id, segments.values().sum())).collect()
    }

    /// Applies an edit that was read from a manifest. `segment` returns the shared segment object
    /// for a description. The error states what does not fit.
    pub fn apply(
        &self,
        edit: &Edit,
        segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
    ) -> Result<Self, &'static str> {
        let mut trees = Trees { trees: self.trees.iter().cloned().collect() };
        trees.apply(edit, segment)?;
        Ok(trees.version())
    }
}

/// The trees of a version while edits are read, one after the other: an edit costs what it
/// changes, however many trees there are.
#[derive(Debug, Default)]
pub struct Trees {
    trees: BTreeMap<KeyspaceId, Arc<Tree>>,
}

/// What an edit changes; `None`: the tree is gone.
type Changes = BTreeMap<KeyspaceId, Option<Arc<Tree>>>;

impl Trees {
    /// Applies an edit, as [`Version::apply`] does. After an error nothing has changed.
    pub fn apply(
        &mut self,
        edit: &Edit,
        segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
    ) -> Result<(), &'static str> {
        let mut changes = Changes::new();
        for (copy, original) in edit.branches.iter().flat_map(|branch| &branch.copies) {
            if let Some(tree) = self.tree(&changes, *original) {
                changes.insert(*copy, Some(tree));
            }
        }
        for id in &edit.dropped {
            // Seeded: a dropped tree is there again after a reopen.
            bug!("manifest_drop_is_not_applied", continue);
            changes.insert(*id, None);
        }
        // Consecutive changes of one tree are applied together. The pieces of a shared tree may
        // come from any tree, as the changes before leave it.
        let is_share = |change: &TreeEdit| matches!(change, TreeEdit::Share { .. });
        let together = |a: &(KeyspaceId, TreeEdit), b: &(KeyspaceId, TreeEdit)| {
            a.0 == b.0 && !is_share(&a.1) && !is_share(&b.1)
        };
        for of_tree in edit.trees.chunk_by(together) {
            let id = of_tree[0].0;
            let before = self.tree(&changes, id).unwrap_or_default();
            let tree = if let TreeEdit::Share { tier, pieces } = &of_tree[0].1 {
                let tree_of = |id| self.tree(&changes, id);
                shared_tree(&tree_of, &before, (*tier, pieces), segment)?
            } else {
                let mut draft = Draft::of(&before);
                of_tree.iter().try_for_each(|(_, change)| draft.apply(change, segment))?;
                draft.finish()
            };
            changes.insert(id, Some(Arc::new(tree)));
        }
        for (id, tree) in changes {
            match tree {
                Some(tree) => self.trees.insert(id, tree),
                None => self.trees.remove(&id),
            };
        }
        Ok(())
    }

    fn tree(&self, changes: &Changes, id: KeyspaceId) -> Option<Arc<Tree>> {
        changes.get(&id).map_or_else(|| self.trees.get(&id).cloned(), Clone::clone)
    }

    /// The version that these trees make.
    pub fn version(self) -> Version {
        Version { trees: self.trees.into_iter().collect() }
    }
}

/// The error for an edit that does not fit the state before it.
pub fn misfit(path: &std::path::Path, what: &'static str) -> Error {
    Error::corruption(path, 0, "manifest edit", what)
}
