//! The overview: who leads a workload, and what its pictures say.

use super::{body, groups, input, report};
use crate::report::page::outcome::leaders;
use crate::report::page::{Merge, render};
use serde_json::{Value, json};

fn leading(reports: &[(&'static str, &[f64])]) -> (Vec<String>, bool) {
    let reports: Vec<(&str, Value)> =
        reports.iter().map(|(engine, rates)| (*engine, report(engine, rates))).collect();
    let groups = groups(&reports, Merge::default());
    let (leaders, once) = leaders(&groups[0], &groups[0].workloads[0]);
    let label = |column: usize| groups[0].columns[column].label.clone();
    (leaders.into_iter().map(label).collect(), once)
}

#[test]
fn the_best_store_leads_and_others_may_tie_with_it() {
    let (slow, fast, faster): (&[f64], &[f64], &[f64]) =
        (&[10.0, 11.0], &[100.0, 110.0], &[105.0, 112.0]);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(leading(&[("esker", slow), ("x", fast)]), (names(&["x"]), false));
    assert_eq!(leading(&[("esker", fast), ("x", slow)]), (names(&["esker"]), false));
    let tie = leading(&[("esker", fast), ("x", faster), ("y", slow)]);
    assert_eq!(tie, (names(&["x", "esker"]), false));
    assert_eq!(leading(&[("esker", &[10.0]), ("x", fast)]), (names(&["x"]), true));
    // What keeps nothing wins nothing, and one alone has no rival.
    assert_eq!(leading(&[("esker", slow), ("mem", fast), ("x", slow)]).0.len(), 2);
    assert_eq!(leading(&[("esker", slow), ("mem", fast)]), (names(&[]), false));
}

#[test]
fn less_leads_where_less_is_better_and_other_work_does_not_take_part() {
    let of = |engine: &str, seconds: f64| {
        let mut report = report(engine, &[10.0, 10.0]);
        for run in report["runs"].as_array_mut().unwrap() {
            run["workloads"][0]["maintenance"] = json!(true);
            run["workloads"][0]["seconds"] = json!(seconds);
        }
        report
    };
    let reports = [("a", of("esker", 5.0)), ("b", of("x", 2.0)), ("c", of("y", 9.0))];
    let timed = groups(&reports, Merge::default());
    assert_eq!(leaders(&timed[0], &timed[0].workloads[0]), (vec![1], false));
    let mut batched = report("x", &[100.0, 102.0]);
    for run in batched["runs"].as_array_mut().unwrap() {
        run["workloads"][0]["batched_instead"] = json!(true);
    }
    let slow = report("y", &[1.0, 1.0]);
    let reports = [("a", report("esker", &[50.0, 51.0])), ("b", batched), ("c", slow)];
    let groups = groups(&reports, Merge::default());
    assert_eq!(leaders(&groups[0], &groups[0].workloads[0]), (vec![0], false));
}

#[test]
fn the_overview_comes_first_and_says_what_it_shows() {
    let reports = [("a", report("esker", &[50.0, 51.0])), ("b", report("x", &[100.0, 104.0]))];
    let inputs: Vec<_> = reports.iter().map(|(file, report)| input(file, report)).collect();
    let page = render(&inputs, Merge::default()).unwrap();
    let place = |id: &str| body(&page).find(&format!("<h3 id=\"{id}\">")).unwrap();
    assert!(place("c1-overview") < place("c1-summary"));
    for expected in [
        "Winner: x.",
        "▼ 0.50× loss",
        // From the slowest of ours to the fastest: 50 / 104 to 51 / 100.
        "x: ▼ 0.50× loss (0.48× to 0.51×).",
        "worse by more than the spread",
    ] {
        assert!(body(&page).contains(expected), "{expected}");
    }
    assert!(!body(&page).contains("better by more than the spread"), "a sign that is not there");
}
