use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn tiers_come_with_the_ratio_and_stay_at_borders() {
    let wanted = |ratio: u64, present| tiers_wanted(ratio * MIB, MIB, present);
    let fresh: Vec<_> = [1, 30, 100, 300, 3_000, 10_000, 1_000_000].map(|r| wanted(r, 0)).into();
    assert_eq!(fresh, [0, 0, 1, 2, 3, 4, 4]);
    for ratio in (1..200).chain([1_000, 5_000, 20_000, 1_000_000]) {
        for present in 0..=6 {
            let tiers = wanted(ratio, present);
            assert_eq!(wanted(ratio, tiers), tiers, "r = {ratio} with {present} tiers");
            assert!(tiers >= wanted(ratio, 0) && tiers <= TIERS_MAX);
        }
    }
    // What called for a tier may shrink by a third before the tier goes.
    assert_eq!((wanted(36, 0), wanted(37, 0)), (0, 1));
    assert_eq!((wanted(25, 1), wanted(24, 1)), (1, 0));
    assert_eq!(tiers_wanted(0, 0, 4), 0);
}

#[test]
fn partitions_reach_their_fraction_in_few_deltas() {
    for ratio in [40, 100, 190, 300, 1_000, 1_500, 3_000, 10_000, 50_000, 1_000_000] {
        let tiers = tiers_wanted(ratio * MIB, MIB, 0);
        let runs = runs_max(ratio * MIB, MIB, tiers);
        let delta = (runs as f64).powi(tiers as i32) / ratio as f64;
        let deltas = (LAZINESS / delta).ceil();
        assert!(deltas <= DELTAS_MAX as f64, "r = {ratio}: {tiers} tiers, T = {runs}: {deltas}");
    }
}

#[test]
fn spans_share_all_children_evenly() {
    for count in 0..500_usize {
        let children: Vec<u64> = (0..count).map(|at| if at < 40 { MIB } else { 8 * MIB }).collect();
        for groups in [tier_bounds(&children), span_bounds(&children)] {
            assert_eq!(groups.iter().sum::<usize>(), count);
            let most = groups.iter().max().unwrap();
            assert!(*most <= (4 * count).div_ceil(3 * groups.len()), "{count}: {groups:?}");
            assert!(count == 0 || groups.iter().all(|group| *group > 0), "{count}: {groups:?}");
            assert!(*most <= 16);
        }
        assert_eq!(span_bounds(&children).len(), count.div_ceil(12).max(1));
        assert!(tier_bounds(&children).len() >= count.min(12));
    }
    // Spans over small children have more of them, up to a third more than the mean.
    assert_eq!(span_bounds(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 5, 5, 5, 5, 5, 5]), [11, 5]);
}

#[test]
fn neighbours_differ_in_when_they_are_due() {
    let due = |runs, stagger| runs_due(runs, 6, stagger) >= 1.0;
    assert!(!due(4, 0) && !due(4, 1) && due(5, 1) && !due(5, 0) && due(6, 0));
}

#[test]
fn what_replaces_nothing_counts_for_a_third() {
    assert_eq!((garbage(900, 0.0), garbage(900, 1.0), garbage(900, 0.5)), (900, 300, 450));
    assert_eq!((garbage(900, -1.0), garbage(900, 7.0)), (900, 300));
}

