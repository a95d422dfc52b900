use super::*;
use crate::compaction::partitioning::tests as partitioning;
use crate::manifest::Row;
use crate::run::Role;
use std::path::Path;

fn key(number: u8) -> PartitionKey {
    PartitionKey::of_partition(0, Some(vec![number]))
}

fn work() -> WorkQueue {
    WorkQueue::new(Arc::new(Signal::new()))
}

fn damage() -> Error {
    Error::corruption(Path::new("f"), 0, "block", "damaged")
}

fn full() -> Error {
    Error::io("write", "f".as_ref(), std::io::ErrorKind::StorageFull.into())
}

#[test]
fn a_forced_compaction_is_pending_until_it_ended() {
    let work = work();
    let keys = [key(1)];
    work.force(keys.clone());
    assert!(work.forced_pending(&keys).unwrap());
    assert_eq!(work.take_compactions(false), keys);
    assert!(work.is_busy(0, 0, Some(&[1])));
    assert!(work.forced_pending(&keys).unwrap());
    assert!(work.take_compactions(false).is_empty(), "one worker at a time compacts a partition");
    work.end_compactions(&keys, None);
    assert!(!work.forced_pending(&keys).unwrap());
    assert!(!work.is_busy(0, 0, Some(&[1])) && work.is_quiet());
}

#[test]
fn small_compactions_are_packed() {
    let work = work();
    work.force((0..20).map(key));
    assert_eq!(work.take_compactions(false).len(), 20);
}

#[test]
fn one_damaged_partition_does_not_condemn_those_compacted_with_it() {
    let work = work();
    let all = [key(1), key(2), key(3)];
    work.force(all.clone());
    let taken = work.take_compactions(false);
    assert_eq!(taken.len(), 3);
    work.end_compactions(&taken, Some(&damage()));
    for _ in 0..3 {
        let single = work.take_compactions(false);
        assert_eq!(single.len(), 1, "each is tried alone");
        let error = (single[0] == key(2)).then(damage);
        work.end_compactions(&single, error.as_ref());
    }
    assert!(work.take_compactions(false).is_empty());
    assert!(work.is_quiet(), "the damaged one is left alone");
    assert!(work.forced_pending(&[key(2)]).is_err());
    assert!(!work.forced_pending(&[key(1), key(3)]).unwrap());
}

#[test]
fn a_caller_that_waits_for_a_compaction_gets_its_error() {
    let work = work();
    let keys = [key(1)];
    work.force(keys.clone());
    let taken = work.take_compactions(false);
    work.end_compactions(&taken, Some(&full()));
    assert!(matches!(work.forced_pending(&keys), Err(Error::DiskFull { .. })));
    assert!(matches!(work.compaction_error(), Some(Error::DiskFull { .. })));
    assert!(work.take_retry() && !work.take_retry());
    work.force(keys.clone());
    assert!(work.forced_pending(&keys).unwrap(), "a new request begins anew");
    let taken = work.take_compactions(false);
    work.end_compactions(&taken, None);
    assert!(!work.forced_pending(&keys).unwrap() && work.compaction_error().is_none());
}

#[test]
fn what_belonged_to_a_dropped_keyspace_is_forgotten() {
    let work = work();
    let options = crate::options::Options::default();
    let settings = Settings::new(&options).unwrap();
    work.force([key(1), key(2)]);
    let taken = work.take_compactions(false);
    work.end_compactions(&taken, Some(&full()));
    work.force([key(1)]);
    work.refresh(0, None, &settings, 0);
    assert!(
        work.take_compactions(false).is_empty()
            && work.is_quiet()
            && work.compaction_error().is_none()
    );
}

