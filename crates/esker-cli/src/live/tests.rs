use super::figures::{Figures, History, Rates};
use super::view::{self, Section};
use super::{openmetrics, seconds, tail};
use esker::{Db, Observed, ObservedState, Options};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// What a closed database with this many puts left for other processes.
fn observed(dir: &Path, puts: u32) -> Observed {
    let mut options = Options::default();
    options.monitor = Some(true);
    let db = Db::open_with(dir, options).unwrap();
    for number in 0..puts {
        db.insert(number.to_be_bytes(), "value").unwrap();
    }
    db.close().unwrap();
    Observed::read(dir).unwrap()
}

/// A reading with 40 puts more, two seconds after one with 10.
fn history(dir: &Path) -> History {
    let old = observed(&dir.join("a"), 10);
    let mut new = observed(&dir.join("b"), 50);
    (new.opened, new.updated) = (old.opened, old.updated + Duration::from_secs(2));
    new.update = old.update + 1;
    let mut history = History::new(old);
    history.take(new);
    history
}

#[test]
fn rates_are_over_the_time_of_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let history = history(dir.path());
    assert_eq!(history.rates().total("esker_puts"), 20.0);
    // Four bytes of a key and five of a value, 40 times in two seconds.
    assert_eq!(history.rates().of("esker_written_bytes", "purpose", "user"), 180.0);
    assert_eq!(history.last.total("esker_puts"), 50.0);
    let json = history.json(str::to_owned);
    assert_eq!(json["rates_per_second"]["esker_puts"], 20.0);
    assert_eq!(json["rates_per_second"]["esker_written_bytes{purpose=\"user\"}"], 180.0);
    assert_eq!(
        (&json["observed"]["state"], &json["stats"]["puts"]),
        (&"closed".into(), &50.into())
    );
}

#[test]
fn readings_of_two_openings_have_no_rates() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (observed(&dir.path().join("a"), 5), observed(&dir.path().join("a"), 50));
    let figures = |observed: &Observed| Figures::new(observed.clone());
    let mut moved = new.clone();
    moved.opened = old.opened + Duration::from_millis(1);
    assert!(Rates::between(&figures(&old), &figures(&moved)).is_none());
    // The same reading twice, and a clock that was set back.
    assert!(Rates::between(&figures(&old), &figures(&old)).is_none());
    let mut back = new.clone();
    (back.opened, back.updated) = (old.opened, old.updated - Duration::from_secs(9));
    assert!(Rates::between(&figures(&old), &figures(&back)).is_none());
}

#[test]
fn a_writer_that_is_silent_for_a_while_is_idle() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = history(dir.path());
    let mut again = history.last.observed.clone();
    again.age = Duration::from_secs(1);
    history.take(again.clone());
    assert_eq!(history.rates().total("esker_puts"), 20.0);
    again.age = Duration::from_secs(3);
    history.take(again);
    assert_eq!(history.rates().total("esker_puts"), 0.0);
}

#[test]
fn plain_text_shows_every_section() {
    let dir = tempfile::tempdir().unwrap();
    let history = history(dir.path());
    let mut text = Vec::new();
    view::write(&mut text, &dir.path().join("b"), &history).unwrap();
    let text = String::from_utf8(text).unwrap();
    let line = |start: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(start));
        found.unwrap_or_else(|| panic!("no {start:?} in {text}"))
    };
    assert_eq!(line("puts").split_whitespace().collect::<Vec<_>>(), ["puts", "20", "50"]);
    assert!(line("written: user").contains("180 B"), "{text}");
    for start in ["put ", "get ", "scan ", "sync ", "compaction_debt", "limit on writes"] {
        line(start);
    }
    for start in ["memtables", "run files", "log files", "compaction debt", "default"] {
        line(start);
    }
    assert!(text.lines().next().unwrap().contains("closed by process"), "{text}");
    assert!(text.contains("last events") && text.contains(" database_opened "), "{text}");
}

