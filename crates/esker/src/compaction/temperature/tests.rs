use super::*;

/// Segments by number: those below ten cool, those below twenty are strongly compressed, those below thirty
/// warm, and the rest stays.
fn pieces_of(pieces: Vec<Piece<u32>>, idle: bool) -> Vec<Piece<u32>> {
    let recoding = |number: &u32| match number {
        0..10 => idle.then_some(Recoding::Cools),
        20..30 => Some(Recoding::Warms),
        _ => None,
    };
    with_recoding(pieces, idle, recoding, |number| (10..20).contains(number))
}

#[test]
fn neighbours_that_turn_cold_are_written_together() {
    use Piece::{Drop, Recode, Reuse, Rewrite};
    let all = [1, 2, 40, 3, 20, 21, 4].map(Reuse).to_vec();
    let expected = vec![
        Recode(Recoding::Cools, vec![1, 2]),
        Reuse(40),
        Recode(Recoding::Cools, vec![3]),
        Recode(Recoding::Warms, vec![20, 21]),
        Recode(Recoding::Cools, vec![4]),
    ];
    assert_eq!(pieces_of(all, true), expected);
    let all = vec![Reuse(1), Drop(2), Reuse(3), Rewrite(vec![vec![4], vec![5]]), Reuse(20)];
    let mut expected = all.clone();
    expected[4] = Recode(Recoding::Warms, vec![20]);
    assert_eq!(pieces_of(all.clone(), false), expected, "nothing cools under load");
    expected[0] = Recode(Recoding::Cools, vec![1]);
    expected[2] = Recode(Recoding::Cools, vec![3]);
    assert_eq!(pieces_of(all, true), expected, "runs are merged as they are");
}

/// Small segments that the plan joins stay as strongly compressed as they are.
#[test]
fn small_segments_that_are_joined_stay_cold() {
    use Piece::{Recode, Rewrite};
    let joined = |numbers: &[u32], idle| {
        pieces_of(vec![Rewrite(vec![vec![], numbers.to_vec()])], idle).remove(0)
    };
    assert_eq!(joined(&[1, 11, 12], true), Recode(Recoding::Cools, vec![1, 11, 12]));
    for (numbers, idle) in [(&[11, 12][..], false), (&[11, 40], true), (&[11, 20], true)] {
        assert_eq!(joined(numbers, idle), Rewrite(vec![vec![], numbers.to_vec()]));
    }
}
