//! What a key may show in a keyspace with a compaction filter.
//!
//! Nobody is told when a filter is asked. So all *states* are kept in which a key may be, each as the
//! writes that make up its value; a read tells in which of them the key was not.
//!
//! 1. A filter sees what the oldest writes of a key make up, whatever operands stand above them: the
//!    former may have come to the partition while the latter still waited in memory. It leaves nothing
//!    in their place, or a value that expires when they would have. Writes that expire at different
//!    times make up no value yet.
//! 2. A filter is asked in the present only. At a moment that a snapshot sees (a *frozen* model) a key
//!    is in one of the states that were possible then, and every read leaves those that it may have
//!    shown: so all reads must agree.
//! 3. In the present the states are closed: whatever a filter may make of one of them is another one.
//!    So a read that shows the filtered value ends the unfiltered one, and not the other way round.

use super::expected::Line;
use super::writes::{Moment, Pair, Write, merged};
use esker::{CompactionFilter, Decision};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Removes some values and cuts others, by the bytes that they begin with, and makes nothing more of
/// what it has made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trimmed;

impl CompactionFilter for Trimmed {
    fn name(&self) -> &str {
        "trimmed"
    }

    fn filter(&self, _: &[u8], value: &[u8]) -> Decision {
        // Less than it ever leaves of a value, so that it judges that as it did before.
        let sum: u32 = value.iter().take(4).map(|byte| u32::from(*byte)).sum();
        let len = match sum % 6 {
            0 => return Decision::Remove,
            1 => 8,
            // More than the shortest values that are kept apart from their keys.
            2 => 40,
            _ => return Decision::Keep,
        };
        match value.get(..len) {
            Some(cut) if cut.len() < value.len() => Decision::Change(cut.to_vec()),
            _ => Decision::Keep,
        }
    }
}

/// The writes that make up the value of a key. None of them has expired.
type State = Vec<Write>;

/// The states in which each key may be. A key that is not here has no value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct States(BTreeMap<Vec<u8>, Vec<State>>);

impl States {
    /// Adds a write of a key.
    pub(super) fn write(&mut self, moment: Moment, key: Vec<u8>, write: &Write) {
        let states = self.0.entry(key).or_default();
        if !write.merge {
            states.clear();
        }
        if states.is_empty() {
            states.push(State::new());
        }
        states.iter_mut().for_each(|state| state.push(write.clone()));
        settle(states, moment);
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        self.0.remove(key);
    }

    pub(super) fn remove_range(&mut self, bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>)) {
        let gone: Vec<_> = self.0.range(bounds).map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| drop(self.0.remove(key)));
    }

    /// Time went on, or a present begins.
    pub(super) fn tick(&mut self, moment: Moment) {
        self.0.retain(|_, states| {
            settle(states, moment);
            is_anything(states)
        });
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.0.keys()
    }

    /// The keys of which a read tells something.
    pub(super) fn open(&self) -> Vec<Vec<u8>> {
        let open = self.0.iter().filter(|(_, states)| states.len() > 1);
        open.map(|(key, _)| key.clone()).collect()
    }

    /// What a key may show.
    pub(super) fn shown(&self, key: &[u8]) -> Vec<Option<Pair>> {
        self.0.get(key).map_or_else(|| vec![None], |states| all_shown(states))
    }

    /// What the keys within bounds may show.
    pub(super) fn lines(&self, bounds: (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Vec<Line> {
        let lines = self.0.range(bounds).filter_map(|(_, states)| {
            let shown = all_shown(states);
            let key = shown.iter().flatten().next()?.0.clone();
            Some(Line { key, shown })
        });
        lines.collect()
    }

    /// Leaves the states of a key that show what fits.
    pub(super) fn learn(
        &mut self,
        moment: Moment,
        key: &[u8],
        fits: impl Fn(Option<&Pair>) -> bool,
    ) {
        let Some(states) = self.0.get_mut(key) else { return };
        states.retain(|state| fits(made_up(state).as_ref()));
        settle(states, moment);
        if !is_anything(states) {
            self.0.remove(key);
        }
    }

    /// Leaves the states of which a filter that was asked about everything makes nothing else. Of
    /// writes that expire at different times it need not have been asked.
    pub(super) fn filter_all(&mut self) {
        let is_left = |state: &State| {
            let kept = |(key, value): Pair| Trimmed.filter(&key, &value) == Decision::Keep;
            alike(state) < state.len() || made_up(state).is_none_or(kept)
        };
        self.0.retain(|_, states| {
            states.retain(is_left);
            is_anything(states)
        });
    }
}

fn is_anything(states: &[State]) -> bool {
    states.iter().any(|state| !state.is_empty())
}

fn all_shown(states: &[State]) -> Vec<Option<Pair>> {
    states.iter().map(|state| made_up(state)).collect()
}

/// What writes make up: a value and operands, or operands alone.
fn made_up(writes: &[Write]) -> Option<Pair> {
    let mut made: Option<Pair> = None;
    for Write { pair: (key, value), .. } in writes {
        let existing = made.as_ref().map(|(_, value)| &value[..]);
        made = Some((key.clone(), merged(existing, value)));
    }
    made
}

/// How many of the oldest writes expire when the oldest does.
fn alike(state: &[Write]) -> usize {
    let expiry = state.first().and_then(|write| write.expiry);
    state.iter().take_while(|write| write.expiry == expiry).count()
}

/// What a filter may make of a state: it may be asked about each stretch of its oldest writes.
fn filtered(state: &[Write]) -> Vec<State> {
    let of_stretch = |count: usize| -> Option<State> {
        let (old, above) = state.split_at(count);
        let expiry = old.first()?.expiry;
        let (key, value) = made_up(old)?;
        let left = match Trimmed.filter(&key, &value) {
            Decision::Keep => return None,
            Decision::Remove => None,
            Decision::Change(value) => Some(Write { pair: (key, value), merge: false, expiry }),
        };
        Some(left.into_iter().chain(above.iter().cloned()).collect())
    };
    (1..=alike(state)).filter_map(of_stretch).collect()
}

/// Drops what has expired; in the present, adds what a filter may make.
fn settle(states: &mut Vec<State>, moment: Moment) {
    let mut pending = std::mem::take(states);
    while let Some(mut state) = pending.pop() {
        state.retain(|write| write.expiry.is_none_or(|expiry| expiry > moment.now));
        if states.contains(&state) {
            continue;
        }
        if !moment.frozen {
            pending.extend(filtered(&state));
        }
        states.push(state);
    }
}

#[cfg(test)]
mod tests;
