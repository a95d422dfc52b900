//! What has turned cold or warm when a compaction asks.
//!
//! Segments turn by what is known of their readers and by what Zstandard would save of them
//! ([`crate::run::Turn`]). A value segment turns like any other, but its values move with their references, so
//! a partition moves only what it has of it: the rest stays where it is, and so does the value segment. Where there are
//! branches or named snapshots, it has to have all that anybody refers to.

use super::plan::Recoding;
use crate::base::Millis;
use crate::cache::BlockCache;
use crate::catalog::Catalog;
use crate::options::settings::{Cold, Settings};
use crate::run::{Segment, Turn, ValueMove};
use parking_lot::Mutex;
use std::sync::Arc;

/// When a compaction asks what has turned.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'m> {
    /// The time.
    pub now: Millis,
    /// Whether it is done for that.
    pub idle: bool,
    /// Where blocks are read that say what would be saved.
    pub cache: &'m Arc<BlockCache>,
    /// Whether there are no branches and no named snapshots.
    pub alone: bool,
}

impl<'m> Moment<'m> {
    /// The moment of a compaction at this time; `idle`: it is done for what has turned.
    pub fn new(
        (now, idle): (Millis, bool),
        catalog: &Mutex<Catalog>,
        cache: &'m Arc<BlockCache>,
    ) -> Self {
        Self { now, idle, cache, alone: !catalog.lock().is_branched() }
    }

    /// What becomes of a segment whose temperature has changed.
    pub(super) fn recoding(self, segment: &Segment, cold: Cold) -> Option<Recoding> {
        // Seeded: what is cold is compressed under load.
        let idle = self.idle || bug!("compaction_cools_beside_writes");
        match segment.turn(self.now, cold)? {
            Turn::Warm => Some(Recoding::Warms),
            Turn::Cold => {
                (idle && segment.is_worth_cooling(cold, self.cache)).then_some(Recoding::Cools)
            }
        }
    }

    /// Why a partition moves what it has of a value segment, if that has turned; `here`: bytes of its values to which
    /// the partition refers.
    pub(super) fn value_move(
        self,
        values: &Segment,
        settings: &Settings,
        here: impl FnOnce() -> u64,
    ) -> Option<ValueMove> {
        let cold = settings.cold?;
        // Seeded: values are compressed beside their keys only.
        bug!("compaction_values_never_turn", return None);
        // First whether it pays: then a look that asks again reads nothing.
        let why = match self.recoding(values, cold)? {
            Recoding::Cools => ValueMove::Cools,
            Recoding::Warms => ValueMove::Warms,
            Recoding::Settles => return None,
        };
        // A compaction that is due has not looked whether another tree shares the run segments themselves.
        // Seeded: values that a named snapshot of the same run segments keeps are written a second time.
        let may = self.alone || self.idle || bug!("compaction_due_moves_shared_values");
        (may && owns(self.alone, values, here)).then_some(why)
    }
}

/// Whether moving what a partition has of a value segment gives it back, sooner or later: what it does not have,
/// other partitions of its tree have; `here`: bytes of its values to which the partition refers.
pub fn owns(alone: bool, values: &Segment, here: impl FnOnce() -> u64) -> bool {
    // Seeded: values that another tree refers to are written a second time.
    alone || bug!("compaction_moves_values_of_other_trees") || here() >= values.referred_bytes()
}
