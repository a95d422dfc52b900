//! A manifest: its header, and each record with its edit.

use super::fields::{self, Fields, bound, key};
use crate::error::Result;
use crate::fs::Fs;
use crate::manifest::{
    self, BranchKind, BranchRecord, Content, Edit, PartitionRecord, RunRecord, TreeEdit, TreePiece,
};
use crate::run::{SegmentKind, SegmentMeta};
use std::path::Path;

pub(super) fn show(
    fs: &dyn Fs,
    path: &Path,
    number: Option<u64>,
    fields: &mut Fields,
) -> Result<()> {
    // A manifest under a foreign name is taken at its word.
    let stored = manifest::scan(fs, path, number.unwrap_or_default())?.number;
    let scan = manifest::scan(fs, path, number.unwrap_or(stored))?;
    fields.add("file", "manifest");
    fields.add("bytes", scan.len);
    match scan.header {
        Ok(version) => fields.add("header.format version", version),
        Err(error) => fields.damage("header.damaged[0]", error)?,
    }
    fields.add("header.number", scan.number);
    fields.add("header.nonce", format!("{:#018x}", scan.nonce));
    for piece in &scan.pieces {
        let name = format!("record[{}]", piece.offset);
        match &piece.content {
            Content::Edit(edit) => {
                fields.add(format!("{name}.kind"), "edit");
                fields.add(format!("{name}.bytes"), piece.len);
                show_edit(edit, &name, fields);
            }
            Content::Successor(number) => {
                fields.add(format!("{name}.kind"), "successor");
                fields.add(format!("{name}.manifest"), manifest::manifest_name(*number));
            }
            Content::Senseless(what) => {
                fields.add(format!("{name}.damaged"), what);
            }
            Content::Damage => {
                let what = format!("{} bytes that are no whole record", piece.len);
                fields.add(format!("damaged[{}]", piece.offset), what);
            }
            Content::Unused => {
                fields.add(format!("unused[{}]", piece.offset), format!("{} bytes", piece.len));
            }
        }
    }
    Ok(())
}

fn show_edit(edit: &Edit, name: &str, fields: &mut Fields) {
    if let Some(position) = edit.log_start {
        fields.add(format!("{name}.log start"), position);
    }
    if let Some(next) = edit.next_file {
        fields.add(format!("{name}.next file"), next);
    }
    if let Some(next) = edit.next_keyspace {
        fields.add(format!("{name}.next keyspace"), next);
    }
    for (i, branch) in edit.branches.iter().enumerate() {
        show_branch(branch, &format!("{name}.branch[{i}]"), fields);
    }
    for (i, (id, home)) in edit.homes.iter().enumerate() {
        let mut value = format!("keyspace {id} in branch {}, from {}", home.branch, home.born);
        for (born, original) in &home.older {
            value += &format!(", before that keyspace {original} from {born}");
        }
        fields.add(format!("{name}.home[{i}]"), value);
    }
    for (i, id) in edit.branches_dropped.iter().enumerate() {
        fields.add(format!("{name}.branch dropped[{i}]"), id);
    }
    for (i, keyspace) in edit.created.iter().enumerate() {
        let order = keyspace.comparator.as_deref().unwrap_or("bytewise");
        let value = format!("{} {:?}, order {order:?}", keyspace.id, keyspace.name);
        fields.add(format!("{name}.created[{i}]"), value);
    }
    for (i, (id, traits)) in edit.traits.iter().enumerate() {
        let value = fields::traits(*id, &traits.operator, &traits.filter, traits.ttl);
        fields.add(format!("{name}.traits[{i}]"), value);
    }
    for (i, id) in edit.dropped.iter().enumerate() {
        fields.add(format!("{name}.dropped[{i}]"), id);
    }
    for (i, (id, change)) in edit.trees.iter().enumerate() {
        let name = format!("{name}.tree[{i}]");
        fields.add(format!("{name}.keyspace"), id);
        match change {
            TreeEdit::Share { tier, pieces } => {
                show_tier(*tier, &name, fields);
                fields.add(format!("{name}.kind"), "share");
                for (i, piece) in pieces.iter().enumerate() {
                    show_piece(piece, &format!("{name}.piece[{i}]"), fields);
                }
            }
            TreeEdit::Tier { tier, spans } => {
                fields.add(format!("{name}.kind"), "tier");
                show_tier(*tier, &name, fields);
                show_partitions(spans, &format!("{name}.span"), fields);
            }
            TreeEdit::AddDelta { tier, lower, count, run } => {
                show_tier(*tier, &name, fields);
                fields.add(format!("{name}.kind"), "add delta");
                fields.add(format!("{name}.lower"), bound(lower.as_deref()));
                fields.add(format!("{name}.count"), count);
                show_run(run, &format!("{name}.delta"), fields);
            }
            TreeEdit::Replace { tier, lower, count, partitions } => {
                show_tier(*tier, &name, fields);
                fields.add(format!("{name}.kind"), "replace");
                fields.add(format!("{name}.lower"), bound(lower.as_deref()));
                fields.add(format!("{name}.count"), count);
                show_partitions(partitions, &format!("{name}.partition"), fields);
            }
        }
    }
}

