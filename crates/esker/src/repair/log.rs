//! Replays the log of a damaged database on top of its trees.

use super::heirs::Heirs;
use super::report::State;
use super::sink::Sink;
use super::source::Source;
use super::state::Walk;
use crate::base::{KeyspaceId, Seq};
use crate::directory::LOG_DIRECTORY;
use crate::error::Result;
use crate::manifest::Traits;
use crate::wal;
use crate::wal::ops::{Op, Ops};
use std::path::Path;

/// The position of a batch, and the database it is from.
struct Place<'s> {
    source: &'s Source,
    position: Seq,
    trusted: bool,
}

/// What the replay found.
#[derive(Default)]
struct Seen {
    /// Operations that were saved.
    operations: u64,
    /// Operations of keyspaces that are not known.
    unknown: u64,
    /// Operations of keyspaces that are skipped.
    skipped: u64,
    /// Batches that make no sense.
    senseless: u64,
    heirs: Heirs,
}

/// Passes the operations of the log to the sink, in order.
pub(super) fn replay<S: Sink>(walk: &mut Walk<'_, S>, path: &Path, source: &Source) -> Result<()> {
    let directory = path.join(LOG_DIRECTORY);
    let mut seen = Seen { heirs: Heirs::new(source), ..Seen::default() };
    // If the description is complete, an operation of an unknown keyspace has no effect: the
    // keyspace was dropped. If the description is incomplete, the record that created the keyspace
    // may be lost.
    let options = walk.options;
    let fs = options.fs.as_ref();
    let whole = |start| wal::is_whole(fs, &directory, start).is_ok_and(|whole| whole);
    let trusted = source.whole && source.log_start.is_some_and(whole);
    let mut failed = None;
    let salvaged =
        wal::salvage(fs, &directory, source.log_start, |position, operations, payload| {
            let place = Place { source, position, trusted };
            let outcome = batch(walk, &mut seen, operations, payload, &place);
            outcome.inspect_err(|error| failed = Some(error.clone()))
        });
    if let Some(error) = failed {
        return Err(error);
    }
    let salvaged = match salvaged {
        Ok(salvaged) => salvaged,
        Err(error) => return walk.plan.find_error(State::Lost, error),
    };
    let is_damaged = !salvaged.damage.is_empty();
    for error in salvaged.damage {
        walk.plan.find_error(State::Damaged, error)?;
    }
    for lost in &salvaged.lost {
        let path = lost.place.as_ref().map(|(path, _)| path.as_path());
        let what = lost.operations.map_or_else(
            || "an unknown number of operations".to_owned(),
            |operations| format!("{operations} operations"),
        );
        let at = lost.place.as_ref().map_or_else(String::new, |(_, at)| format!(" (offset {at})"));
        let text = format!("log from {} to {}{at}: {what}", lost.start, lost.end);
        walk.plan.find(State::Lost, path, text);
    }
    let is_unknown = salvaged.lost.is_empty() && (is_damaged || salvaged.batches == 0);
    if is_unknown && source.log_start.is_some_and(|start| !whole(start)) {
        // An open refuses this log, and nothing left says how much it held: there is nothing where
        // it has to begin, or a file ends where a record does.
        let text = "nothing is left of it where it has to go on: an unknown number of operations";
        walk.plan.find(State::Lost, Some(&directory), text);
    }
    seen.report(walk, &directory);
    let (log_files, batches, end) = (salvaged.log_files, salvaged.batches, salvaged.end);
    let text = format!("{log_files} files, {batches} batches up to position {end}");
    let state = if trusted { State::Whole } else { State::Note };
    walk.plan.find(state, Some(&directory), text);
    walk.plan.log.batches = salvaged.batches - seen.senseless;
    walk.plan.log.operations = seen.operations;
    walk.plan.log.lost = salvaged.lost.len() as u64 + seen.senseless;
    Ok(())
}

