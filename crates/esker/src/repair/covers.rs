//! What range tombstones of several runs cover, for keys that ascend.
//!
//! Each list is searched again only where its answer ends, so a walk over a partition costs one
//! step for each stretch of each list, and not one for each list and entry.

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

/// Where the answer of a list ends: the first key behind, and the list.
type End = (Vec<u8>, usize);

/// The answers of all lists at the present key.
pub(super) struct Covering {
    covers: Vec<Cover>,
    /// Where answers end, the first of them first.
    ends: Heap<End>,
    /// The answers that there are: rank, sequence number, list.
    answers: BTreeSet<(usize, Seq, usize)>,
    present: Vec<Option<(usize, Seq)>>,
    begun: bool,
}

impl Covering {
    pub(super) fn new(covers: Vec<Cover>) -> Self {
        let present = vec![None; covers.len()];
        Self { covers, ends: Heap::new(), answers: BTreeSet::new(), present, begun: false }
    }

    /// The newest tombstone that covers `key`: the rank of its run, and its sequence number. Of
    /// runs of a higher rank nothing more needs to be known, as all of them is newer. Keys ascend
    /// from call to call.
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