/// The row that a change is about, unless it is that of partitions.
fn show_tier(tier: usize, name: &str, fields: &mut Fields) {
    if tier > 0 {
        fields.add(format!("{name}.tier"), tier);
    }
}

fn show_partitions(partitions: &[PartitionRecord], name: &str, fields: &mut Fields) {
    for (i, partition) in partitions.iter().enumerate() {
        show_partition(partition, &format!("{name}[{i}]"), fields);
    }
}

fn show_piece(piece: &TreePiece, name: &str, fields: &mut Fields) {
    match piece {
        TreePiece::Own(partitions) => {
            show_partitions(partitions, &format!("{name}.partition"), fields);
        }
        TreePiece::Of { keyspace, first, count } => {
            let value = format!("{count} partitions from number {first} of keyspace {keyspace}");
            fields.add(name, value);
        }
    }
}

fn show_branch(branch: &BranchRecord, name: &str, fields: &mut Fields) {
    let kind = match branch.kind {
        BranchKind::Branch => "branch",
        BranchKind::Snapshot => "named snapshot",
    };
    let BranchRecord { id, made_at, point, .. } = branch;
    let value = format!("{kind} {id} {:?}, made at {made_at} ms, point {point}", branch.name);
    fields.add(name, value);
    for (i, (copy, original)) in branch.copies.iter().enumerate() {
        fields.add(format!("{name}.copy[{i}]"), format!("keyspace {copy} of {original}"));
    }
}

fn show_partition(partition: &PartitionRecord, name: &str, fields: &mut Fields) {
    fields.add(format!("{name}.lower"), bound(partition.lower.as_deref()));
    show_run(&partition.base, &format!("{name}.base"), fields);
    for (i, delta) in partition.deltas.iter().enumerate() {
        show_run(delta, &format!("{name}.delta[{i}]"), fields);
    }
}

fn show_run(run: &RunRecord, name: &str, fields: &mut Fields) {
    if run.is_empty() {
        fields.add(name, "empty");
    }
    for (list, word) in [(&run.segments, "segment"), (&run.tombstones, "tombstones")] {
        for (i, meta) in list.iter().enumerate() {
            show_meta(meta, &format!("{name}.{word}[{i}]"), fields);
        }
    }
}

/// A segment's description, in one line for its place and one for its contents.
pub(super) fn show_meta(meta: &SegmentMeta, name: &str, fields: &mut Fields) {
    fields.add(
        format!("{name}.place"),
        format!(
            "file {} at {}, {} bytes, tail {}, checksum {:#018x}",
            meta.file, meta.offset, meta.len, meta.tail_len, meta.checksum
        ),
    );
    let what = match meta.kind {
        SegmentKind::Data => "entries",
        SegmentKind::Tombstones => "range tombstones",
        SegmentKind::Values => "separated values",
    };
    fields.add(
        format!("{name}.content"),
        format!(
            "{} {what}, {} deletes, {} raw bytes, sequence numbers {} to {}, {}",
            meta.entries,
            meta.deletes,
            meta.raw_bytes,
            meta.min_seq,
            meta.max_seq,
            if meta.bytewise { "byte order" } else { "custom order" }
        ),
    );
    let specials = meta.specials;
    if specials.operands + specials.expiring > 0 {
        let what = format!(
            "{} operands, {} that expire, from {} to {} ms",
            specials.operands, specials.expiring, specials.first_expiry, specials.last_expiry
        );
        fields.add(format!("{name}.special"), what);
    }
    for used in &meta.values {
        let what = format!(
            "{} values, {} of {} bytes, in file {} at {}",
            used.entries, used.bytes, used.values.raw_bytes, used.values.file, used.values.offset
        );
        fields.add(format!("{name}.values[{}:{}]", used.values.file, used.values.offset), what);
    }
    fields.add(format!("{name}.keys"), format!("{} to {}", key(&meta.min_key), key(&meta.max_key)));
}
