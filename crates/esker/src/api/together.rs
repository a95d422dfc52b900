//! Reads of several keys of a keyspace as of one moment.

use crate::Result;
use crate::base::codec::hash_key;
use crate::base::{Bytewise, Moment, Seq};
use crate::catalog::{KeyspaceState, Order};
use crate::db::{Core, Seen};
use crate::lookup::together::{Place, awaited};
use crate::lookup::{Answer, Asked};
use crate::run::{Awaited, Wanted};
use crate::stats::counters::Counter;
use crate::sync::pin;
use crate::trace::tally::waits_for_device;
use std::sync::Arc;

/// Keys whose searches overlap: enough to hide what each waits for, few enough that what was fetched is still there.
const GROUP: usize = 32;
/// Values for which there is room before the first is found: callers may say that they have more keys than memory.
const ROOM_MAX: usize = 1024;
/// Once so many bytes were copied inside of one epoch, it ends: what is retired meanwhile waits for it.
const COPIED_BYTES_MAX: usize = 256 << 10;

/// How many indexes, one behind the other, a key may wait for before its block is asked for.
const INDEXES_MAX: usize = 4;
/// Of a group so many bytes are asked for at once: they wait in the page cache until they are read.
const ASKED_BYTES_MAX: u64 = 4 << 20;

/// What memory has of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// The value, or that there is none; it was taken.
    Answered,
    /// The first block in which a search looks.
    HasBlock,
    /// That block is not there, or was not found.
    Unknown,
}

type Value = Option<Vec<u8>>;

/// The values under these keys, in their order, as of a moment, which is registered.
pub(super) fn get_together<K: AsRef<[u8]>>(
    core: &Arc<Core>,
    keyspace: &Arc<KeyspaceState>,
    keys: impl IntoIterator<Item = K>,
    at: Moment,
) -> Result<Vec<Value>> {
    let mut keys = keys.into_iter();
    let room = keys.size_hint().0.min(ROOM_MAX);
    let (mut values, mut group) = (Vec::with_capacity(room), Vec::new());
    loop {
        group.clear();
        group.extend(keys.by_ref().take(GROUP));
        if group.is_empty() {
            return Ok(values);
        }
        // Each is asked for its bytes once, and before the epoch: that is the caller's code.
        let mut bytes: [&[u8]; GROUP] = [&[]; GROUP];
        group.iter().zip(&mut bytes).for_each(|(key, bytes)| *bytes = K::as_ref(key));
        let bytes = &bytes[..group.len()];
        let first = values.len();
        values.resize_with(first + group.len(), || None);
        let values = &mut values[first..];
        let mut memory = [Memory::Unknown; GROUP];
        let together = bytes.len() > 1 && matches!(keyspace.order, Order::Bytewise);
        if together {
            core.check_open()?;
            get_cached(core, keyspace, bytes, at, (values, &mut memory))?;
            keyspace.check_there()?;
        }
        get_others(core, (keyspace, at, together), bytes, (values, &memory))?;
    }
}

/// Finds the keys for which memory did not answer; if `together`, asks the system for what they read at once.
///
/// Where the last reads all came from the page cache, the next will, too, and nothing is asked for: to find out what is
/// takes as long as to read it. A few reads that wait for the device end that.
fn get_others(
    core: &Arc<Core>,
    (keyspace, at, together): (&Arc<KeyspaceState>, Moment, bool),
    keys: &[&[u8]],
    (values, memory): (&mut [Value], &[Memory; GROUP]),
) -> Result<()> {
    let mut asks = together;
    for at_key in 0..keys.len() {
        if memory[at_key] == Memory::Answered {
            continue;
        }
        // Seeded: what was in the page cache once is taken to be there for ever.
        if asks && waits_for_device() && !bug!("api_asks_no_more") {
            asks = false;
            let unknown = keys.iter().zip(memory).skip(at_key);
            let unknown = unknown.filter(|(_, has)| **has == Memory::Unknown);
            ask_ahead(core, keyspace, at, unknown.map(|(key, _)| *key).collect());
        }
        values[at_key] = core.get(keyspace, keys[at_key], Some(at), copy)?;
    }
    Ok(())
}

fn copy(value: Seen<'_>) -> Vec<u8> {
    value.bytes().to_vec()
}

