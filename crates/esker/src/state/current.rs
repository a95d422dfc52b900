//! The present state, and the one way to replace it.
//!
//! 1. A reader loads the state inside an epoch, or holds a reference. States are replaced as a
//!    whole, one at a time, each derived from the one before, so no change is lost.
//! 2. A state and a position match if the position was read while the state was the present one
//!    (R17). A state with a position that was read later suffices for a look at what is in memory;
//!    a caller that needs both for longer uses [`Current::view`].
//! 3. Old states are kept until their last reader is done (`retired`).

use crate::base::Seq;
use crate::state::State;
use crate::state::memtables::MemtableSet;
use crate::state::retired::Retired;
use crate::sync::primitives::{Arc, Mutex};
use crate::sync::{EpochCell, Guard, pin};
use std::sync::Arc as StdArc;

/// What readers see now.
#[derive(Debug)]
pub struct Current {
    state: EpochCell<State>,
    changing: Mutex<()>,
    /// States that readers may still look at.
    pub retired: Retired,
}

impl Current {
    /// A holder of `state`.
    pub fn new(state: Arc<State>) -> Self {
        Self { state: EpochCell::new(state), changing: Mutex::new(()), retired: Retired::default() }
    }

    /// The state, for as long as the guard lives.
    #[inline]
    pub fn load<'g>(&self, guard: &'g Guard) -> &'g State {
        self.state.load(guard)
    }

    /// The state, with a reference of its own.
    pub fn load_arc(&self) -> Arc<State> {
        self.state.load_arc()
    }

    /// The state, and a position that `position` returned while that state was the present one.
    pub fn view(&self, position: impl Fn() -> Seq) -> (Arc<State>, Seq) {
        // The one epoch that is entered: the others lie in it.
        let guard = pin();
        loop {
            let state = self.load_arc();
            let seq = position();
            if std::ptr::eq(&*state, self.load(&guard)) {
                return (state, seq);
            }
        }
    }

    /// Publishes the state that `next` derives from the present one.
    pub fn change(&self, next: impl FnOnce(&State) -> State) {
        let _changing = self.changing.lock();
        let now = self.load_arc();
        let next = next(&now);
        self.retired.push(now);
        self.state.swap(Arc::new(next));
    }

    /// Seals the active set and makes `next` the active one. `next` begins at the position that
    /// separates its writes from all earlier ones. No thread reserves meanwhile (R3).
    pub fn seal(&self, next: MemtableSet) {
        self.change(|now| {
            now.active().seal(next.start);
            now.with_active(next)
        });
    }

    /// The oldest sealed set. Returns only after `wait` has seen everything before the set's end
    /// published: until then writers may still put entries into it (R3).
    pub fn flushable<E>(
        &self,
        wait: impl FnOnce(Seq) -> Result<(), E>,
    ) -> Result<Option<StdArc<MemtableSet>>, E> {
        let state = self.load_arc();
        let Some(set) = state.oldest_sealed() else { return Ok(None) };
        set.sealed_at().map_or(Ok(()), wait)?;
        Ok(Some(set.clone()))
    }
}
