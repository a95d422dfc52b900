//! What a page says about an earlier report.

use super::{body, input, report};
use crate::report::page::{Merge, PageError, render_since};
use serde_json::{Value, json};

/// The page of a report and its baseline.
fn page(now: &Value, then: &Value) -> Result<String, PageError> {
    render_since(&[input("now.json", now)], &[input("then.json", then)], Merge::default())
}

/// The cell of an engine in the table of changes in speed, without markup.
fn cell(page: &str, engine: &str) -> String {
    let (_, table) = page.split_once("data-change=\"Speed\"").unwrap();
    let (_, cell) = table.split_once(&format!("<td data-engine=\"{engine}\"")).unwrap();
    let (cell, _) = cell.split_once("</td>").unwrap();
    let texts = cell.split('<').filter_map(|part| Some(part.split_once('>')?.1));
    texts.collect()
}

/// A report of two engines, each with a version.
fn two(ours: &[f64], theirs: &[f64], version: &str) -> Value {
    let mut both = report("esker", ours);
    for run in both["runs"].as_array_mut().unwrap() {
        run["version"] = json!(version);
    }
    let theirs = report("x", theirs)["runs"].as_array().unwrap().clone();
    both["runs"].as_array_mut().unwrap().extend(theirs);
    both
}

#[test]
fn each_engine_is_compared_with_itself_by_the_same_rule() {
    let then = two(&[100.0, 101.0], &[50.0, 52.0], "Esker 1");
    let now = two(&[202.0, 200.0], &[51.0, 53.0], "Esker 2");
    let made = page(&now, &then).unwrap();
    assert_eq!(cell(&made, "esker"), "2.00× ▲ winnow 201 ops/s, before 100 ops/s");
    assert_eq!(cell(&made, "x"), "1.02× = tienow 52.0 ops/s, before 51.0 ops/s");
    for expected in [
        "<b>esker</b>: 1 win, 0 losses and 0 ties in speed; Esker 2 now, Esker 1 before.",
        "<b>x</b>: 0 wins, 0 losses and 1 tie in speed.",
        "the rounds in then.json",
        "href=\"#c1-change\"",
    ] {
        assert!(made.contains(expected), "{expected}");
    }
    let back = page(&then, &now).unwrap();
    assert!(cell(&back, "esker").starts_with("0.50× ▼ loss"), "{}", cell(&back, "esker"));
    // Of a latency, less is better: the report has one percentile only, and it stays as it is.
    assert!(made.contains("99th percentile of latency</b>: 0 wins, 0 losses and 2 ties"));
}

#[test]
fn a_page_of_one_engine_shows_its_change() {
    let made = page(&report("esker", &[10.0, 10.0]), &report("esker", &[20.0, 20.0])).unwrap();
    assert_eq!(cell(&made, "esker"), "0.50× ▼ lossnow 10.0 ops/s, before 20.0 ops/s");
    assert!(!body(&made).contains("Overview") && !body(&made).contains("side by side"));
}

#[test]
fn what_the_baseline_lacks_is_said() {
    let mut now = two(&[10.0, 10.0], &[5.0, 5.0], "Esker 1");
    let then = report("esker", &[20.0, 20.0]);
    let made = page(&now, &then).unwrap();
    assert_eq!(cell(&made, "x"), "no ratio now 5.00 ops/s, before not measured");
    assert!(made.contains("<b>x</b>: not in the baseline."));
    // Of another comparison on the page the baseline may have nothing.
    now["settings"]["num"] = json!(7);
    let inputs = [input("a", &report("esker", &[1.0])), input("b", &now)];
    let both = render_since(&inputs, &[input("then.json", &then)], Merge::default()).unwrap();
    assert_eq!(both.matches("id=\"c1-change\"").count(), 1);
    assert!(!both.contains("c2-change"));
    assert_eq!(both.matches("The baseline has nothing that was measured under these").count(), 1);
}

#[test]
fn batches_now_are_not_compared_with_single_writes_before() {
    let then = report("x", &[5.0, 5.0]);
    let mut now = report("x", &[50.0, 50.0]);
    for run in now["runs"].as_array_mut().unwrap() {
        run["workloads"][0]["batched_instead"] = json!(true);
    }
    let made = page(&now, &then).unwrap();
    assert!(cell(&made, "x").starts_with("no ratio ≠ other work"), "{}", cell(&made, "x"));
}

#[test]
fn variants_of_an_engine_are_found_by_their_settings() {
    let variant = |rate: f64, cache: &str| {
        let mut one = report("x", &[rate, rate]);
        for run in one["runs"].as_array_mut().unwrap() {
            run["settings"] = json!([["cache", cache]]);
        }
        one
    };
    let mut then = variant(10.0, "1");
    let large = variant(40.0, "2")["runs"].as_array().unwrap().clone();
    then["runs"].as_array_mut().unwrap().extend(large);
    let made = page(&variant(20.0, "2"), &then).unwrap();
    assert!(cell(&made, "x").starts_with("0.50×"), "{}", cell(&made, "x"));
    assert!(!made.contains("other settings than before"));
    let made = page(&variant(20.0, "3"), &then).unwrap();
    assert!(made.contains("<b>x</b>: not in the baseline."), "nobody knows which one it was");
    let made = page(&variant(20.0, "3"), &variant(10.0, "1")).unwrap();
    assert!(made.contains("; opened with other settings than before"));
}

#[test]
fn a_baseline_holds_for_the_same_conditions_only() {
    let then = report("esker", &[20.0]);
    let refused = |change: fn(&mut Value)| {
        let mut now = report("esker", &[10.0]);
        change(&mut now);
        let error = page(&now, &then).unwrap_err();
        assert!(matches!(error, PageError::OtherConditions { .. }), "{error}");
        assert!(matches!(error.clone().classed(), crate::Error::Usage(_)));
        error.to_string()
    };
    let text = refused(|now| now["settings"]["num"] = json!(2000));
    for expected in ["then.json", "num 1,000 before, 2,000 now", "same machine and settings"] {
        assert!(text.contains(expected), "{text}");
    }
    let text = refused(|now| now["machine"]["cores"] = json!(4));
    assert!(text.contains("cores 2 before, 4 now"), "{text}");
    let text = refused(|now| now["experiment"] = json!("influxdb"));
    assert!(text.contains("experiment"), "{text}");
    // A system is updated. The page says so.
    let mut now = report("esker", &[10.0]);
    now["machine"]["system"] = json!("linux 7");
    let made = page(&now, &then).unwrap();
    assert!(made.contains("</b>system not known before, linux 7 now."));
    // What counts as now does not count as before.
    let error = page(&then, &then).unwrap_err();
    assert!(matches!(error, PageError::Twice { .. }), "{error}");
}
