#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn created(name: &str) -> EventKind {
    EventKind::KeyspaceCreated { keyspace: name.to_owned() }
}

fn encoded(kind: EventKind) -> Value {
    let line = Event { sequence: 7, time: 1_700_000_000_123, kind }.to_json();
    assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
    serde_json::from_str(&line).unwrap()
}

fn taken(bus: &EventBus, end: bool) -> Vec<Event> {
    let mut events = Vec::new();
    bus.take(&mut events, end);
    events
}

#[test]
fn an_event_is_one_line_of_json_with_its_fields() {
    let end = EventKind::CompactionEnd {
        cause: "due",
        keyspace: "users".to_owned(),
        tier: 1,
        partitions: 2,
        input_bytes: u64::MAX,
        input_segments: 3,
        output_bytes: 4,
        output_segments: 5,
        adopted: 6,
        duration: Duration::from_millis(1500),
        processor: None,
        outcome: "done",
    };
    let expected = json!({
        "time": 1_700_000_000_123_u64, "seq": 7, "event": "compaction_end", "cause": "due",
        "keyspace": "users", "tier": 1, "partitions": 2, "input_bytes": u64::MAX, "input_segments": 3,
        "output_bytes": 4, "output_segments": 5, "adopted": 6, "duration_us": 1_500_000,
        "outcome": "done",
    });
    assert_eq!(encoded(end), expected, "a field without a value is left out");
    let waits = vec![("flush_debt", Duration::from_micros(5)), ("lock", Duration::from_micros(6))];
    let slow = EventKind::SlowOperation { operation: "put", duration: Duration::ZERO, waits };
    assert_eq!(encoded(slow)["waits_us"], json!({"flush_debt": 5, "lock": 6}));
    let opened = EventKind::DatabaseOpened { read_only: true, duration: Duration::MAX };
    assert_eq!(encoded(opened)["read_only"], json!(true));
}

#[test]
fn texts_survive_the_encoding_whatever_is_in_them() {
    let mut text: String = (0..0x1f0).filter_map(char::from_u32).collect();
    text.push_str("\u{2028}\u{2029}\u{fffd}\u{1f600}\"\\/");
    for text in [text.as_str(), "", "\"", "\\", "\0", "a\nb\r\tc"] {
        // 1,024 bytes fit.
        assert_eq!(encoded(created(text))["keyspace"], json!(text));
    }
    // A cut never splits a character.
    for lead in 0..4 {
        let text = "x".repeat(lead) + &"\u{1f600}".repeat(TEXT_MAX);
        let found = encoded(created(&text))["keyspace"].as_str().unwrap().to_owned();
        assert!(text.starts_with(&found) && (TEXT_MAX - 3..=TEXT_MAX).contains(&found.len()));
    }
}

#[test]
fn the_table_has_the_fields_that_are_encoded() {
    let table = EventKind::table();
    let fields = |kind: EventKind| {
        let name = kind.name();
        let value = encoded(kind);
        let found = table.iter().find(|(known, _)| *known == name).unwrap();
        let names = found.1.iter().all(|field| value.get(field).is_some());
        assert!(names && value.as_object().unwrap().len() == found.1.len() + 3, "{value}");
    };
    fields(EventKind::WriteStallEnd { cause: "memory", rate: Some(1), duration: Duration::ZERO });
    fields(EventKind::EventsLost { count: 1, place: "queue" });
    let mut names: Vec<_> = table.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), table.len(), "each name belongs to one kind");
}

#[test]
fn events_are_numbered_in_their_order_also_from_many_threads() {
    let bus = Arc::new(EventBus::new(true));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..QUEUE_MAX / 8 {
                    bus.emit(EventKind::CheckpointMade {
                        path: String::new(),
                        duration: Duration::ZERO,
                    });
                }
            });
        }
    });
    let numbers: Vec<u64> = taken(&bus, false).iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (1..=QUEUE_MAX as u64 / 2).collect::<Vec<_>>());
}

#[test]
fn a_full_queue_drops_the_newest_and_says_how_many() {
    let bus = EventBus::new(true);
    let made = || EventKind::CheckpointMade { path: String::new(), duration: Duration::ZERO };
    for _ in 0..QUEUE_MAX + 5 {
        bus.emit(made());
    }
    let events = taken(&bus, false);
    assert_eq!(events.len(), QUEUE_MAX + 1);
    let last = &events[QUEUE_MAX];
    assert_eq!(last.kind, EventKind::EventsLost { count: 5, place: "queue" });
    assert_eq!(last.sequence, QUEUE_MAX as u64 + 6, "a gap in the numbers shows the loss");
    bus.emit(made());
    assert_eq!(taken(&bus, false).len(), 1, "a loss is told once");
}

#[test]
fn a_flood_of_one_kind_is_cut_and_counted() {
    let bus = EventBus::new(true);
    for _ in 0..10_000 {
        bus.emit(created("k"));
        bus.emit(EventKind::KeyspaceDropped { keyspace: "k".to_owned() });
    }
    let events = taken(&bus, true);
    let mut passed = 0;
    let mut suppressed = 0;
    for event in &events {
        match &event.kind {
            EventKind::KeyspaceCreated { .. } => passed += 1,
            EventKind::EventsSuppressed { kind: "keyspace_created", count } => suppressed += count,
            _ => {}
        }
    }
    assert_eq!(passed + suppressed, 10_000, "every event is passed on or counted");
    // The loop may take more than one second.
    assert!(suppressed > 0 && (20..10_000).contains(&passed), "{passed} were passed on");
}

#[test]
fn without_a_listener_nothing_is_kept() {
    let bus = EventBus::new(false);
    bus.emit(created("k"));
    assert!(taken(&bus, true).is_empty() && bus.signal().epoch() == 0);
}

#[test]
fn messages_of_errors_hold_no_keys() {
    use crate::error::{ConflictCause, Error};
    let (keyspace, key) = ("seats".to_owned(), b"secret".to_vec());
    let conflict = Error::Conflict { keyspace, key, cause: ConflictCause::RangeChanged };
    let panicked = Error::UserCodePanicked { what: "a background job (secret)".to_owned() };
    for error in [conflict, panicked] {
        let message = message_of(&Error::Poisoned { cause: Box::new(error) });
        assert!(!message.contains("secret") && !message.is_empty(), "{message}");
    }
}
