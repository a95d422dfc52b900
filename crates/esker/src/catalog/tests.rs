use super::*;
use std::cmp::Ordering as KeyOrdering;

struct Named(&'static str);

impl Comparator for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> KeyOrdering {
        a.cmp(b)
    }
}

fn record(id: KeyspaceId, name: &str, comparator: Option<&str>) -> KeyspaceRecord {
    KeyspaceRecord { id, name: name.to_owned(), comparator: comparator.map(str::to_owned) }
}

#[test]
fn the_default_keyspace_is_there_from_the_start() {
    let catalog = Catalog::new(Vec::new());
    assert_eq!(catalog.names(0), [DEFAULT_KEYSPACE]);
    assert_eq!(catalog.by_name(0, DEFAULT_KEYSPACE).unwrap().id, DEFAULT_KEYSPACE_ID);
}

#[test]
fn numbers_are_never_given_out_twice() {
    let mut catalog = Catalog::new(Vec::new());
    catalog.create(1, "a", "", 10);
    assert_eq!(catalog.next_id(), 2);
    catalog.drop_keyspace(1, 20);
    catalog.forget_before(100);
    assert_eq!(catalog.next_id(), 2, "a dropped number is not free");
    catalog.raise_next_id(9);
    catalog.raise_next_id(4);
    assert_eq!(catalog.next_id(), 9);
    catalog.load(&record(30, "b", None));
    assert_eq!(catalog.next_id(), 31);
}

#[test]
fn a_write_is_late_from_the_position_of_the_drop_on() {
    let mut catalog = Catalog::new(Vec::new());
    let state = catalog.create(1, "a", "", 10);
    assert!(!state.dropped_before(u64::MAX - 1));
    state.mark_dropped(50);
    assert!(!state.dropped_before(49) && state.dropped_before(50) && state.dropped_before(51));
    state.mark_dropped(70);
    assert_eq!(state.dropped_at(), Some(50), "the first mark counts");
    state.unmark_dropped();
    assert_eq!(state.dropped_at(), None);
}

#[test]
fn the_manifest_learns_of_changes_before_a_position_once() {
    let mut catalog = Catalog::new(Vec::new());
    catalog.create(1, "a", "", 10);
    catalog.create(2, "b", "", 20);
    catalog.drop_keyspace(1, 30);
    assert_eq!(catalog.pending_before(10), (vec![], vec![]));
    assert_eq!(catalog.pending_before(11), (vec![record(1, "a", None)], vec![]));
    // A keyspace that was created and dropped since then appears only as dropped.
    assert_eq!(catalog.pending_before(31), (vec![record(2, "b", None)], vec![1]));
    assert!(catalog.has_pending() && catalog.has_pending_drops());
    catalog.forget_before(25);
    assert_eq!(catalog.pending_before(31), (vec![], vec![1]));
    assert!(catalog.by_id(1).is_some(), "its drop is not in the manifest yet");
    catalog.forget_before(31);
    assert!(!catalog.has_pending() && catalog.by_id(1).is_none());
}

#[test]
fn a_new_manifest_holds_what_the_log_does_not_tell_again() {
    let mut catalog = Catalog::new(Vec::new());
    catalog.create(1, "before", "", 10);
    catalog.create(2, "behind", "", 60);
    catalog.create(3, "dropped before", "", 11);
    catalog.drop_keyspace(3, 20);
    catalog.create(4, "dropped behind", "", 12);
    catalog.drop_keyspace(4, 70);
    let mut ids: Vec<_> = catalog.durable_records(50).into_iter().map(|r| r.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [DEFAULT_KEYSPACE_ID, 1, 4]);
}

#[test]
fn a_name_outlives_the_drop_of_its_earlier_owner() {
    let mut catalog = Catalog::new(Vec::new());
    catalog.load(&record(1, "name", None));
    catalog.load(&record(2, "name", None));
    catalog.unload(1);
    assert_eq!(catalog.by_name(0, "name").unwrap().id, 2);
    catalog.unload(2);
    assert!(catalog.by_name(0, "name").is_none());
    catalog.create(3, "again", "", 10);
    catalog.drop_keyspace(3, 20);
    catalog.create(4, "again", "", 30);
    catalog.drop_keyspace(3, 40);
    assert_eq!(catalog.by_name(0, "again").unwrap().id, 4);
}

#[test]
fn an_order_is_found_by_its_name_or_missing_until_it_is_given() {
    let mut catalog = Catalog::new(vec![Arc::new(Named("known"))]);
    catalog.load(&record(1, "a", Some("known")));
    catalog.load(&record(2, "b", Some("unknown")));
    assert!(matches!(catalog.by_name(0, "a").unwrap().order, Order::Custom(_)));
    assert!(
        matches!(&catalog.by_name(0, "b").unwrap().order, Order::Missing(name) if name == "unknown")
    );
    assert_eq!(catalog.by_name(0, "b").unwrap().comparator_name(), Some("unknown"));
    catalog.register(Arc::new(Named("unknown")));
    assert!(matches!(catalog.by_name(0, "b").unwrap().order, Order::Custom(_)));
    assert_eq!(catalog.by_id(2).unwrap().comparator_name(), Some("unknown"));
}

