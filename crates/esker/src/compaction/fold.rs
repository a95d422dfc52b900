//! How a compaction treats operands, entries that expire, and values for the compaction filter.
//!
//! The stream collects the operands of a key in one stripe from newest to oldest, until it finds
//! another version of the stripe below them, or knows that there is none. Then
//!
//! 1. what has expired for every reader that sees it is dropped: operands count as not written, a
//!    put as a delete (it still hides what is older);
//! 2. operands are applied to the value below them if both expire at the same time, or never. The
//!    result has the sequence number of the newest operand. If the times differ, the value of the
//!    key still changes with time, so they stay apart until one of them has expired;
//! 3. operands that stay, are adjacent and expire at the same time are combined into one if the
//!    operator can do that;
//! 4. if the operator fails or is missing, everything stays as it is: readers get the error, and
//!    nothing is lost.
//!
//! A compaction filter sees values only, in compactions to the bottom, and only in the newest
//! stripe: no snapshot sees that one (R21).

use super::counts::CompactionCounts;
use super::gc::VersionGc;
use crate::base::limits::VALUE_BYTES_MAX;
use crate::base::{
    Decision, EXPIRY_BYTES, Filter, Kind, Millis, Operands, Operator, SEQ_MAX, Seq, expired, join,
    split,
};
use crate::error::{Error, Result};
use std::sync::Arc;

/// Receives the surviving entries of a compaction.
pub trait Out: FnMut(&[u8], Seq, Kind, &[u8]) -> Result<()> {}
impl<F: FnMut(&[u8], Seq, Kind, &[u8]) -> Result<()>> Out for F {}

/// What lies below operands.
pub(super) enum Base<'a> {
    /// It is not known here.
    Unknown,
    /// There is nothing.
    Absent,
    /// A delete; it may still hide something.
    Delete(Seq),
    /// A value that has expired for every reader, so it counts as a delete.
    Expired(Seq),
    /// A value in its stored form.
    Value(Seq, Kind, &'a [u8]),
}

/// Collects operands and applies them.
#[derive(Debug, Default)]
pub(super) struct Folding {
    operator: Option<Arc<Operator>>,
    filter: Option<Filter>,
    pending: Operands,
    /// The key of the newest pending operand: a custom comparator may call different keys equal.
    key: Vec<u8>,
    /// The end of the stripe of the pending operands.
    stripe: Seq,
}

/// Operands that stay, and what lies below them.
struct Folded {
    /// How many of the newest operands stay.
    kept: usize,
    /// The value from the older operands, and its sequence number, if they were applied; `None`
    /// inside: the operator says that there is no value.
    made: Option<(Seq, Option<Millis>, Option<Vec<u8>>)>,
}

impl Folding {
    pub(super) fn set_operator(&mut self, operator: Arc<Operator>) {
        self.operator = Some(operator);
    }

    pub(super) fn set_filter(&mut self, filter: Option<Filter>) {
        self.filter = filter;
    }

    /// Whether a compaction filter is set.
    #[inline]
    pub(super) fn filters(&self) -> bool {
        self.filter.is_some()
    }

    /// Whether operands are pending.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The end of the stripe of the pending operands.
    pub(super) fn stripe(&self) -> Seq {
        self.stripe
    }

