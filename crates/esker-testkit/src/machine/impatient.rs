//! Writes of the machine that do not wait: they are done as others are, or have written nothing.

use super::Machine;
use crate::harness;
use crate::model::Op;
use esker::{Durability, Error};

/// Writes of a flood, and their bytes: more than all memtables have room for.
const FLOOD: usize = 40;
const FLOOD_BYTES: usize = 3_000;

impl Machine {
    /// Whether the next write does not wait.
    pub(super) fn is_impatient(&mut self) -> bool {
        self.habits.impatient && self.percent(40)
    }

    /// A write that does not wait, or, while the background is held, so many that at last one is refused.
    pub(super) fn write_impatiently(&mut self, op: Op, durability: Durability) {
        if !self.keeper.is_held() || self.percent(98) {
            if self.try_to_write(std::slice::from_ref(&op), durability) {
                self.wrote_one(&op);
            }
            return;
        }
        for _ in 0..FLOOD {
            let slot = self.make.slot(&self.model);
            let (key, mut value) = (self.make.key(slot), self.make.value());
            value.resize(value.len().max(FLOOD_BYTES), b'x');
            let op = Op::Put(slot, key, value);
            if !self.try_to_write(std::slice::from_ref(&op), durability) {
                return;
            }
            self.wrote_one(&op);
            // A set of memtables may end behind each of them, and there a checkpoint.
            self.note_for_checkpoint();
        }
    }

    /// Writes without a wait; whether it was done. What is not done is in no model, so every read from now on
    /// checks that nothing of it was written.
    pub(super) fn try_to_write(&mut self, ops: &[Op], durability: Durability) -> bool {
        let done = match harness::try_write(self.db(), ops, durability) {
            Ok(()) => true,
            Err(Error::WouldBlock { retry_after, .. }) => {
                assert!(!retry_after.is_zero(), "a write may be tried again at once");
                self.reached.refused += 1;
                return false;
            }
            Err(Error::BatchTooLarge { .. }) => false,
            Err(error) => panic!("{ops:?}, without a wait: {error}"),
        };
        self.reached.unwaited += u64::from(done);
        done
    }
}
