//! Which value segments are emptied first, and how far. What it comes to on disk: `api/separated`.

use super::*;

#[test]
fn the_emptiest_value_segments_move_first_as_far_as_there_is_room() {
    let worth = vec![(0.3, 70, (1, 0)), (0.9, 10, (2, 0)), (0.5, 50, (3, 0)), (0.6, 45, (1, 8))];
    let moved = |room| {
        let (mut of, bytes) = emptiest(worth.clone(), room);
        of.sort_unstable();
        (of, bytes)
    };
    assert_eq!(moved(9), (vec![], 0));
    assert_eq!(moved(54), (vec![(2, 0)], 10));
    assert_eq!(moved(60), (vec![(1, 8), (2, 0)], 55));
    // A smaller one behind one that does not fit moves too.
    assert_eq!(moved(80), (vec![(1, 8), (2, 0)], 55));
    assert_eq!(moved(105), (vec![(1, 8), (2, 0), (3, 0)], 105));
    assert_eq!(moved(u64::MAX).1, 175);
}