impl Seen {
    fn report<S: Sink>(&self, walk: &mut Walk<'_, S>, directory: &Path) {
        let mut find = |count: u64, state, what: &str| {
            if count > 0 {
                walk.plan.find(state, Some(directory), format!("{count} {what}"));
            }
        };
        let unknown = "operations belong to keyspaces that were dropped";
        find(self.unknown, State::Note, unknown);
        let skipped = "operations belong to keyspaces whose comparators were not given";
        find(self.skipped, State::Lost, skipped);
        find(self.senseless, State::Lost, "batches make no sense");
    }
}

/// Passes one batch to the sink, whole or not at all.
fn batch<S: Sink>(
    walk: &mut Walk<'_, S>,
    seen: &mut Seen,
    operations: u32,
    payload: &[u8],
    place: &Place<'_>,
) -> Result<()> {
    let mut count = 0u64;
    if !Ops::new(payload).all(|op| {
        count += 1;
        op.is_ok() && count <= u64::from(operations)
    }) {
        seen.senseless += 1;
        return Ok(());
    }
    // The branch that the next keyspace belongs to.
    let mut branch = 0;
    for op in Ops::new(payload).flatten() {
        match op {
            Op::InBranch { branch: next, .. } => branch = next,
            Op::CreateKeyspace { keyspace, name, comparator } => {
                let gone = branch != 0 && !place.source.branches.contains_key(&branch);
                if !(walk.spaces.contains_key(&keyspace) || gone && place.trusted) {
                    let comparator = Some(comparator).filter(|name| !name.is_empty());
                    let name = place.source.saved_name(name, branch);
                    walk.space(keyspace, &name, comparator)?;
                }
            }
            Op::DropKeyspace { keyspace } => {
                if let Some(home) = place.source.homes.get(&keyspace) {
                    seen.heirs.forget(keyspace, home);
                }
                walk.drop_space(keyspace)?;
            }
            Op::SetTraits { keyspace, operator, filter, ttl } => {
                let (operator, filter) = (operator.to_owned(), filter.to_owned());
                walk.set_traits(keyspace, &Traits { operator, filter, ttl })?;
            }
            _ => operation(walk, seen, op, place)?,
        }
    }
    Ok(())
}

/// Passes an operation to its keyspace and to the copies that branches made of it later. It is
/// counted once, however many keyspaces take it.
fn operation<S: Sink>(
    walk: &mut Walk<'_, S>,
    seen: &mut Seen,
    op: Op<'_>,
    place: &Place<'_>,
) -> Result<()> {
    let (own, position) = (op.keyspace(), place.position);
    if !walk.spaces.contains_key(&own) && !place.trusted {
        let name = format!("keyspace-{own}");
        let text = format!("keyspace {own} is not known: its operations are saved as {name:?}");
        walk.plan.find(State::Note, None, text);
        walk.space(own, &name, None)?;
    }
    let (mut saved, mut skipped) = (false, false);
    let homes = &place.source.homes;
    let reads = |copy: &KeyspaceId| {
        *copy != own && homes.get(copy).is_some_and(|home| home.id_at(*copy, position) == own)
    };
    // A plan only needs to know that one of them takes it.
    let copies = seen.heirs.of(own, position).take(if S::KEEPS { usize::MAX } else { 1 });
    for id in std::iter::once(own).chain(copies.filter(reads)) {
        match walk.spaces.get(&id).map(|space| space.number) {
            None => {}
            Some(None) => skipped = true,
            Some(Some(number)) => {
                saved = true;
                walk.sink.take(in_keyspace(op, number))?;
            }
        }
    }
    let count = match (saved, skipped) {
        (true, _) => &mut seen.operations,
        (false, true) => &mut seen.skipped,
        (false, false) => &mut seen.unknown,
    };
    *count += 1;
    Ok(())
}

fn in_keyspace(op: Op<'_>, keyspace: KeyspaceId) -> Op<'_> {
    match op {
        Op::Put { key, value, .. } => Op::Put { keyspace, key, value },
        Op::Delete { key, .. } => Op::Delete { keyspace, key },
        Op::DeleteRange { start, end, .. } => Op::DeleteRange { keyspace, start, end },
        Op::Special { kind, key, stored, .. } => Op::Special { keyspace, kind, key, stored },
        other => other,
    }
}
