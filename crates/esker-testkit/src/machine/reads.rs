//! Steps of the machine that read keys and the ends of keyspaces, in the present and as of snapshots.

use super::Machine;
use crate::harness::{self, keyspace};
use crate::model::{Model, Pair};
use std::fmt::Arguments;
use std::ops::Bound;

/// What a read of a key has found.
#[derive(Debug)]
pub(super) enum Found {
    /// Whether there is a value.
    There(bool),
    /// The value.
    Value(Option<Vec<u8>>),
}

impl Found {
    /// Whether it is what a key may show.
    fn fits(&self, shown: Option<&Pair>) -> bool {
        match self {
            Self::There(there) => shown.is_some() == *there,
            Self::Value(value) => shown.map(|(_, value)| value) == value.as_ref(),
        }
    }

    /// Fails if a key may not show it; otherwise the model knows from then on that the key has shown it.
    /// `who`: who has read.
    pub(super) fn check(&self, model: &mut Model, slot: usize, key: &[u8], who: Arguments<'_>) {
        assert!(
            model.see(slot, key, |shown| self.fits(shown)),
            "{who}, slot {slot}, key {}: {}, not {}",
            key.escape_ascii(),
            self.told(),
            model.told(slot, key),
        );
    }

    /// It, for people.
    fn told(&self) -> String {
        match self {
            Self::There(there) => format!("there: {there}"),
            Self::Value(value) => {
                format!("{:?}", value.as_ref().map(|value| value.escape_ascii().to_string()))
            }
        }
    }
}

/// An entry as iterators lend it.
pub(super) fn lent((key, value): &Pair) -> (&[u8], &[u8]) {
    (&key[..], &value[..])
}

impl Machine {
    /// A held snapshot that knows the present keyspace of a slot, or none for the present.
    pub(super) fn moment(&mut self, slot: usize) -> Option<usize> {
        let known: Vec<_> = (0..self.held.len())
            .filter(|index| self.held[*index].born[slot] == self.born[slot])
            .filter(|index| self.held[*index].model.map(slot).is_some())
            .collect();
        (!known.is_empty() && self.percent(40)).then(|| known[self.below(known.len())])
    }

    /// The model of a held snapshot, or of the present.
    fn model_at(&mut self, moment: Option<usize>) -> &mut Model {
        match moment {
            Some(index) => &mut self.held[index].model,
            None => &mut self.model,
        }
    }

    pub(super) fn point_reads(&mut self) {
        let slot = self.make.slot(&self.model);
        let moment = self.moment(slot);
        let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        for _ in 0..1 + self.below(4) {
            let key = self.make.key(slot);
            let how = self.below(3);
            let found = match (moment.map(|index| &self.held[index].snapshot), how) {
                (Some(snapshot), 0) => snapshot.contains_key(&handle, &key).map(Found::There),
                (Some(snapshot), 1) => {
                    let reader = snapshot.get_reader(&handle, &key);
                    reader.map(|reader| Found::Value(harness::drain(reader)))
                }
                (Some(snapshot), _) => snapshot.get(&handle, &key).map(Found::Value),
                (None, 0) => harness::get_either_way(&handle, &key).map(Found::Value),
                (None, 1) => {
                    let mut value = b"old".to_vec();
                    let there = handle.get_into(&key, &mut value);
                    there.map(|there| Found::Value(there.then_some(value)))
                }
                (None, _) => handle.contains_key(&key).map(Found::There),
            };
            let found = found.unwrap_or_else(|e| panic!("get: {e}"));
            let who = format_args!("snapshot {moment:?}");
            found.check(self.model_at(moment), slot, &key, who);
        }
    }

    pub(super) fn multi_get(&mut self) {
        let slot = self.make.slot(&self.model);
        let count = self.below(20);
        let keys: Vec<_> = (0..count).map(|_| self.make.key(slot)).collect();
        let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let found = handle.multi_get(&keys).unwrap_or_else(|e| panic!("multi_get: {e}"));
        assert_eq!(found.len(), keys.len(), "multi_get of slot {slot}");
        for (key, found) in keys.iter().zip(found) {
            Found::Value(found).check(&mut self.model, slot, key, format_args!("multi_get"));
        }
    }

    pub(super) fn ends(&mut self) {
        let slot = self.make.slot(&self.model);
        let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let map = self.model.map(slot).unwrap_or_else(|| unreachable!("the slot is live"));
        let first = handle.first_key_value().unwrap_or_else(|e| panic!("first: {e}"));
        let last = handle.last_key_value().unwrap_or_else(|e| panic!("last: {e}"));
        for (forward, found) in [(true, first), (false, last)] {
            let mut expected = map.expected(Bound::Unbounded, Bound::Unbounded);
            assert!(
                expected.take(forward, found.as_ref().map(lent)),
                "an end of slot {slot}, forward {forward}: {:?}, not at {}",
                found.map(|(key, _)| key.escape_ascii().to_string()),
                expected.told(),
            );
        }
    }
}