/// Asks the system for what the searches of these keys will read, all at once, so that they do not wait for one block
/// after the other. Only an index that was read says what comes after it: so its keys ask once more.
fn ask_ahead(core: &Core, keyspace: &KeyspaceState, at: Moment, mut keys: Vec<&[u8]>) {
    let below = keyspace.moment(Some(at)).unwrap_or(at).seq;
    let (mut asked, mut ranges, mut room) = (Vec::new(), Vec::new(), ASKED_BYTES_MAX);
    for round in 0..INDEXES_MAX {
        // A key alone waits for nothing else.
        if keys.is_empty() || (round == 0 && keys.len() < 2) {
            return;
        }
        let known = asked.len();
        keys = awaited_by(core, keyspace, below, &keys, &mut asked);
        if asked.len() < 2 {
            return;
        }
        for range in asked[known..].iter().filter_map(Awaited::place) {
            // Keys in blocks that are read together wait for the same bytes.
            if range.len <= room && !ranges.contains(&range) {
                room -= range.len;
                range.ask();
                ranges.push(range);
            }
        }
        // What is not kept would be read twice.
        if !core.cache.keeps_indexes() {
            return;
        }
        // A search that meets the same error reports it.
        let indexes = asked[known..].iter().filter(|awaited| awaited.is_index());
        indexes.for_each(|index| _ = index.load(&core.cache));
    }
}

/// Adds what the searches of these keys read first, each once, and returns the keys for which that is an index.
fn awaited_by<'k>(
    core: &Core,
    keyspace: &KeyspaceState,
    below: Seq,
    keys: &[&'k [u8]],
    all: &mut Vec<Awaited>,
) -> Vec<&'k [u8]> {
    let mut behind_indexes = Vec::new();
    let guard = pin();
    let state = core.state.load(&guard);
    for key in keys {
        let wanted = Wanted { key, hash: hash_key(key), below, doubtful: false };
        if let Some(read) = awaited(&Bytewise, keyspace, wanted, (state, &guard)) {
            if read.is_index() {
                behind_indexes.push(*key);
            }
            if !all.iter().any(|other| read.is(other)) {
                all.push(read);
            }
        }
    }
    behind_indexes
}

/// Finds the keys for which memory answers: their values, and for which of them it did.
fn get_cached(
    core: &Core,
    keyspace: &Arc<KeyspaceState>,
    keys: &[&[u8]],
    at: Moment,
    (values, memory): (&mut [Value], &mut [Memory; GROUP]),
) -> Result<()> {
    let Some(lane) = core.counters.lane() else { return Ok(()) };
    let at = keyspace.moment(Some(at)).unwrap_or(at);
    let search = |key| {
        let asked = Asked { keyspace, key, at: Some(at), lane, leaves_pieces: false };
        core.search(&Bytewise, asked, at.seq)
    };
    let guard = pin();
    let state = core.state.load(&guard);
    let mut places: [Option<(Place<'_>, u64)>; GROUP] = [None; GROUP];
    for (key, place) in keys.iter().zip(&mut places) {
        let hash = hash_key(key);
        *place = search(key).locate(hash, state, &guard).map(|place| (place, hash));
    }
    places.iter().flatten().for_each(|(place, _)| place.prefetch());
    for (place, memory) in places.iter().zip(&mut *memory) {
        if place.is_some_and(|(place, _)| place.is_in_memory()) {
            *memory = Memory::HasBlock;
        }
    }
    let mut copied = 0;
    let all = keys.iter().zip(places).zip(values.iter_mut().zip(memory));
    for ((key, place), (value, memory)) in all {
        let Some(place) = place else { continue };
        if copied > COPIED_BYTES_MAX {
            break;
        }
        let answer = match search(key).finish(place, &guard, copy)? {
            Answer::Present(value) => Some(value),
            Answer::Absent => None,
            Answer::NeedsIo | Answer::Operand => continue,
        };
        // A call that is timed goes the other way.
        if core.counters.count(Counter::Gets).is_none() {
            continue;
        }
        copied += answer.as_ref().map_or(0, Vec::len);
        place.0.count(lane, answer.is_some());
        (*value, *memory) = (answer, Memory::Answered);
    }
    Ok(())
}
