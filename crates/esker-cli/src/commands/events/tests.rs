use super::*;
use serde_json::json;

fn line(event: Value) -> Option<String> {
    readable(event.as_object().unwrap())
}

#[test]
fn times_are_those_of_the_calendar() {
    // Compared with `date -u -d @SECONDS`.
    for (seconds, date) in [
        (0, "1970-01-01T00:00:00"),
        (951_782_399, "2000-02-28T23:59:59"),
        (951_782_400, "2000-02-29T00:00:00"),
        (951_868_800, "2000-03-01T00:00:00"),
        (1_709_251_199, "2024-02-29T23:59:59"),
        (1_735_689_599, "2024-12-31T23:59:59"),
        (4_107_542_400, "2100-03-01T00:00:00"),
    ] {
        assert_eq!(utc(seconds * 1000 + 7), format!("{date}.007Z"));
    }
    // Whatever a file says.
    assert!(utc(u64::MAX).ends_with('Z'));
}

#[test]
fn an_event_is_a_line_that_people_read() {
    let event = json!({
        "time": 0, "seq": 1, "event": "slow_operation", "operation": "put", "duration_us": 1500,
        "waits_us": {"flush_debt": 1000},
    });
    let found = line(event).unwrap();
    assert!(found.starts_with("1970-01-01T00:00:00.000Z slow_operation  "), "{found}");
    assert!(found.contains("duration=1.5ms") && found.contains("waits=flush_debt:1ms"), "{found}");
    let odd = line(json!({"time": 0, "seq": 1, "event": "e", "x": "a\n\u{1b}[2J", "_us": "y"}));
    assert!(!odd.unwrap().contains(|c: char| c.is_control()));
}

#[test]
fn what_is_no_event_is_none() {
    for other in
        [json!({}), json!({"time": 1, "seq": 2}), json!({"time": -1, "seq": 2, "event": "e"})]
    {
        assert_eq!(line(other), None);
    }
}
