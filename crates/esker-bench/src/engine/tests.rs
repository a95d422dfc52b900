//! One behaviour for all adapters: what the workloads rely on.

use super::registry::REGISTRY;
use super::spec::Entry;
use super::*;

fn keys_of(session: &mut dyn Session, from: Option<&[u8]>, direction: Direction) -> Vec<Vec<u8>> {
    let mut cursor = session.cursor(from, direction).unwrap();
    let mut keys = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        assert!(!value.is_empty());
        keys.push(key.to_vec());
    }
    keys
}

/// The value of a key.
fn value(session: &mut dyn Session, key: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    let there = session.get(key, &mut |value| found = Some(value.to_vec())).unwrap();
    assert_eq!(there, found.is_some());
    found
}

fn conforms(engine: &dyn Engine) {
    let mut session = engine.session().unwrap();
    let class = Durability::Process;
    for n in 0..2_500_u32 {
        session.put(format!("k{n:05}").as_bytes(), b"value", class).unwrap();
    }
    session.put(b"k00001", b"longer value", class).unwrap();
    session.delete(b"k00000", class).unwrap();
    session.batch_put(b"k90000", b"batched");
    session.batch_delete(b"k00002");
    assert_eq!(value(&mut *session, b"k90000"), None, "a batch is invisible before its commit");
    session.batch_commit(class).unwrap();

    engine.flush().unwrap();
    assert_eq!(value(&mut *session, b"k00000"), None);
    assert_eq!(value(&mut *session, b"k00001").unwrap(), b"longer value");
    assert_eq!(value(&mut *session, b"k00002"), None);
    assert_eq!(value(&mut *session, b"k00003").unwrap(), b"value");
    assert_eq!(value(&mut *session, b"k90000").unwrap(), b"batched");
    let mut found = Vec::new();
    let asked = [b"k00001".to_vec(), b"nothing".to_vec(), b"k00003".to_vec()];
    session.multi_get(&asked, &mut |place, value| found.push((place, value.to_vec()))).unwrap();
    found.sort_unstable();
    assert_eq!(found, [(0, b"longer value".to_vec()), (2, b"value".to_vec())]);

    let mut expected: Vec<Vec<u8>> = vec![b"k00001".to_vec()];
    expected.extend((3..2_500).map(|n| format!("k{n:05}").into_bytes()));
    expected.push(b"k90000".to_vec());
    assert_eq!(keys_of(&mut *session, None, Direction::Forward), expected);
    let from = keys_of(&mut *session, Some(b"k02498x"), Direction::Forward);
    assert_eq!(from, [b"k02499".to_vec(), b"k90000".to_vec()]);
    assert_eq!(keys_of(&mut *session, Some(b"k00003"), Direction::Reverse), [b"k00003", b"k00001"]);
    expected.reverse();
    assert_eq!(keys_of(&mut *session, None, Direction::Reverse), expected);

    session.put(b"synced", b"value", Durability::Disk).unwrap();
    session.batch_put(b"synced2", b"value");
    session.batch_commit(Durability::Disk).unwrap();
    assert_eq!(value(&mut *session, b"synced2").unwrap(), b"value");

    // More than one batch of an engine that deletes key by key; the end stays.
    session.delete_range(b"k00500", b"k02000", class).unwrap();
    session.delete_range(b"k00007", b"k00007", class).unwrap();
    assert_eq!(value(&mut *session, b"k00500"), None);
    assert_eq!(value(&mut *session, b"k01999"), None);
    assert_eq!(value(&mut *session, b"k00007").unwrap(), b"value");
    assert_eq!(value(&mut *session, b"k00499").unwrap(), b"value");
    assert_eq!(value(&mut *session, b"k02000").unwrap(), b"value");
    let left = keys_of(&mut *session, Some(b"k00499"), Direction::Forward);
    assert_eq!(left[..2], [b"k00499".to_vec(), b"k02000".to_vec()]);
    drop(session);
    engine.compact().unwrap();
    engine.wait_idle().unwrap();
    assert!(!engine.settings().is_empty());
}

