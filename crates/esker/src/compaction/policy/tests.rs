use super::*;

#[test]
fn a_small_tree_has_no_tiers_and_a_huge_one_four() {
    assert_eq!(tiers_wanted(0, 1 << 20, 0), 0);
    assert_eq!(tiers_wanted(20 << 20, 1 << 20, 0), 0);
    assert_eq!(tiers_wanted(u64::MAX, 1, 0), TIERS_MAX);
    assert_eq!(tiers_wanted(u64::MAX, 0, 0), TIERS_MAX, "a flush of nothing");
}

#[test]
fn tiers_grow_with_the_data_and_the_present_number_is_kept_at_a_border() {
    for flush in [1u64, 4 << 10, 64 << 20] {
        for present in 0..=TIERS_MAX {
            let mut before = 0;
            for power in 0..200 {
                let live = (flush as f64 * 1.1f64.powi(power)) as u64;
                let wanted = tiers_wanted(live, flush, present);
                assert!(wanted >= before, "never fewer for more data");
                assert!(wanted <= TIERS_MAX);
                // Whatever is chosen stays chosen, so that tiers do not come and go.
                assert_eq!(tiers_wanted(live, flush, wanted), wanted);
                // A tenth more or less changes nothing either.
                for near in [live / 11 * 10, live / 10 * 11] {
                    let then = tiers_wanted(near, flush, wanted);
                    assert_eq!(tiers_wanted(live, flush, then), then);
                }
                before = wanted;
            }
        }
    }
}

#[test]
fn children_are_grouped_evenly_and_none_is_left_out() {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    assert!(span_bounds(&[]).is_empty());
    for count in 1..400 {
        let equal = vec![1 << 20; count];
        let skewed: Vec<u64> = (0..count).map(|_| 1 << random(40)).collect();
        let empty = vec![0; count];
        for children in [&equal, &skewed, &empty] {
            let groups = span_bounds(children);
            assert_eq!(groups.iter().sum::<usize>(), count);
            assert_eq!(groups.len(), count.div_ceil(FAN_OUT));
            assert!(groups.iter().all(|group| (1..=CHILDREN_MAX).contains(group)), "{groups:?}");
        }
        let groups = span_bounds(&equal);
        let (least, most) = (groups.iter().min().unwrap(), groups.iter().max().unwrap());
        assert!(most - least <= 1, "{count}: {groups:?}");
    }
    // One huge child has few neighbours in its span.
    let mut children = vec![1 << 10; 24];
    children[0] = 1 << 30;
    assert_eq!(span_bounds(&children), [8, 16]);
}

#[test]
fn a_span_is_due_at_its_number_of_runs() {
    assert!(span_due(0, 0, 0, 0) < 1.0 && span_due(0, 1 << 40, 1, 1) == 0.0);
    for stagger in 0..4 {
        for (bytes, children) in [(0, 0), (1, 16), (64 << 20, 12), (u64::MAX, 1)] {
            let due = |runs| span_due(runs, bytes, children, stagger) >= 1.0;
            let first = (1..20).find(|runs| due(*runs)).unwrap();
            assert_eq!(first, RUNS_MAX - (stagger & 1) as usize);
            assert!((first..20).all(due), "more runs are not less urgent");
            assert!(
                span_due(first, bytes, children, stagger)
                    < span_due(first + 1, 0, children, stagger),
                "runs count for more than bytes"
            );
        }
    }
    assert!(span_due(6, 2 << 20, 4, 0) > span_due(6, 1 << 20, 4, 0), "larger slices come first");
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
    let (flush, partition) = (8 << 20, 64 << 20);
    assert_eq!(route(flush, 1000, partition, 0), Route::Cut, "there is no other place");
    for tiers in 1..=TIERS_MAX {
        assert_eq!(route(flush, 0, partition, tiers), Route::Cut);
        assert_eq!(route(flush, 1, partition, tiers), Route::Cut);
        assert_eq!(route(flush, 2, partition, tiers), Route::Cut);
        assert_eq!(route(flush, 3, partition, tiers), Route::Top);
        assert_eq!(route(flush, 1000, partition, tiers), Route::Top);
    }
}

#[test]
fn paths_fill_up_to_the_bound() {
    for tiers in 0..=TIERS_MAX {
        assert_eq!(fill(0, tiers), 0.0);
        assert_eq!(fill(bound(tiers), tiers), 1.0);
        assert!(fill(bound(tiers) - 1, tiers) < 1.0);
        // A path on which everything is due but nothing overdue is within the bound.
        assert!(RUNS_MAX * tiers + DELTAS_MAX < bound(tiers));
    }
}

#[test]
fn neighbours_are_staggered() {
    let keys = (0..1000u32).map(|number| stagger(Some(&number.to_be_bytes())));
    let odd = keys.filter(|stagger| stagger & 1 == 1).count();
    assert!((400..600).contains(&odd), "{odd} of 1000");
    assert_eq!(stagger(None), stagger(Some(b"")));
}
