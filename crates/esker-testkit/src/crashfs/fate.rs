//! What an unsynced change comes to when the power goes.

use std::ops::Range;

use super::image;
use crate::rng::Rng;

/// Decides what an unsynced change comes to when the power goes.
///
/// It decides first about changes of directory entries, in the order in which they were made, then
/// about files in the order of their creation.
pub trait Fate {
    /// Whether a change of a directory survives; it also needs the earlier ones of its names.
    fn entry(&mut self, number: usize, what: &str) -> bool;
    /// Which length a file has, between the durable and the live one.
    fn length(&mut self, inode: u64, durable: u64, live: u64) -> u64;
    /// Whether a block has its live content, rather than its durable one.
    fn block(&mut self, inode: u64, index: usize) -> bool;
    /// The stretches of live content in a block that otherwise keeps its durable one.
    fn pieces(&mut self, _inode: u64, _index: usize) -> Vec<Range<usize>> {
        Vec::new()
    }
}

/// What may survive of a block of 4 KiB whose writing a power cut interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tear {
    /// All of it or nothing.
    #[default]
    Never,
    /// Any of its sectors of 512 bytes.
    Sectors,
    /// What stands before one byte, or what stands from it on.
    Bytes,
}

/// The bytes that a disk writes as a whole.
const SECTOR: usize = 512;

/// Chance.
pub(super) struct Random {
    pub(super) rng: Rng,
    pub(super) percent: u32,
    pub(super) tear: Tear,
}

impl Fate for Random {
    fn entry(&mut self, _number: usize, _what: &str) -> bool {
        self.rng.percent(self.percent)
    }

    fn length(&mut self, _inode: u64, durable: u64, live: u64) -> u64 {
        if self.rng.percent(self.percent) {
            return live;
        }
        // An append may have arrived in part.
        if live > durable && self.percent > 0 && self.rng.percent(50) {
            return durable + self.rng.below(live - durable);
        }
        durable
    }

    fn block(&mut self, _inode: u64, _index: usize) -> bool {
        self.rng.percent(self.percent)
    }

    fn pieces(&mut self, _inode: u64, _index: usize) -> Vec<Range<usize>> {
        let block = image::BLOCK as usize;
        // At 0 nothing survives, in pieces neither.
        if self.percent == 0 || self.tear == Tear::Never || self.rng.percent(50) {
            return Vec::new();
        }
        if self.tear == Tear::Bytes {
            let at = self.rng.below(block as u64) as usize;
            return vec![if self.rng.percent(50) { 0..at } else { at..block }];
        }
        let sectors = (0..block / SECTOR).map(|sector| sector * SECTOR..(sector + 1) * SECTOR);
        sectors.filter(|_| self.rng.percent(50)).collect()
    }
}
