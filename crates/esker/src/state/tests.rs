//! Which set of memtables a write belongs to.

use super::*;
use crate::budget::ChunkPool;
use crate::options::settings::MemtableSizes;

pub(super) fn set(start: Seq) -> Arc<MemtableSet> {
    let sizes = MemtableSizes { set_bytes: 1 << 20, table_bytes: 1 << 20 };
    Arc::new(MemtableSet::new(start, sizes, &Arc::new(ChunkPool::new(1 << 20))))
}

#[test]
fn a_write_goes_into_the_set_that_was_active_at_its_position() {
    let sets = vec![set(300), set(200), set(100)];
    let state = State::of(sets, Arc::new(Version::default()));
    for (seq, start) in [(50, 100), (100, 100), (199, 100), (200, 200), (299, 200), (300, 300)] {
        assert_eq!(state.set_of(seq).start, start, "the set of {seq}");
    }
    assert_eq!(state.active().start, 300);
}
