//! Reads of several keys of a keyspace as of one moment.

use crate::Result;
use crate::base::codec::hash_key;
use crate::base::{Bytewise, Moment};
use crate::catalog::{KeyspaceState, Order};
use crate::db::{Core, Seen};
use crate::lookup::together::Place;
use crate::lookup::{Answer, Asked, Search};
use crate::stats::counters::Counter;
use crate::sync::pin;
use std::sync::Arc;

/// Keys whose searches overlap: enough to hide what each waits for, few enough that what was fetched is still there.
const GROUP: usize = 32;
/// Values for which there is room before the first is found: callers may say that they have more keys than memory.
const ROOM_MAX: usize = 1024;
/// Once so many bytes were copied inside of one epoch, it ends: what is retired meanwhile waits for it.
const COPIED_BYTES_MAX: usize = 256 << 10;

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
        let mut found = [false; GROUP];
        if bytes.len() > 1 && matches!(keyspace.order, Order::Bytewise) {
            core.check_open()?;
            get_cached(core, keyspace, bytes, at, (values, &mut found))?;
            keyspace.check_there()?;
        }
        for ((key, value), _) in bytes.iter().zip(values).zip(found).filter(|(_, found)| !found) {
            *value = core.get(keyspace, key, Some(at), copy)?;
        }
    }
}

fn copy(value: Seen<'_>) -> Vec<u8> {
    value.bytes().to_vec()
}

/// Finds the keys for which memory answers: their values, and for which of them it did.
fn get_cached(
    core: &Core,
    keyspace: &Arc<KeyspaceState>,
    keys: &[&[u8]],
    at: Moment,
    (values, found): (&mut [Value], &mut [bool; GROUP]),
) -> Result<()> {
    let Some(lane) = core.counters.lane() else { return Ok(()) };
    let at = keyspace.moment(Some(at)).unwrap_or(at);
    let search = |key| {
        let asked = Asked { keyspace, key, at: Some(at), lane, leaves_pieces: false };
        let (clock, cache) = (&core.clock, &core.cache);
        Search { order: &Bytewise, asked, below: at.seq, clock, cache }
    };
    let guard = pin();
    let state = core.state.load(&guard);
    let mut places: [Option<(Place<'_>, u64)>; GROUP] = [None; GROUP];
    for (key, place) in keys.iter().zip(&mut places) {
        let hash = hash_key(key);
        *place = search(key).locate(hash, state, &guard).map(|place| (place, hash));
    }
    places.iter().flatten().for_each(|(place, _)| place.prefetch());
    let mut copied = 0;
    let all = keys.iter().zip(places).zip(values.iter_mut().zip(found));
    for ((key, place), (value, found)) in all {
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
        (*value, *found) = (answer, true);
    }
    Ok(())
}