#[test]
fn names_have_1_to_255_bytes() {
    assert!(check_name("name", "").is_err());
    assert!(check_name("name", &"n".repeat(255)).is_ok());
    assert!(check_name("name", &"n".repeat(256)).is_err());
}

#[test]
fn a_comparator_that_comes_late_brings_nothing_back() {
    let mut catalog = Catalog::new(Vec::new());
    catalog.load(&record(1, "gone", Some("order")));
    catalog.load(&record(2, "there", Some("order")));
    catalog.drop_keyspace(1, 20);
    assert_eq!(sorted(catalog.register(Arc::new(Named("order")))), [1, 2]);
    assert_eq!(catalog.names(0), [DEFAULT_KEYSPACE, "there"]);
    assert_eq!(catalog.by_id(1).unwrap().dropped_at(), Some(20), "a write to it still fails");
    assert!(matches!(catalog.by_name(0, "there").unwrap().order, Order::Custom(_)));
    assert_eq!(catalog.with_known_order([1, 2, 9].into_iter()), [1, 2]);
    assert!(catalog.register(Arc::new(Named("order"))).is_empty(), "it is known already");
    // The name belongs to the keyspace that got it later.
    let mut catalog = Catalog::new(Vec::new());
    catalog.load(&record(1, "name", Some("order")));
    catalog.drop_keyspace(1, 20);
    catalog.create(2, "name", "", 30);
    catalog.register(Arc::new(Named("order")));
    assert_eq!(catalog.by_name(0, "name").unwrap().id, 2);
    assert_eq!(catalog.pending_before(100).1, [1]);
}

fn sorted(mut ids: Vec<KeyspaceId>) -> Vec<KeyspaceId> {
    ids.sort_unstable();
    ids
}

/// A catalog with keyspace 1 (`a`) and copies of it in a branch, number 11, and in a branch or named
/// snapshot, number 21.
fn with_copies(kind: crate::manifest::BranchKind) -> Catalog {
    let mut catalog = Catalog::new(vec![Arc::new(Named("order"))]);
    catalog.create(1, "a", "", 10);
    catalog.create(2, "b", "", 10);
    let record = |id: KeyspaceId, kind| crate::manifest::BranchRecord {
        id,
        name: format!("{id}"),
        kind,
        made_at: 0,
        point: 20,
        copies: vec![(id, 0), (id + 1, 1), (id + 2, 2)],
    };
    catalog.add_branch(&record(10, crate::manifest::BranchKind::Branch));
    catalog.add_branch(&record(20, kind));
    catalog
}

#[test]
fn twins_are_copies_with_the_same_code_that_are_not_named_snapshots() {
    use crate::manifest::BranchKind;
    let of = |catalog: &Catalog, id: KeyspaceId| -> Vec<KeyspaceId> {
        let state = catalog.by_id(id).unwrap().clone();
        let twins = catalog.twins_of(&state, &state.traits().names);
        twins.iter().map(|twin| twin.id).collect()
    };
    let catalog = with_copies(BranchKind::Branch);
    assert_eq!((of(&catalog, 1), of(&catalog, 11)), (vec![11, 21], vec![1, 21]));
    let catalog = with_copies(BranchKind::Snapshot);
    assert_eq!(of(&catalog, 1), [11], "a named snapshot keeps what it has");
    // Other traits now, or when the work began.
    let mut catalog = with_copies(BranchKind::Branch);
    let expiring = Traits { ttl: 5, ..Traits::default() };
    catalog.set_traits(11, expiring.clone(), 30);
    assert_eq!(of(&catalog, 1), [21]);
    let state = catalog.by_id(1).unwrap().clone();
    assert_eq!(catalog.twins_of(&state, &expiring).iter().map(|t| t.id).collect::<Vec<_>>(), [11]);
    // It is being dropped.
    let catalog = with_copies(BranchKind::Branch);
    catalog.by_id(21).unwrap().mark_dropped(40);
    assert_eq!(of(&catalog, 1), [11]);
    // A keyspace of that name with another order is no copy.
    let mut catalog = with_copies(BranchKind::Branch);
    catalog.drop_keyspace(11, 40);
    catalog.place(30, 10);
    catalog.create(30, "a", "order", 50);
    assert_eq!(of(&catalog, 1), [21]);
    catalog.place(31, 20);
    catalog.create(31, "c", "missing", 50);
    assert!(of(&catalog, 31).is_empty());
}