#[test]
fn a_partition_is_due_by_the_size_or_the_number_of_its_deltas() {
    let partition = 64 << 20;
    assert_eq!(partition_due(0, 0, 0, partition, 0), 0.0);
    assert_eq!(partition_due(1 << 40, 0, partition, partition, 0), 0.0, "nothing to compact");
    for stagger in [0, 1 << 40, u64::MAX / 2, u64::MAX] {
        for base in [0, 1, partition / 16, partition, 2 * partition] {
            let due = |delta, deltas| partition_due(delta, deltas, base, partition, stagger);
            assert!(due(1, DELTAS_MAX) >= 1.0 && due(1, DELTAS_MAX - 1) < 1.0);
            let counted = base.max(partition / 16) as f64;
            assert!(due((counted * LAZINESS * 1.21) as u64, 1) >= 1.0);
            assert!(due((counted * LAZINESS * 0.79) as u64, 1) < 1.0);
            assert!(due(2000, 2) >= due(1000, 2) && due(1000, 3) >= due(1000, 2));
        }
    }
    let due = |stagger| partition_due(partition / 3, 1, partition, partition, stagger);
    assert!(due(0) > 1.2 && due(u64::MAX) < 0.85, "neighbours come due at different sizes");
    // Sizes of nothing do no harm.
    assert!(partition_due(0, 1, 0, 0, 0).is_finite());
    assert!(partition_due(u64::MAX, usize::MAX, u64::MAX, u64::MAX, u64::MAX).is_finite());
}

#[test]
fn a_flush_is_cut_where_its_slices_are_large() {
    assert_eq!(route(MIB, 1_000, 64 * MIB, 0), Route::Cut);
    assert_eq!(route(8 * MIB, 1_000, 64 * MIB, 1), Route::Top);
    assert_eq!(route(8 * MIB, 2, 64 * MIB, 3), Route::Cut);
    assert_eq!(route(8 * MIB, 0, 64 * MIB, 3), Route::Cut);
    assert_eq!(route(8 * MIB, 4, 64 * MIB, 3), Route::Top);
}

#[test]
fn a_path_is_full_at_its_bound() {
    let bound = runs_bound(3, 6);
    assert_eq!(bound, 3 * 6 + DELTAS_MAX + 1);
    assert_eq!(fill(0, 0.0, 3, 6), 0.0);
    assert_eq!((fill(bound, 0.0, 3, 6), fill(bound + 1, 0.0, 3, 6)), (1.0, 1.0));
    assert!(fill(bound - 1, 0.0, 3, 6) < 1.0);
    assert_eq!((late(6, 1.0), late(8, 2.0), late(0, 0.0)), (0.0, 4.0, 0.0));
    assert!(fill(12, late(9, 1.5), 3, 6) >= 1.0 && fill(12, late(7, 1.0), 3, 6) == 0.0);
    // Without tiers a delta may be late, as long as there is room for others.
    assert_eq!((fill(16, 5.0, 0, 4), fill(19, 5.0, 0, 4)), (0.0, 0.75));
    // A path on which nothing is due has room for the run of a flush.
    for (tiers, runs_max) in [(0, 4), (1, 8), (3, 6), (4, 16)] {
        let quiet = |runs| runs_due(runs, runs_max, 0) < 1.0;
        let pending = (0..=RUNS_MOST).rev().find(|runs| quiet(*runs)).unwrap();
        assert!(fill(tiers * pending + DELTAS_MAX, 0.0, tiers, runs_max) < 1.0);
    }
}

#[test]
fn writers_slow_down_as_a_path_fills() {
    assert_eq!(pace(0.0), None);
    let rates: Vec<f64> = (1..=12).map(|tenths| pace(f64::from(tenths) / 10.0).unwrap()).collect();
    assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
    assert_eq!((rates[9], rates[11]), (RATE_AT_BOUND, RATE_AT_BOUND));
    assert!(rates[4] > 1.0 && rates[6] < 1.0);
}

#[test]
fn what_lies_above_goes_first() {
    assert!(
        rank(2, 1.0) > rank(1, 8.0) && rank(1, 1.0) > rank(0, 9.0) && rank(0, 2.0) > rank(0, 1.0)
    );
}

#[test]
fn neighbours_are_staggered() {
    let keys = (0..1000u32).map(|number| stagger(Some(&number.to_be_bytes())));
    let odd = keys.filter(|stagger| stagger & 1 == 1).count();
    assert!((400..600).contains(&odd), "{odd} of 1000");
    assert_eq!(stagger(None), stagger(Some(b"")));
}

