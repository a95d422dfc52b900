//! Names and numbers across manifest edits.

use super::*;

/// One edit can drop a keyspace and make another of the same name: the new one keeps the name,
/// in whichever order the two are learned.
#[test]
fn a_name_outlives_the_keyspace_that_had_it_before() {
    let record = |id| KeyspaceRecord { id, name: "again".into(), comparator: None };
    let id_of = |catalog: &Catalog| catalog.by_name("again").map(|state| state.id);
    let mut catalog = Catalog::new(Vec::new());
    catalog.load(&record(1));
    catalog.load(&record(2));
    catalog.unload(1);
    assert_eq!(id_of(&catalog), Some(2));
    assert!(catalog.by_id(1).is_none());
    catalog.unload(2);
    assert_eq!(id_of(&catalog), None);

    catalog.load(&record(3));
    catalog.create(4, "again", "", 100);
    catalog.drop_keyspace(3, 200);
    assert_eq!(id_of(&catalog), Some(4));
}