#[test]
fn a_change_is_judged_by_the_partitions_that_it_moved() {
    let (work, settings) = (work(), partitioning::settings());
    let rest = partitioning::partition(None, Some("m"), &[("a", "b")]);
    let old = partitioning::partition(Some("m"), None, &[("n", "o")]);
    let delta = |partition: Arc<Partition>| {
        Arc::new(partition.with_delta(partitioning::run(Role::Delta, &[("n", "o")])))
    };
    let due = (0..9).fold(old.clone(), |partition, _| delta(partition));
    let unchanged = Moved::between(&[rest.clone(), old.clone()], &[rest.clone(), old.clone()]);
    assert!(unchanged.gone.is_empty() && unchanged.come.is_empty());
    let moved = Moved::between(&[rest.clone(), old.clone()], &[rest.clone(), due.clone()]);
    assert!(Arc::ptr_eq(&moved.gone[0].1, &old) && Arc::ptr_eq(&moved.come[0].1, &due));
    assert_eq!((moved.gone.len(), moved.come.len()), (1, 1));
    work.moved(0, (&Tree::default(), &moved), &settings, 0);
    let taken = work.take_compactions(false);
    assert_eq!(taken, [PartitionKey::of_partition(0, Some(b"m".to_vec()))]);
    work.end_compactions(&taken, Some(&damage()));
    work.moved(0, (&Tree::default(), &moved), &settings, 0);
    assert!(work.take_compactions(false).is_empty(), "a damaged one is left alone");
    // A range delete has emptied it, so the damage is gone as well.
    let upper = rest.upper.clone();
    let empty = Arc::new(Partition { lower: upper, ..Partition::default() });
    let moved = Moved::between(&[rest.clone(), due.clone()], &[rest.clone(), empty.clone()]);
    work.moved(0, (&Tree::default(), &moved), &settings, 0);
    assert!(work.take_compactions(false).is_empty() && work.is_quiet() && work.debts().is_empty());
    work.moved(0, (&Tree::default(), &Moved::between(&[rest, empty], &[due])), &settings, 0);
    assert_eq!(work.take_compactions(false).len(), 1);
}

#[test]
fn one_flush_runs_at_a_time() {
    let work = work();
    assert!(work.begin_flush());
    assert!(!work.begin_flush() && !work.is_quiet());
    work.end_flush(Some(full()));
    assert!(matches!(work.flush_error(), Some(Error::DiskFull { .. })));
    assert!(work.take_retry());
    assert!(work.begin_flush());
    work.end_flush(None);
    assert!(work.flush_error().is_none());
}

#[test]
fn whoever_waits_is_told_of_every_end() {
    let work = work();
    let seen = work.done().epoch();
    work.end_flush(None);
    work.done().wait_past(seen);
    let seen = work.done().epoch();
    work.end_compactions(&[], None);
    work.done().wait_past(seen);
}

#[test]
fn a_compaction_that_lacked_a_comparator_may_be_tried_when_that_comes() {
    let work = work();
    let missing = |keyspace: &str| Error::ComparatorMissing {
        keyspace: keyspace.to_owned(),
        comparator: "order".to_owned(),
    };
    let key = |keyspace| PartitionKey::of_partition(keyspace, None);
    for (number, error) in [(1, missing("one")), (2, missing("two")), (3, damage())] {
        work.force([key(number)]);
        let taken = work.take_compactions(false);
        work.end_compactions(&taken, Some(&error));
        assert!(work.forced_pending(&[key(number)]).is_err());
    }
    work.comparator_arrived(&[1, 3]);
    assert!(!work.forced_pending(&[key(1)]).unwrap());
    assert!(work.forced_pending(&[key(2)]).is_err(), "its comparator has not come");
    assert!(work.forced_pending(&[key(3)]).is_err(), "damage stays");
}

#[test]
fn spans_and_partitions_with_one_lower_bound_are_told_apart() {
    let work = work();
    let of = |tier| PartitionKey { keyspace: 0, tier, lower: Some(vec![1]) };
    work.force([of(0), of(1), of(2)]);
    let first = work.take_compactions(false);
    assert_eq!(first, [of(0)], "of equals the deepest; pushes are other work");
    assert!(work.is_busy(0, 0, Some(&[1])) && !work.is_busy(0, 1, Some(&[1])));
    let second = work.take_compactions(false);
    assert_eq!(second, [of(1), of(2)], "small pushes are taken together");
    work.end_compactions(&second, Some(&damage()));
    work.end_compactions(&first, None);
    assert_eq!(work.take_compactions(false), [of(1)], "each is tried alone");
    work.end_compactions(&[of(1)], Some(&damage()));
    assert_eq!(work.take_compactions(false), [of(2)]);
    assert!(work.forced_pending(&[of(1)]).is_err() && work.forced_pending(&[of(0)]).is_ok());
}

#[test]
fn what_is_not_due_is_taken_only_while_it_is_calm() {
    let work = work();
    let loose = || vec![key(1), key(2)];
    assert!(work.tighten(loose(), "calm") && !work.is_quiet());
    assert_eq!(work.take_compactions(true), loose());
    assert_eq!(work.cause(&loose()), "calm");
    work.end_compactions(&loose(), None);
    assert!(work.is_quiet());
    // What is due and what is asked for come first, and alone.
    assert!(work.tighten(loose(), "calm"));
    work.force([key(3)]);
    assert_eq!(work.take_compactions(true), [key(3)]);
    assert_eq!(work.cause(&[key(3)]), "requested");
    assert!(work.take_compactions(true).is_empty(), "one worker is enough");
    work.end_compactions(&[key(3)], None);
    // A write ends it.
    assert!(work.take_compactions(false).is_empty() && work.is_quiet());
    assert!(work.take_compactions(true).is_empty());
    assert!(!work.tighten(Vec::new(), "calm"));
}

