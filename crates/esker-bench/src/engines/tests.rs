//! How engines are named and what the registry answers.

use super::registry::REGISTRY;
use super::*;

mod shelf;

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

#[test]
fn a_write_buffer_is_refused_where_it_would_not_be_set() {
    let refused = |name: &str, bytes| {
        lookup::check_write_buffer(&EngineSpec::parse(name).unwrap(), bytes).unwrap_err()
    };
    let error = refused("lmdb", 1 << 20).to_string();
    assert!(error.contains("lmdb takes no --write-buffer"), "{error}");
    assert!(error.contains("esker, rocksdb, rocksdb-stats"), "{error}");
    for (name, least) in [("esker", 16 << 10), ("rocksdb-universal-stats", 64 << 10)] {
        let spec = EngineSpec::parse(name).unwrap();
        lookup::check_write_buffer(&spec, least).unwrap();
        let error = refused(name, least - 1).to_string();
        assert!(error.contains(&format!("{name} has no --write-buffer")), "{error}");
        assert!(error.contains(&format!("give it {least} to ")), "{error}");
    }
}

#[test]
fn compaction_bytes_have_their_own_name_and_that_of_format_1() {
    let bytes = EngineBytes { user: 1, log: 2, flush: 3, compaction: 4, other: 5 };
    let json = serde_json::to_value(bytes).unwrap();
    let expected =
        serde_json::json!({"user": 1, "log": 2, "flush": 3, "compaction": 4, "other": 5});
    assert_eq!(json, expected);
    let earlier = r#"{"user": 1, "log": 2, "flush": 3, "merge": 4, "other": 5}"#;
    assert_eq!(serde_json::from_str::<EngineBytes>(earlier).unwrap(), bytes);
}