const BOUND: SpaceBound = SpaceBound { amplification: 1.5, reserve: 100 };

fn amount(bytes: f64, entries: f64, deletes: f64) -> Amount {
    Amount { bytes, entries, deletes }
}

#[test]
fn what_is_replaced_or_deleted_is_hidden() {
    let base = amount(10_000.0, 100.0, 0.0);
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1.0, "{found}");
    near(hidden_bytes(amount(0.0, 0.0, 0.0), base, 0.0), 0.0);
    near(hidden_bytes(amount(3000.0, 30.0, 0.0), base, 0.0), 3000.0);
    near(hidden_bytes(amount(3000.0, 30.0, 0.0), base, 0.75), 750.0);
    // Forty deletes of 20 bytes each.
    near(hidden_bytes(amount(800.0, 40.0, 40.0), base, 1.0), 800.0 + 4000.0);
    near(hidden_bytes(amount(800.0, 400.0, 400.0), base, 0.0), 800.0 + 10_000.0);
    // Where nothing lies below, at most half is a newer version of the other half.
    near(hidden_bytes(amount(3000.0, 30.0, 0.0), amount(0.0, 0.0, 0.0), 0.0), 1500.0);
    near(hidden_bytes(amount(400.0, 20.0, 20.0), amount(0.0, 0.0, 0.0), 0.0), 400.0);
}

#[test]
fn dead_space_is_bounded_beside_the_live_data_and_the_reserve() {
    assert_eq!(reclaimable_max(1000, BOUND, false), 600);
    assert_eq!(reclaimable_max(1000, BOUND, true), 150);
    assert_eq!(reclaimable_max(0, BOUND, false), 100);
    let strict = SpaceBound { amplification: 1.01, ..BOUND };
    assert_eq!(reclaimable_max(1000, strict, true), 110);
    assert!(
        reclaimable_max(u64::MAX, SpaceBound { amplification: 100.0, ..BOUND }, false) > 1 << 60
    );
}

#[test]
fn a_compaction_has_room_within_the_bound() {
    let goal = |temporary, quiet| reclaimable_goal(1000, temporary, BOUND, quiet);
    assert_eq!((goal(0, false), goal(50, false), goal(1000, false)), (600, 550, 450));
    // Whatever the bound, a database that is not quiet keeps what a quiet one does.
    for (live, amplification, temporary) in
        [(0, 1.1, 1000), (1000, 1.1, 1000), (1 << 40, 1.1, 1 << 40), (1 << 40, 100.0, 0)]
    {
        let bound = SpaceBound { amplification, ..BOUND };
        let goal = |quiet| reclaimable_goal(live, temporary, bound, quiet);
        assert!(goal(false) >= goal(true), "{live}, {amplification}");
        assert!(goal(false) <= reclaimable_max(live, bound, false), "{live}, {amplification}");
    }
}

#[test]
fn little_is_not_given_back_for_much() {
    let is_worth =
        |reclaimable, rewritten| is_worth_reclaiming(worth(reclaimable, rewritten), BOUND);
    assert!(is_worth(1, 8) && !is_worth(1, 9) && !is_worth(0, 0));
    assert!(worth(3, 4) > worth(2, 4));
    // Where dead space is spread evenly, a strict bound could not be kept.
    let strict = SpaceBound { amplification: 1.1, ..BOUND };
    assert!(is_worth_reclaiming(worth(1, 10), strict));
    assert!(!is_worth_reclaiming(worth(1, 12), strict));
}

#[test]
fn tombstones_grow_old_with_what_is_written() {
    assert!(!tombstone_is_old(1000, 1000, BOUND) && tombstone_is_old(1001, 1000, BOUND));
    assert!(!tombstone_is_old(400, 10, BOUND) && tombstone_is_old(401, 10, BOUND));
}
