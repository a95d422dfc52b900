//! Passes the batches of the log from the thread that reads it to one that applies them.
//!
//! Reading and checking a log takes about as long as putting its batches into memtables, so open does
//! both at the same time. Batches travel in *loads* of about a MiB; the same few loads go back and
//! forth, so the memory between the threads is bounded.
//!
//! 1. The batches are applied in the order of the log, by one thread.
//! 2. The second thread is started for the first load that is full. A short log is applied by the
//!    calling thread, after it was read.
//! 3. A batch that cannot be applied ends reading, and its error is the result. It comes before an
//!    error of reading, because everything that was handed over lies before the place of that error.
//! 4. Of batches larger than a load, one at a time is under way.

use crate::base::Seq;
use crate::error::{Error, Result};
use crate::sync::{Helper, contain, help};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

/// Bytes of a load.
const LOAD_BYTES: usize = 1 << 20;
/// One load is filled, one waits, and one is applied.
const LOADS: usize = 3;

/// Takes batches.
pub trait Applies: Send {
    /// Applies the batch at `position`, which has so many operations.
    fn apply(&mut self, position: Seq, operations: u32, payload: &[u8]) -> Result<()>;
}

/// Batches, one behind the other.
#[derive(Default)]
struct Load {
    bytes: Vec<u8>,
    batches: Vec<Batch>,
}

struct Batch {
    position: Seq,
    operations: u32,
    /// Where its payload ends in the load.
    end: usize,
}

impl Load {
    fn push(&mut self, position: Seq, operations: u32, payload: &[u8]) {
        self.bytes.extend_from_slice(payload);
        self.batches.push(Batch { position, operations, end: self.bytes.len() });
    }

    fn apply(&self, applier: &mut impl Applies) -> Result<()> {
        let mut from = 0;
        for Batch { position, operations, end } in &self.batches {
            applier.apply(*position, *operations, &self.bytes[from..*end])?;
            from = *end;
        }
        Ok(())
    }

    /// The empty load; what a large batch took is freed.
    fn emptied(mut self) -> Self {
        if self.bytes.capacity() > 2 * LOAD_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.batches.clear();
        self
    }
}

/// Who applies the batches.
enum Place<'s, A> {
    /// The calling thread, in the end.
    Here(A),
    /// A second thread.
    There { full: Sender<Load>, empty: Receiver<Load>, helper: Helper<'s, Result<A>> },
    /// There was no second thread to be had.
    Nowhere(Error),
}

/// The end at which batches are handed in.
struct Relay<'s, 'e, A> {
    scope: &'s Scope<'s, 'e>,
    directory: &'s Path,
    /// `None` while it changes.
    place: Option<Place<'s, A>>,
    load: Load,
    /// Empty loads.
    spare: Vec<Load>,
}

/// Runs `read`, which hands in the batches of the log in `directory`, and `applier` beside it.
/// Returns the results of both.
pub fn relay<A: Applies, R>(
    directory: &Path,
    applier: A,
    read: impl FnOnce(&mut dyn FnMut(Seq, u32, &[u8]) -> Result<()>) -> Result<R>,
) -> Result<(R, A)> {
    std::thread::scope(|scope| {
        let spare = (1..LOADS).map(|_| Load::default()).collect();
        let (place, load) = (Some(Place::Here(applier)), Load::default());
        let mut relay = Relay { scope, directory, place, load, spare };
        let read =
            read(&mut |position, operations, payload| relay.take(position, operations, payload));
        let applier = relay.finish()?;
        Ok((read?, applier))
    })
}

impl<'s, A: Applies + 's> Relay<'s, '_, A> {
    fn take(&mut self, position: Seq, operations: u32, payload: &[u8]) -> Result<()> {
        let bytes = self.load.bytes.len();
        if bytes > 0 && bytes + payload.len() > LOAD_BYTES {
            self.hand_over()?;
        }
        if payload.len() > LOAD_BYTES {
            while self.spare.len() < LOADS - 1 {
                let load = self.returned()?;
                self.spare.push(load);
            }
        }
        self.load.push(position, operations, payload);
        Ok(())
    }

    /// Hands the load over, and takes an empty one.
    fn hand_over(&mut self) -> Result<()> {
        let load = std::mem::take(&mut self.load);
        if let Some(Place::Here(applier)) = self.place.take_if(|at| matches!(at, Place::Here(_))) {
            self.place = Some(self.start(applier));
        }
        match &self.place {
            Some(Place::There { full, .. }) => full.send(load).map_err(|_| stopped())?,
            _ => return Err(stopped()),
        }
        self.load = match self.spare.pop() {
            Some(spare) => spare,
            None => self.returned()?,
        };
        Ok(())
    }

    fn start(&self, mut applier: A) -> Place<'s, A> {
        let ((full, loads), (back, empty)) = (channel::<Load>(), channel());
        let work = move || {
            contain(move || {
                for load in loads {
                    load.apply(&mut applier)?;
                    // The other end is gone only when reading has ended.
                    let _ = back.send(load.emptied());
                }
                Ok(applier)
            })
        };
        match help(self.scope, "esker-replay", self.directory, work) {
            Ok(helper) => Place::There { full, empty, helper },
            Err(error) => Place::Nowhere(error),
        }
    }

    /// The next load that was applied.
    fn returned(&self) -> Result<Load> {
        match &self.place {
            Some(Place::There { empty, .. }) => empty.recv().map_err(|_| stopped()),
            _ => Err(stopped()),
        }
    }

    /// Waits until all is applied.
    fn finish(self) -> Result<A> {
        match self.place {
            Some(Place::Here(mut applier)) => {
                self.load.apply(&mut applier)?;
                Ok(applier)
            }
            Some(Place::There { full, helper, .. }) => {
                // If this fails, the helper has an error.
                let _ = full.send(self.load);
                drop(full);
                helper.join()
            }
            Some(Place::Nowhere(error)) => Err(error),
            None => Err(stopped()),
        }
    }
}

/// Ends reading, because nobody applies what is read. The error of the thread that has stopped takes
/// its place.
fn stopped() -> Error {
    Error::Closed
}

#[cfg(test)]
mod tests;
