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

type Value = Option<Vec<u8>>;

/// The values under these keys, in their order, as of a moment, which is registered.
pub(super) fn get_together<K: AsRef<[u8]>>(
    core: &Arc<Core>,
    keyspace: &Arc<KeyspaceState>,
    keys: impl IntoIterator<Item = K>,
    at: Moment,
) -> Result<Vec<Value>> {
    let mut keys = keys.into_iter();
    let (mut values, mut group) = (Vec::with_capacity(keys.size_hint().0), Vec::new());
    loop {
        group.clear();
        group.extend(keys.by_ref().take(GROUP));
        if group.is_empty() {
            return Ok(values);
        }
        let first = values.len();
        values.resize_with(first + group.len(), || None);
        let values = &mut values[first..];
        let mut found = [false; GROUP];
        if group.len() > 1 && matches!(keyspace.order, Order::Bytewise) {
            core.check_open()?;
            get_cached(core, keyspace, &group, at, (values, &mut found))?;
            keyspace.check_there()?;
        }
        for ((key, value), _) in group.iter().zip(values).zip(found).filter(|(_, found)| !found) {
            *value = core.get(keyspace, key.as_ref(), Some(at), copy)?;
        }
    }
}

fn copy(value: Seen<'_>) -> Vec<u8> {
    value.bytes().to_vec()
}

/// Finds the keys for which memory answers: their values, and for which of them it did.
fn get_cached<K: AsRef<[u8]>>(
    core: &Core,
    keyspace: &Arc<KeyspaceState>,
    keys: &[K],
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
    for (key, place) in keys.iter().map(K::as_ref).zip(&mut places) {
        let hash = hash_key(key);
        *place = search(key).locate(hash, state, &guard).map(|place| (place, hash));
    }
    places.iter().flatten().for_each(|(place, _)| place.prefetch());
    let all = keys.iter().zip(places).zip(values.iter_mut().zip(found));
    for ((key, place), (value, found)) in all {
        let Some(place) = place else { continue };
        let answer = match search(key.as_ref()).finish(place, &guard, copy)? {
            Answer::Present(value) => Some(value),
            Answer::Absent => None,
            Answer::NeedsIo | Answer::Operand => continue,
        };
        // A call that is timed goes the other way.
        if core.counters.count(Counter::Gets).is_none() {
            continue;
        }
        place.0.count(lane, answer.is_some());
        (*value, *found) = (answer, true);
    }
    Ok(())
}