#[test]
fn what_gives_space_back_does_not_wait_for_a_pause() {
    let work = work();
    assert!(work.tighten(vec![key(1)], "space") && !work.is_quiet());
    work.force([key(3)]);
    assert_eq!(work.take_compactions(false), [key(3)], "what is due and asked for comes first");
    assert!(work.take_compactions(false).is_empty(), "one worker is enough");
    work.end_compactions(&[key(3)], None);
    assert_eq!(work.take_compactions(false), [key(1)]);
    assert_eq!(work.cause(&[key(1)]), "space");
}

/// Partitions that are due, each with runs of its own file or of the same one.
fn due_in(files: &[u64]) -> Vec<Tree> {
    let of = |file: &u64| {
        let delta = partitioning::run_of_file(*file, &[("n", "o")]);
        let part = partitioning::partition(None, None, &[("a", "b")]);
        let due = (0..9).fold(part, |part, _| Arc::new(part.with_delta(delta.clone())));
        Tree::new(vec![due])
    };
    files.iter().map(of).collect()
}

/// What branches share is done once: the others wait, and are done if they are still due.
#[test]
fn of_trees_with_the_same_runs_one_is_compacted_at_a_time() {
    let (work, settings) = (work(), partitioning::settings());
    let whole = |id: KeyspaceId| PartitionKey::of_partition(id, None);
    for (id, tree) in (0..).zip(due_in(&[1, 1, 2, 1])) {
        work.refresh(id, Some(&tree), &settings, 0);
    }
    let mut first = work.take_compactions(false);
    first.sort();
    assert_eq!(first, [whole(0), whole(2)]);
    assert!(work.take_compactions(false).is_empty(), "the others wait");
    work.end_compactions(&first, None);
    // The result was installed in one of them, and the other had diverged.
    let settled = Tree::new(vec![partitioning::partition(None, None, &[("a", "b")])]);
    work.refresh(1, Some(&settled), &settings, 0);
    assert_eq!(work.take_compactions(false), [whole(3)]);
}

#[test]
fn what_was_asked_for_waits_for_work_on_the_same_runs_and_is_done_then() {
    let (work, settings) = (work(), partitioning::settings());
    for (id, tree) in (0..).zip(due_in(&[1, 1])) {
        work.refresh(id, Some(&tree), &settings, 0);
    }
    let first = work.take_compactions(false);
    let other = PartitionKey::of_partition(1, None);
    work.force([other.clone()]);
    assert!(work.take_compactions(false).is_empty());
    assert!(work.forced_pending(std::slice::from_ref(&other)).unwrap());
    work.end_compactions(&first, None);
    assert_eq!(work.take_compactions(false), [other]);
}

/// Otherwise what a branch has inherited would be due earlier there than in its parent.
#[test]
fn a_copy_begins_with_what_is_known_of_its_original() {
    let (work, settings) = (work(), partitioning::settings());
    let part = partitioning::partition(None, None, &[("a", "b"), ("c", "d"), ("e", "f")]);
    let delta = partitioning::run(Role::Delta, &[("n", "o")]);
    let tree = Tree::new(vec![Arc::new(part.with_delta(delta.clone()).with_delta(delta))]);
    let due = |id: KeyspaceId| {
        work.refresh(id, Some(&tree), &settings, 0);
        work.inner.lock().candidates.keys().any(|key| key.keyspace == id)
    };
    assert!(due(0));
    (0..100).for_each(|_| work.saw_fresh(0, 1.0));
    assert!(!due(0), "what is new counts for less");
    work.inherit(&[(5, 0)]);
    assert!(!due(5) && due(6));
}