#[test]
fn the_screen_takes_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let history = history(dir.path());
    let sections = view::sections(dir.path(), &history);
    for (width, height) in [(1, 1), (20, 5), (80, 24), (120, 40), (300, 100)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| super::screen::draw(frame, "the head", &sections)).unwrap();
        let text = terminal.backend().to_string();
        if width >= 80 {
            assert!(text.contains("the head") && text.contains("operations"), "{text}");
        }
        if width >= 120 {
            assert!(text.contains("written: user") && text.contains("latencies"), "{text}");
        }
    }
}

#[test]
fn cells_of_a_column_are_aligned() {
    let rows = [["a", "1"], ["long", "1000"]];
    let rows = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
    assert_eq!(Section { title: "", rows }.lines(), ["a        1", "long  1000"]);
}

#[test]
fn only_live_figures_are_served() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        openmetrics::text(None),
        "# TYPE esker_up gauge\n# HELP esker_up Whether a process has the database open and writes \
         its statistics.\nesker_up 0\n# EOF\n"
    );
    let mut seen = observed(dir.path(), 5);
    for state in [ObservedState::Closed, ObservedState::Ended, ObservedState::Silent] {
        seen.state = state;
        let text = openmetrics::text(Some(&seen));
        assert!(text.contains("\nesker_up 0\n") && !text.contains("esker_puts"), "{text}");
        assert!(text.contains("\nesker_statistics_age_seconds "), "{text}");
    }
    seen.state = ObservedState::Live;
    let text = openmetrics::text(Some(&seen));
    assert!(text.contains("\nesker_up 1\n") && text.contains("\nesker_puts_total 5\n"), "{text}");
    assert_eq!(text.matches("# EOF\n").count(), 1);
    assert!(text.ends_with("\n# EOF\n"), "{text}");
}

#[test]
fn the_last_whole_events_are_shown_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    assert!(tail::last(dir.path(), 3).is_empty());
    let line = |number: u32| {
        format!("{{\"time\":3723004,\"seq\":{number},\"event\":\"flush\",\"number\":{number}}}\n")
    };
    let mut text: String = (0..2_000).map(line).collect();
    text.push_str("{\"event\":\"half");
    std::fs::write(dir.path().join("EVENTS"), &text).unwrap();
    let last = tail::last(dir.path(), 3);
    let lines: Vec<String> = last.iter().map(tail::line).collect();
    assert_eq!(
        lines,
        ["01:02:03 flush number=1997", "01:02:03 flush number=1998", "01:02:03 flush number=1999"]
    );
    std::fs::write(dir.path().join("EVENTS"), [0xff; 50_000]).unwrap();
    assert!(tail::last(dir.path(), 3).is_empty());
}

#[test]
fn times_are_short() {
    for (millis, text) in [(0, "0.0 s"), (1_500, "1.5 s"), (65_000, "65 s"), (7_199_000, "119 min")]
    {
        assert_eq!(seconds(Duration::from_millis(millis)), text);
    }
}

/// The metrics that the queries of the dashboard name, with the query.
fn metrics_in_the_dashboard() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana-dashboard.json");
    let dashboard: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut queries = Vec::new();
    collect(&dashboard, &mut queries);
    let mut found = Vec::new();
    for query in queries {
        let word = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':';
        for name in query.split(word).filter(|name| name.starts_with("esker_")) {
            found.push((name.to_owned(), query.clone()));
        }
    }
    found
}

fn collect(value: &Value, queries: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "expr" || name == "query" => {
                        queries.push(text.clone());
                    }
                    field => collect(field, queries),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, queries)),
        _ => {}
    }
}

#[test]
fn the_dashboard_names_metrics_that_exist() {
    let named = metrics_in_the_dashboard();
    assert!(named.len() > 20, "the queries were not found: {named:?}");
    let mut known: Vec<String> =
        openmetrics::ADDED.iter().map(|(name, _)| (*name).into()).collect();
    for metric in esker::Metric::all() {
        let endings: &[&str] = match metric.kind.as_str() {
            "counter" => &["_total"],
            "summary" => &["", "_count", "_sum"],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        known.extend(endings.iter().map(|ending| format!("{}{ending}", metric.name)));
    }
    for (name, query) in named {
        assert!(known.contains(&name), "there is no metric {name}, which `{query}` names");
    }
}
