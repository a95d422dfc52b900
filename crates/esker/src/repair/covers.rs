//! Finds the range tombstones of several runs that cover ascending keys.
//!
//! A list is searched again only where its last result ends, so a walk over a partition costs one
//! step per stretch of each list, not one per list and entry.

use super::heap::Heap;
use crate::base::rangedel::Fragments;
use crate::base::{KeyOrder, SEQ_MAX, Seq};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Range tombstones of a run.
pub(super) struct Cover {
    pub rank: usize,
    pub fragments: Arc<Fragments>,
}

/// Where the result of a list ends: the first key behind it, and the list.
type End = (Vec<u8>, usize);

/// The results of all lists at the present key.
pub(super) struct Covering {
    covers: Vec<Cover>,
    /// The ends of the results, in key order.
    ends: Heap<End>,
    /// The results that cover the key: rank, sequence number, list.
    answers: BTreeSet<(usize, Seq, usize)>,
    present: Vec<Option<(usize, Seq)>>,
    begun: bool,
}

impl Covering {
    pub(super) fn new(covers: Vec<Cover>) -> Self {
        let present = vec![None; covers.len()];
        Self { covers, ends: Heap::new(), answers: BTreeSet::new(), present, begun: false }
    }

    /// The newest tombstone that covers `key`: the rank of its run, and its sequence number. For a
    /// run of a higher rank than this, no more is needed, since all of its entries are newer. Keys
    /// ascend from call to call.
    pub(super) fn newest<O: KeyOrder>(&mut self, order: &O, key: &[u8]) -> Option<(usize, Seq)> {
        if !self.begun {
            self.begun = true;
            (0..self.covers.len()).for_each(|list| self.ask(order, list, key));
        }
        while let Some((_, list)) =
            self.ends.first().filter(|(end, _)| order.compare(end, key).is_le())
        {
            let list = *list;
            self.ends.pop(&earlier(order));
            self.ask(order, list, key);
        }
        self.answers.last().map(|(rank, seq, _)| (*rank, *seq))
    }

    fn ask<O: KeyOrder>(&mut self, order: &O, list: usize, key: &[u8]) {
        if let Some((rank, seq)) = self.present[list].take() {
            self.answers.remove(&(rank, seq, list));
        }
        let cover = &self.covers[list];
        let found = cover.fragments.covering(order, key, SEQ_MAX);
        if found.seqs > 0 {
            self.present[list] = Some((cover.rank, found.seqs));
            self.answers.insert((cover.rank, found.seqs, list));
        }
        if let Some(end) = found.end {
            self.ends.push((end.to_vec(), list), &earlier(order));
        }
    }
}

fn earlier<O: KeyOrder>(order: &O) -> impl Fn(&End, &End) -> bool {
    |a, b| order.compare(&a.0, &b.0).is_lt()
}