    /// Adds an operand that is older than the pending ones.
    pub(super) fn push(&mut self, stripe: Seq, key: &[u8], seq: Seq, kind: Kind, stored: &[u8]) {
        if self.pending.is_empty() {
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        self.stripe = stripe;
        self.pending.push(seq, kind, stored);
    }

    /// Hands over the result of the pending operands and `base`.
    pub(super) fn settle(
        &mut self,
        gc: &VersionGc,
        counts: &mut CompactionCounts,
        base: Base<'_>,
        out: &mut impl Out,
    ) -> Result<()> {
        let mut operands = std::mem::take(&mut self.pending);
        let time = gc.stripe_time(self.stripe);
        counts.expired += operands.drop_expired(time) as u64;
        let base = match base {
            // Seeded: operands are applied to a value that has expired.
            Base::Value(..) if bug!("compaction_operands_on_expired_value") => base,
            Base::Value(seq, kind, stored) if expired(split(kind, stored).0, time) => {
                counts.expired += 1;
                Base::Expired(seq)
            }
            base => base,
        };
        let folded = self.fold(&self.key, &operands, &base);
        let result = self.hand_over(gc, counts, &operands, folded, base, out);
        operands.clear();
        self.pending = operands;
        result
    }

    /// Rule 2.
    fn fold(&self, key: &[u8], operands: &Operands, base: &Base<'_>) -> Folded {
        let nothing = Folded { kept: operands.len(), made: None };
        let (existing, class) = match base {
            Base::Unknown => return nothing,
            Base::Absent | Base::Delete(_) | Base::Expired(_) => (None, None),
            Base::Value(_, kind, stored) => {
                let (expiry, value) = split(*kind, stored);
                (Some(value), Some(expiry))
            }
        };
        let Some(oldest) = operands.len().checked_sub(1) else { return nothing };
        let class = class.unwrap_or(operands.get(oldest).1);
        let applied = (0..operands.len()).rev().take_while(|i| operands.get(*i).1 == class).count();
        if applied == 0 {
            return nothing;
        }
        let kept = operands.len() - applied;
        let list: Vec<&[u8]> = (kept..operands.len()).rev().map(|i| operands.get(i).2).collect();
        // Seeded: a compaction applies operands from new to old.
        let list = if bug!("compaction_operands_in_wrong_order") {
            list.into_iter().rev().collect()
        } else {
            list
        };
        let Some(operator) = &self.operator else { return nothing };
        match operator.full_merge(key, existing, &list) {
            Ok(value) if value.as_ref().is_none_or(|value| fits(value)) => {
                Folded { kept, made: Some((operands.get(kept).0, class, value)) }
            }
            Ok(_) => nothing,
            Err(error) => {
                // Readers of the key get this error; a compaction has no caller to return it to.
                log::debug!("operands are kept: {error}");
                nothing
            }
        }
    }

    fn hand_over(
        &self,
        gc: &VersionGc,
        counts: &mut CompactionCounts,
        operands: &Operands,
        folded: Folded,
        base: Base<'_>,
        out: &mut impl Out,
    ) -> Result<()> {
        let key = &self.key[..];
        self.hand_over_operands(counts, key, operands, folded.kept, out)?;
        if let Some((seq, expiry, value)) = folded.made {
            counts.folded += (operands.len() - folded.kept) as u64;
            counts.folded += u64::from(matches!(base, Base::Value(..) | Base::Delete(_)));
            // The result is a new entry; the counters count only entries that were read.
            counts.folded -= 1;
            return match (value, expiry) {
                (None, _) => delete(gc, counts, Origin::Delete, self.stripe, key, seq, out),
                (Some(value), None) => {
                    self.under(folded.kept, gc, counts, (seq, Kind::Put, &value), out)
                }
                (Some(value), Some(expiry)) => {
                    let mut stored = Vec::with_capacity(EXPIRY_BYTES + value.len());
                    join(expiry, &value, &mut stored);
                    let entry = (seq, Kind::ExpiringPut, &stored[..]);
                    self.under(folded.kept, gc, counts, entry, out)
                }
            };
        }
        match base {
            Base::Unknown | Base::Absent => Ok(()),
            Base::Delete(seq) => delete(gc, counts, Origin::Delete, self.stripe, key, seq, out),
            Base::Expired(seq) => delete(gc, counts, Origin::Removed, self.stripe, key, seq, out),
            Base::Value(seq, kind, stored) => {
                self.under(folded.kept, gc, counts, (seq, kind, stored), out)
            }
        }
    }

    /// Hands over a value under so many operands. A filter does not see a value that operands change.
    fn under(
        &self,
        operands: usize,
        gc: &VersionGc,
        counts: &mut CompactionCounts,
        (seq, kind, stored): (Seq, Kind, &[u8]),
        out: &mut impl Out,
    ) -> Result<()> {
        // Seeded: a filter removes a value that newer operands change.
        if operands > 0 && !bug!("compaction_filter_under_kept_operands") {
            counts.entries_out += 1;
            let seq = if gc.is_settled(self.stripe) { 0 } else { seq };
            return out(&self.key, seq, kind, stored);
        }
        self.value(gc, counts, self.stripe, &self.key, (seq, kind, stored), out)
    }

    /// Rule 3.
    fn hand_over_operands(
        &self,
        counts: &mut CompactionCounts,
        key: &[u8],
        operands: &Operands,
        kept: usize,
        out: &mut impl Out,
    ) -> Result<()> {
        let mut at = 0;
        while at < kept {
            let (seq, expiry, operand) = operands.get(at);
            let alike = (at..kept).take_while(|i| operands.get(*i).1 == expiry).count();
            let list: Vec<&[u8]> = (at..at + alike).rev().map(|i| operands.get(i).2).collect();
            let joined = (alike > 1)
                .then(|| self.operator.as_ref()?.partial_merge(key, &list))
                .flatten()
                .filter(|joined| fits(joined));
            let (operand, passed) = match &joined {
                Some(joined) => (&joined[..], alike),
                None => (operand, 1),
            };
            counts.folded += passed as u64 - 1;
            counts.entries_out += 1;
            match expiry {
                None => out(key, seq, Kind::Merge, operand)?,
                Some(expiry) => {
                    let mut stored = Vec::with_capacity(EXPIRY_BYTES + operand.len());
                    join(expiry, operand, &mut stored);
                    out(key, seq, Kind::ExpiringMerge, &stored)?;
                }
            }
            at += passed;
        }
        Ok(())
    }

    /// Hands over a value that no newer entry hides, unless it has expired or the filter removes
    /// it.
    pub(super) fn value(
        &self,
        gc: &VersionGc,
        counts: &mut CompactionCounts,
        stripe: Seq,
        key: &[u8],
        (seq, kind, stored): (Seq, Kind, &[u8]),
        out: &mut impl Out,
    ) -> Result<()> {
        let (expiry, value) = split(kind, stored);
        if expired(expiry, gc.stripe_time(stripe)) {
            counts.expired += 1;
            return delete(gc, counts, Origin::Removed, stripe, key, seq, out);
        }
        let kept = if gc.is_settled(stripe) { 0 } else { seq };
        // The end of the newest stripe is no snapshot.
        // Seeded: a compaction filter removes what a snapshot sees.
        let stripe = if bug!("compaction_filter_ignores_snapshots") { SEQ_MAX } else { stripe };
        let asked = self.filter.as_ref().filter(|_| stripe == SEQ_MAX && gc.is_bottom());
        match asked.map_or(Decision::Keep, |filter| filter.decide(key, value)) {
            Decision::Keep => {}
            Decision::Remove => {
                counts.filtered += 1;
                return delete(gc, counts, Origin::Removed, stripe, key, seq, out);
            }
            Decision::Change(changed) if fits(&changed) => {
                counts.filtered_changed += 1;
                counts.entries_out += 1;
                let Some(expiry) = expiry else { return out(key, kept, kind, &changed) };
                let mut stored = Vec::with_capacity(EXPIRY_BYTES + changed.len());
                join(expiry, &changed, &mut stored);
                return out(key, kept, kind, &stored);
            }
            Decision::Change(changed) => {
                let (len, max) = (changed.len() as u64, VALUE_BYTES_MAX);
                log::warn!(
                    "a compaction filter's value is ignored: {}",
                    Error::ValueTooLarge { len, max }
                );
            }
        }
        counts.entries_out += 1;
        out(key, kept, kind, stored)
    }
}

/// Whether a value can be stored, including its expiry time.
fn fits(value: &[u8]) -> bool {
    value.len() as u64 <= VALUE_BYTES_MAX - EXPIRY_BYTES as u64
}

/// The origin of a delete that is handed over; it decides which counter counts the entry.
#[derive(Clone, Copy)]
enum Origin {
    /// A delete that was read, or that operands produced.
    Delete,
    /// An expired or filtered entry, which is already counted as such.
    Removed,
}

/// Hands over a delete, if it may hide something.
fn delete(
    gc: &VersionGc,
    counts: &mut CompactionCounts,
    origin: Origin,
    stripe: Seq,
    key: &[u8],
    seq: Seq,
    out: &mut impl Out,
) -> Result<()> {
    let settled = gc.is_settled(stripe);
    match origin {
        Origin::Delete => counts.spent += u64::from(settled),
        // Seeded: an expired entry leaves no delete in its place, and an older value becomes
        // visible again.
        Origin::Removed if bug!("compaction_expired_entry_hides_nothing") => return Ok(()),
        Origin::Removed => counts.deletes_made += u64::from(!settled),
    }
    if settled {
        return Ok(());
    }
    counts.entries_out += 1;
    out(key, seq, Kind::Delete, &[])
}