/// Workers may lack a processor for long: that something is due counts before it has begun. What has
/// failed does not, or a full device would end in a standstill.
#[test]
fn flushes_wait_for_what_is_due_and_can_begin() {
    let (work, settings) = (work(), partitioning::settings());
    let part = partitioning::partition(None, None, &[("a", "b"), ("c", "d"), ("e", "f")]);
    let delta = partitioning::run(Role::Delta, &[("n", "o")]);
    let tree =
        Tree::new(vec![(0..9).fold(part, |part, _| Arc::new(part.with_delta(delta.clone())))]);
    assert!(!work.takes_runs_away());
    work.refresh(0, Some(&tree), &settings, 0);
    assert!(work.takes_runs_away(), "due");
    let end = |error: Option<Error>| {
        let taken = work.take_compactions(false);
        assert!(taken.len() == 1 && work.takes_runs_away(), "under way");
        work.end_compactions(&taken, error.as_ref());
        work.refresh(0, Some(&tree), &settings, 0);
    };
    end(Some(full()));
    assert!(!work.takes_runs_away(), "it may fail again");
    assert!(work.take_retry() && !work.takes_runs_away());
    end(None);
    assert!(work.takes_runs_away(), "it has succeeded");
    assert!(work.begin_flush());
    work.end_flush(Some(full()));
    assert!(!work.takes_runs_away(), "flushes fail, so they are tried as they are");
    assert!(work.take_retry() && work.begin_flush());
    work.end_flush(None);
    end(Some(damage()));
    assert!(!work.takes_runs_away(), "a damaged one is left alone");
    let epoch = work.signal().epoch();
    work.refresh(0, None, &settings, 0);
    assert!(
        work.signal().epoch() != epoch && !work.takes_runs_away(),
        "a flush that waits looks again"
    );
}

#[test]
fn of_many_parts_the_most_urgent_are_looked_at_and_the_damaged_are_named_apart() {
    let (work, settings) = (work(), partitioning::settings());
    let lower = |number: usize| format!("{number:03}");
    // The higher the number, the more deltas wait: from 9, at which a partition is due, on.
    let part = |number: usize| {
        let empty = partitioning::partition(Some(&lower(number)), Some(&lower(number + 1)), &[]);
        let deltas = (0..9 + number).map(|_| partitioning::run(Role::Delta, &[])).collect();
        let (lower, upper) = (empty.lower.clone(), empty.upper.clone());
        Arc::new(Partition { lower, upper, base: empty.base.clone(), deltas })
    };
    let come = (0..LOOKED_AT + 6).map(|number| (0, part(number))).collect();
    let moved = Moved { come, ..Moved::default() };
    work.moved(0, (&Tree::default(), &moved), &settings, 0);
    let numbers = |urgent: &Urgent| -> HashSet<String> {
        let lower = |key: &PartitionKey| String::from_utf8(key.lower.clone().unwrap()).unwrap();
        urgent.parts.iter().map(|(key, _, _)| lower(key)).collect()
    };
    let expected = |range: std::ops::Range<usize>| range.map(lower).collect::<HashSet<_>>();
    let urgent = work.most_urgent();
    assert_eq!(numbers(&urgent), expected(6..LOOKED_AT + 6));
    assert!(urgent.damaged.is_empty());
    // The most urgent one is damaged.
    let worst = PartitionKey::of_partition(0, Some(lower(LOOKED_AT + 5).into_bytes()));
    assert!(work.take(std::slice::from_ref(&worst)));
    work.end_compactions(std::slice::from_ref(&worst), Some(&damage()));
    let urgent = work.most_urgent();
    assert_eq!(numbers(&urgent), expected(5..LOOKED_AT + 5));
    assert!(urgent.damaged.keys().eq([&worst]));
}

/// A tree of so many partitions under spans of four.
fn wide(partitions: usize) -> Tree {
    let row = |count: usize, every: usize| {
        let bound = |at: usize| format!("{:05}", at * every);
        let part = |at: usize| {
            let (lower, upper) = (bound(at), bound(at + 1));
            let lower = (at > 0).then_some(lower.as_str());
            let upper = (at + 1 < count).then_some(upper.as_str());
            partitioning::partition(lower, upper, &[])
        };
        Row::new((0..count).map(part).collect())
    };
    Tree::of_rows(vec![row(partitions, 1), row(partitions / 4, 4)])
}

#[test]
fn what_a_change_looks_at_does_not_grow_with_the_tree() {
    let steps = |partitions: usize| {
        let (work, settings, tree) = (work(), partitioning::settings(), wide(partitions));
        work.refresh(0, Some(&tree), &settings, 0);
        let before = work.inner.lock().scored;
        assert_eq!(before, partitions + partitions / 4);
        let old = tree.partitions()[partitions / 2].clone();
        let new = Arc::new(old.with_delta(partitioning::run(Role::Delta, &[("n", "o")])));
        let moved = Moved { gone: vec![(0, old)], come: vec![(0, new)] };
        work.moved(0, (&tree, &moved), &settings, 0);
        work.inner.lock().scored - before
    };
    assert_eq!((steps(40), steps(4000)), (1, 1));
}
