//! What a partition has of each value segment to which it refers.
//!
//! A look at temperatures asks for it for each use of a value segment that has turned, of which a partition may have
//! many. So the first question walks over all uses of the partition, and those that follow walk over none.

use crate::base::FileId;
use crate::manifest::Partition;
use std::cell::OnceCell;
use std::collections::HashMap;

/// A value segment, by its file and its offset.
type Place = (FileId, u64);

/// The uses of value segments by a partition, added up when somebody asks.
#[derive(Debug)]
pub struct Uses<'p> {
    part: &'p Partition,
    bytes: OnceCell<HashMap<Place, u64>>,
    /// The uses that were walked over.
    #[cfg(test)]
    steps: std::cell::Cell<usize>,
}

impl<'p> Uses<'p> {
    /// Those of a partition.
    pub fn of(part: &'p Partition) -> Self {
        Self {
            part,
            bytes: OnceCell::new(),
            #[cfg(test)]
            steps: std::cell::Cell::new(0),
        }
    }

    /// Bytes of the values of a value segment to which the partition refers.
    pub fn bytes(&self, place: Place) -> u64 {
        let of = |all: &HashMap<Place, u64>| all.get(&place).copied().unwrap_or(0);
        // Seeded: each use that has turned costs a walk over all uses of its partition.
        bug!("compaction_uses_walked_each_time", return of(&self.add_up()));
        of(self.bytes.get_or_init(|| self.add_up()))
    }

    fn add_up(&self) -> HashMap<Place, u64> {
        let mut all: HashMap<Place, u64> = HashMap::new();
        for used in self.part.run_segments().flat_map(|segment| &segment.meta().values) {
            #[cfg(test)]
            self.steps.set(self.steps.get() + 1);
            let bytes = all.entry(used.place()).or_default();
            *bytes = bytes.saturating_add(used.bytes);
        }
        all
    }
}

#[cfg(test)]
mod tests;
