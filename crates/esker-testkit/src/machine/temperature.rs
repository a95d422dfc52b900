//! Data turns cold and warm: time passes in which nobody reads, and then everything is read.

use super::Machine;
use crate::model::Op;
use esker::Durability;

impl Machine {
    /// Lets time go on.
    pub(super) fn pass(&mut self, millis: u64) {
        let now = self.model.now() + millis;
        self.clock.set(now);
        self.one(&Op::Tick(now), Durability::Process);
        self.tick_forks(now);
    }

    /// Waits until the background rests, in some databases until what nobody reads has turned cold. What is
    /// read once there is warm again.
    pub(super) fn rest(&mut self) {
        self.wait_until_idle();
        if !self.cools {
            return;
        }
        for _ in 0..4 {
            self.pass(15);
            self.wait_until_idle();
        }
        if self.model.now().is_multiple_of(2) {
            self.check_all();
            self.pass(10);
            self.wait_until_idle();
        }
    }
}
