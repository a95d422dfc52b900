//! A get that neither reads files nor waits, for a caller that must not: one that has an interpreter's lock, which all
//! its threads want.
//!
//! It is the first attempt of every get (`db/read.rs`, rule 1), without the second. What it did not answer is not counted:
//! the get that follows counts.

use crate::base::Bytewise;
use crate::catalog::Order;
use crate::db::{Seen, ShortValue};
use crate::lookup::counting::counter_of;
use crate::lookup::{Answer, Asked};
use crate::run::Access;
use crate::stats::counters::Counter;
use crate::sync::pin;
use crate::trace::{FilterAnswer, FilterCounts, Recorder};
use crate::{Keyspace, Result};

/// What memory has of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Cached<R> {
    /// What became of the value; `None`: there is no value.
    Known(Option<R>),
    /// An answer would have to read a file or call the program's code, or is one of those that are timed.
    Unknown,
}

/// Keeps the answers of filters until it is known whether they count.
#[derive(Default)]
struct Later(FilterCounts);

impl Recorder for Later {
    const RECORDS: bool = false;

    #[inline]
    fn filter(&mut self, answer: FilterAnswer) {
        self.0.add(answer);
    }
}

impl<R> Cached<R> {
    /// What becomes of the value in turn.
    #[inline]
    pub(super) fn map<T>(self, then: impl FnOnce(R) -> T) -> Cached<T> {
        match self {
            Self::Known(found) => Cached::Known(found.map(then)),
            Self::Unknown => Cached::Unknown,
        }
    }
}

/// Calls `take` with the value under a key, if memory answers: as [`Keyspace::get_with`] otherwise.
///
/// # Errors
/// As [`Keyspace::get`].
pub fn get_cached<R>(
    keyspace: &Keyspace,
    key: &[u8],
    take: impl FnOnce(&[u8]) -> R,
) -> Result<Cached<R>> {
    let mut short: ShortValue = [0; size_of::<ShortValue>()];
    let lent = see_cached(keyspace, key, |value| value.lend(&mut short))?;
    Ok(lent.map(|lent| take(lent.bytes(&short))))
}

/// Calls `take` with the value under a key where it lies, within the search, if memory answers.
#[inline]
pub(super) fn see_cached<R>(
    keyspace: &Keyspace,
    key: &[u8],
    take: impl FnOnce(Seen<'_>) -> R,
) -> Result<Cached<R>> {
    let (core, keyspace) = (&keyspace.handle.core, &keyspace.state);
    core.check_open()?;
    if !matches!(keyspace.order, Order::Bytewise) {
        return Ok(Cached::Unknown);
    }
    // A call that is timed goes the other way.
    let Some(lane) = core.counters.untimed(Counter::Gets) else { return Ok(Cached::Unknown) };
    let at = keyspace.moment(None);
    let asked = Asked { keyspace, key, at, lane, leaves_pieces: false };
    let (mut filters, mut take) = (Later::default(), Some(take));
    let guard = pin();
    let state = core.state.load(&guard);
    let below = at.map_or_else(|| core.visible(), |at| at.seq);
    let search = core.search(&Bytewise, asked, below);
    let answer = search.run(state, Access::Cached(&guard), &mut take, &mut filters)?;
    drop(guard);
    let found = match answer {
        Answer::Present(value) => Some(value),
        Answer::Absent => None,
        Answer::NeedsIo | Answer::Operand => return Ok(Cached::Unknown),
    };
    core.counters.count(Counter::Gets);
    // Most gets ask no filter.
    if !filters.0.is_empty() {
        for answer in FilterAnswer::ALL {
            lane.add(counter_of(answer) as usize, filters.0.of(answer));
        }
    }
    keyspace.check_there()?;
    Ok(Cached::Known(found))
}

#[cfg(test)]
mod tests;
