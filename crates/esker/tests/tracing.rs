//! Events as events of `tracing`. A program of its own: a subscriber is for the whole process.

#![cfg(feature = "tracing")]
#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use esker::Db;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The fields of an event as text.
#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

type Kept = Arc<Mutex<Vec<(Level, BTreeMap<String, String>)>>>;

/// Keeps the events of the engine.
struct Keeper(Kept);

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "esker"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().push((*event.metadata().level(), fields.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_subscriber_gets_every_event_with_its_fields() {
    let kept = Kept::default();
    tracing::subscriber::set_global_default(Keeper(kept.clone())).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.keyspace("users").unwrap().insert("secret-key", "secret-value").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let lines = std::fs::read_to_string(dir.path().join("EVENTS")).unwrap();
    let events = kept.lock();
    assert_eq!(events.len(), lines.lines().count(), "as many as the file has");
    let find = |name: &str| {
        let named = |fields: &BTreeMap<String, String>| fields["event"] == format!("{name:?}");
        events.iter().find(|(_, fields)| named(fields)).unwrap()
    };
    let (level, flush) = find("flush");
    assert_eq!(*level, Level::INFO);
    assert_eq!(flush["keyspaces"], "1");
    assert!(flush["bytes"].parse::<u64>().unwrap() > 0 && flush.contains_key("duration"));
    assert_eq!(find("keyspace_created").1["keyspace"], "\"users\"");
    for (index, (_, fields)) in events.iter().enumerate() {
        assert_eq!(fields["sequence"], (index + 1).to_string());
        assert!(!format!("{fields:?}").contains("secret"));
    }
    // What is not open for writing tells its events too.
    drop(events);
    kept.lock().clear();
    let mut options = esker::Options::default();
    options.read_only = true;
    Db::open_with(dir.path(), options).unwrap().close().unwrap();
    let events = kept.lock();
    assert_eq!(events.last().unwrap().1["event"], "\"database_closed\"");
}