/// Every engine of the registry that this build has and that needs no library: a new entry is
/// tested by being there.
#[test]
fn every_engine_of_this_build_conforms() {
    let ordinary = |entry: &&Entry| !entry.hidden && !entry.takes_library && entry.kind != "null";
    for entry in REGISTRY.iter().filter(ordinary).filter(|entry| entry.open.is_some()) {
        let spec = EngineSpec::parse(&entry.name()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let strongest = [Durability::Disk, Durability::Process, Durability::Buffered]
            .into_iter()
            .find(|class| spec.offers(*class).is_ok());
        let options = OpenOptions {
            dir: &dir.path().join("db"),
            memory: Some(32 << 20),
            durability: strongest.unwrap(),
        };
        let engine = spec.open(&options).unwrap();
        assert!(!engine.version().contains("unknown"), "{}", engine.version());
        conforms(&*engine);
        engine.close().unwrap();
    }
}

#[test]
fn engines_parse() {
    let specs = EngineSpec::parse_list("esker, MEM").unwrap();
    assert_eq!(specs.iter().map(EngineSpec::name).collect::<Vec<_>>(), ["esker", "mem"]);
    let json = serde_json::to_string(&specs).unwrap();
    assert_eq!(json, r#"["esker","mem"]"#);
    assert_eq!(serde_json::from_str::<Vec<EngineSpec>>(&json).unwrap(), specs);
    let later: EngineSpec = serde_json::from_str("\"oracle-2099\"").unwrap();
    assert_eq!(later.name(), "oracle-2099");
    assert!(later.available().is_err());
}

#[test]
fn an_unknown_engine_is_answered_with_what_there_is() {
    let error = EngineSpec::parse_list("esker,oracle").unwrap_err().to_string();
    assert!(error.contains("choose from esker, mem, null"), "{error}");
    let absent = error.contains("fjall by `peer-fjall`");
    assert_eq!(absent, !cfg!(feature = "peer-fjall"), "{error}");
    let error = EngineSpec::parse("mem:/lib/x.so").unwrap_err().to_string();
    assert!(error.contains("takes no library"), "{error}");
}

#[test]
fn what_is_not_built_in_names_its_feature() {
    let result = EngineSpec::parse("fjall").unwrap().available();
    if cfg!(feature = "peer-fjall") {
        return result.unwrap();
    }
    let error = result.unwrap_err().to_string();
    assert!(error.contains("--features peer-fjall"), "{error}");
}

/// Every entry can be named, has a unique name, and says what brings it.
#[test]
fn the_registry_is_sound() {
    for (i, entry) in REGISTRY.iter().enumerate() {
        assert!(REGISTRY[..i].iter().all(|other| other.name() != entry.name()), "{}", entry.name());
        assert!(!entry.kind.is_empty() && !entry.label.is_empty() && !entry.about.is_empty());
        assert!(entry.open.is_some() || entry.feature.is_some(), "{}", entry.name());
        let text = if entry.takes_library { entry.name() + ":/a/b.so" } else { entry.name() };
        let spec = EngineSpec::parse(&text).unwrap();
        assert_eq!(spec.name(), text);
        if let Some(variant) = entry.tuned {
            let tuned = spec.tuned(Tuning::Tuned).unwrap();
            assert_eq!((tuned.tuning(), tuned.variant()), (Tuning::Tuned, Some(variant)));
            assert!(tuned.tuned(Tuning::Default).is_err());
        }
    }
}

#[test]
fn memory_survives_nothing() {
    let mem = EngineSpec::parse("mem").unwrap();
    assert!(mem.offers(Durability::Buffered).is_ok());
    assert!(mem.offers(Durability::Process).unwrap_err().contains("keeps nothing"));
}
