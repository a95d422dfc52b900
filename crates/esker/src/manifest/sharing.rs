//! Whole trees as edits: for the first record of a manifest, and for branches. Trees share
//! partitions and spans, and what several trees share is written once.
//!
//! 1. A tree is written row by row, that of partitions first.
//! 2. A piece of a row refers to the same row of a tree that was written before it, so a reader
//!    that applies the edits in their order knows what it names.
//! 3. What a reader cannot put together is refused: pieces must be there, and fit together.

use crate::base::KeyspaceId;
use crate::manifest::draft::check_spans;
use crate::manifest::partition::build_partitions;
use crate::manifest::{Draft, Partition, Tree, TreeEdit, TreePiece};
use crate::run::{Segment, SegmentMeta};
use std::collections::HashMap;
use std::sync::Arc;

/// The keyspace and index of each partition that was already written, by the row and the address
/// of the partition.
pub(super) type Places = HashMap<(usize, *const Partition), (KeyspaceId, usize)>;

/// The edits that make a tree; they refer to partitions that were already written.
pub(super) fn tree_edits(id: KeyspaceId, tree: &Tree, places: &mut Places) -> Vec<TreeEdit> {
    let mut edits = Vec::new();
    for (tier, row) in tree.rows().iter().enumerate() {
        // Seeded: a new manifest does not have the tiers.
        bug!("manifest_tier_not_written", {
            if tier > 0 {
                continue;
            }
        });
        let mut pieces = pieces_of(id, tier, row.partitions(), places);
        edits.push(match pieces.as_mut_slice() {
            [TreePiece::Own(partitions)] => {
                let partitions = std::mem::take(partitions);
                match tier {
                    0 => TreeEdit::Replace { tier, lower: None, count: 1, partitions },
                    _ => TreeEdit::Tier { tier, spans: partitions },
                }
            }
            _ => TreeEdit::Share { tier, pieces },
        });
    }
    edits
}

fn pieces_of(
    id: KeyspaceId,
    tier: usize,
    partitions: &[Arc<Partition>],
    places: &mut Places,
) -> Vec<TreePiece> {
    let mut pieces: Vec<TreePiece> = Vec::new();
    for (index, partition) in partitions.iter().enumerate() {
        let place = places.entry((tier, Arc::as_ptr(partition))).or_insert((id, index));
        match (pieces.last_mut(), *place) {
            (Some(TreePiece::Of { keyspace, first, count }), (of, at))
                if *keyspace == of && *first + *count == at =>
            {
                *count += 1;
            }
            (Some(TreePiece::Own(own)), (of, _)) if of == id => own.push(partition.record()),
            (_, (of, _)) if of == id => pieces.push(TreePiece::Own(vec![partition.record()])),
            (_, (keyspace, first)) => {
                pieces.push(TreePiece::Of { keyspace, first, count: 1 });
            }
        }
    }
    pieces
}

/// The tree `before` whose row `tier` consists of these pieces. A row of partitions begins a tree
/// anew.
pub(super) fn shared_tree(
    tree_of: &dyn Fn(KeyspaceId) -> Option<Arc<Tree>>,
    before: &Tree,
    (tier, pieces): (usize, &[TreePiece]),
    segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
) -> Result<Tree, &'static str> {
    let row = shared_row(tree_of, tier, pieces, segment)?;
    if tier == 0 {
        return Ok(Tree::new(row));
    }
    let mut draft = Draft::of(before);
    draft.set_tier(tier, row)?;
    Ok(draft.finish())
}

fn shared_row(
    tree_of: &dyn Fn(KeyspaceId) -> Option<Arc<Tree>>,
    tier: usize,
    pieces: &[TreePiece],
    segment: &mut dyn FnMut(&SegmentMeta) -> Arc<Segment>,
) -> Result<Vec<Arc<Partition>>, &'static str> {
    let mut partitions: Vec<Arc<Partition>> = Vec::new();
    // Goes from the end, because a partition ends where the next begins.
    for piece in pieces.iter().rev() {
        let next = partitions.last().map(|next| next.lower.clone());
        let upper = next.clone().flatten();
        let mut found = match piece {
            TreePiece::Own(records) => {
                check_spans(tier, records)?;
                build_partitions(records, upper, segment)
            }
            TreePiece::Of { keyspace, first, count } => {
                let tree = tree_of(*keyspace).ok_or("a tree shares with one that is not there")?;
                let end = first.checked_add(*count).filter(|_| *count > 0);
                let row = tree.row(tier).map_or(&[][..], |row| row.partitions());
                let found = end.and_then(|end| row.get(*first..end));
                found.ok_or("a tree shares partitions that are not there")?.to_vec()
            }
        };
        let fits = found.last().is_some_and(|last| match &next {
            Some(next) => last.upper == *next && next.is_some(),
            None => last.upper.is_none(),
        });
        if !fits {
            return Err("the pieces of a tree do not fit together");
        }
        found.reverse();
        partitions.append(&mut found);
    }
    partitions.reverse();
    match partitions.first() {
        Some(first) if first.lower.is_none() => Ok(partitions),
        _ => Err("the pieces of a tree do not begin at its start"),
    }
}
