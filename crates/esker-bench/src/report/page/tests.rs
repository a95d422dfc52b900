//! Merging, marks and escaping, on reports made for the purpose.

mod change;
mod lead;

use super::figure::{Mark, Measure, Spread, compare};
use super::group::{Group, group};
use super::*;
use serde_json::{Value, json};

/// A report with one round for each rate, of one workload.
fn report(engine: &str, rates: &[f64]) -> Value {
    let runs: Vec<Value> = rates.iter().map(|rate| run(engine, &[("fillseq", *rate)])).collect();
    json!({
        "machine": { "cores": 2, "processor": "a processor", "debug_build": false },
        "settings": { "engines": [engine], "rounds": rates.len(), "num": 1000, "durability": "process" },
        "runs": runs,
    })
}

fn run(engine: &str, workloads: &[(&str, f64)]) -> Value {
    let workloads = workloads.iter().map(|(name, rate)| {
        json!({
            "name": name, "seconds": 1000.0 / rate, "operations": 1000, "ops_per_second": rate,
            "latency": { "p50_us": 1.0, "p99_us": 2.0, "max_us": 9.5 },
        })
    });
    json!({ "engine": engine, "workloads": workloads.collect::<Vec<_>>() })
}

fn input(file: &str, report: &Value) -> Input {
    Input { file: file.into(), document: parse(file, report.to_string().as_bytes()).unwrap() }
}

fn groups(reports: &[(&str, Value)], merge: Merge) -> Vec<Group> {
    let inputs: Vec<Input> = reports.iter().map(|(file, report)| input(file, report)).collect();
    group(&inputs, merge).unwrap()
}

fn labels(group: &Group) -> Vec<&str> {
    group.columns.iter().map(|column| column.label.as_str()).collect()
}

fn spread(values: &[f64]) -> Spread {
    Spread::over(values.to_vec()).unwrap()
}

#[test]
fn a_difference_within_the_spread_is_a_tie() {
    let mark = |measure, ours: &[f64], theirs: &[f64]| {
        compare(measure, &spread(ours), &spread(theirs)).mark
    };
    let rate = Measure::Rate;
    assert_eq!(mark(rate, &[100.0, 110.0, 120.0], &[50.0, 55.0, 60.0]), Mark::Win);
    assert_eq!(mark(rate, &[50.0, 55.0, 60.0], &[100.0, 110.0, 120.0]), Mark::Loss);
    assert_eq!(mark(rate, &[50.0, 55.0, 120.0], &[100.0, 110.0, 120.0]), Mark::Tie);
    assert_eq!(mark(rate, &[100.0, 110.0], &[95.0, 105.0]), Mark::Tie);
    assert_eq!(mark(rate, &[100.0], &[1.0, 1.0]), Mark::Once);
    assert_eq!(mark(rate, &[7.0, 7.0], &[7.0, 7.0]), Mark::Tie);
    // The medians are further apart than either spread is wide, but rounds overlap.
    assert_eq!(mark(rate, &[10.0, 19.0, 20.0], &[0.0, 1.0, 10.0]), Mark::Tie);
    // Of a cost, less wins.
    assert_eq!(mark(Measure::P99, &[100.0, 110.0, 120.0], &[50.0, 55.0, 60.0]), Mark::Loss);
    assert_eq!(mark(Measure::Cpu, &[1.0, 1.1], &[2.0, 2.1]), Mark::Win);
}

#[test]
fn above_one_is_better_for_ours() {
    let ratio = |measure, ours, theirs| {
        compare(measure, &spread(&[ours, ours]), &spread(&[theirs, theirs])).ratio
    };
    assert_eq!(ratio(Measure::Rate, 300.0, 100.0), Some(3.0));
    assert_eq!(ratio(Measure::P99, 300.0, 100.0), Some(1.0 / 3.0));
    assert_eq!(ratio(Measure::Switches, 0.0, 100.0), None);
}

#[test]
fn rounds_of_several_files_are_one_column() {
    let reports = [
        ("a", report("esker", &[10.0, 30.0])),
        ("b", report("esker", &[20.0])),
        ("c", report("x", &[5.0])),
    ];
    let merged = groups(&reports, Merge::default());
    assert_eq!(merged.len(), 1);
    assert_eq!(merged[0].files, ["a", "b", "c"]);
    assert_eq!(labels(&merged[0]), ["esker", "x"]);
    let spread = Spread::of(Measure::Rate, &merged[0].workloads[0].rounds[0]).unwrap();
    assert_eq!(spread, Spread { min: 10.0, median: 20.0, max: 30.0, rounds: 3 });
    assert_eq!(merged[0].workloads[0].rounds[1].len(), 1);
}

#[test]
fn files_can_be_kept_apart() {
    let reports = [("a", report("esker", &[10.0])), ("b", report("esker", &[20.0]))];
    let apart = groups(&reports, Merge { by_file: true });
    assert_eq!(labels(&apart[0]), ["esker (a)", "esker (b)"]);
}

#[test]
fn engines_of_other_versions_or_settings_are_other_columns() {
    let mut reports =
        [("a", report("x", &[1.0])), ("b", report("x", &[2.0])), ("c", report("x", &[3.0]))];
    reports[1].1["runs"][0]["version"] = json!("X 2");
    reports[2].1["runs"][0]["settings"] = json!([["cache", "1"]]);
    let merged = groups(&reports, Merge::default());
    assert_eq!(labels(&merged[0]), ["x (a)", "x (X 2)", "x (c)"]);
}

#[test]
fn what_was_measured_differently_never_shares_a_table() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 5] = [
        ("durability", |report| report["settings"]["durability"] = json!("disk")),
        ("keys", |report| report["settings"]["num"] = json!(2000)),
        ("a setting of the future", |report| report["settings"]["novelty"] = json!(true)),
        ("machine", |report| report["machine"]["cores"] = json!(4)),
        ("experiment", |report| report["experiment"] = json!("influxdb")),
    ];
    for (what, change) in changes {
        let mut other = report("x", &[2.0]);
        change(&mut other);
        let merged = groups(&[("a", report("esker", &[1.0])), ("b", other)], Merge::default());
        assert_eq!(merged.len(), 2, "{what}");
    }
}

#[test]
fn esker_is_the_base_wherever_it_stands() {
    let reports = [("a", report("x", &[1.0])), ("b", report("esker", &[2.0]))];
    let merged = groups(&reports, Merge::default());
    assert_eq!(labels(&merged[0]), ["esker", "x"]);
    let rates = &merged[0].workloads[0].rounds;
    assert_eq!((rates[0][0].ops_per_second.0, rates[1][0].ops_per_second.0), (2.0, 1.0));
}

#[test]
fn a_workload_that_runs_twice_is_two() {
    let mut twice = report("esker", &[1.0]);
    twice["runs"][0] = run("esker", &[("overwrite", 5.0), ("readseq", 6.0), ("overwrite", 7.0)]);
    let merged = groups(&[("a", twice)], Merge::default());
    let titles: Vec<String> = merged[0].workloads.iter().map(|workload| workload.title()).collect();
    assert_eq!(titles, ["overwrite", "readseq", "overwrite (time 2)"]);
}

#[test]
fn wrong_files_are_named_with_what_to_do() {
    let cases: [(&str, &str, &str); 8] = [
        ("", "is empty", "not JSON"),
        ("{\"machine\":", "EOF", "not JSON"),
        ("[]", "not a report", "measure again"),
        ("{}", "missing field `machine`", "measure again"),
        ("{\"machine\":{},\"settings\":{},\"runs\":[]}", "no finished workload", "measure again"),
        ("{\"format\":4,\"runs\":[]}", "format 4", "newer program"),
        ("{\"format\":0,\"runs\":[]}", "format 0", "measure again"),
        ("{\"format\":\"x\"}", "format 0", "measure again"),
    ];
    for (text, cause, remedy) in cases {
        let error = parse("r.json", text.as_bytes()).unwrap_err().to_string();
        for expected in ["r.json", cause, remedy] {
            assert!(error.contains(expected), "{text}: {expected} is not in {error}");
        }
    }
    let mut old = report("esker", &[1.0]);
    old["runs"][0]["workloads"][0].as_object_mut().unwrap().remove("seconds");
    let error = parse("r.json", old.to_string().as_bytes()).unwrap_err();
    assert!(matches!(error, PageError::NotAReport { .. }), "{error}");
    assert!(error.to_string().contains("missing field `seconds`"), "{error}");
    let mut first = report("esker", &[1.0]);
    first["format"] = json!(1);
    parse("r.json", first.to_string().as_bytes()).unwrap();
    let mut absurd = report("esker", &[1.0]);
    absurd["runs"][0]["workloads"][0]["seconds"] = json!(-1.0);
    assert!(parse("r.json", absurd.to_string().as_bytes()).is_err());
    let error = read(&["no/such/file.json"]).unwrap_err();
    assert!(matches!(error, PageError::Unreadable { .. }), "{error}");
}

#[test]
fn the_same_report_does_not_count_twice() {
    let same = report("esker", &[1.0]);
    let inputs = [input("a", &same), input("b", &same)];
    let error = render(&inputs, Merge::default()).unwrap_err();
    assert!(matches!(&error, PageError::Twice { .. }), "{error}");
    assert!(matches!(render(&[], Merge::default()), Err(PageError::Empty)));
    assert!(matches!(error.classed(), crate::Error::Usage(_)));
}

#[test]
fn losses_are_told_with_their_ratio() {
    let reports = [("a", report("esker", &[50.0, 51.0])), ("b", report("x", &[100.0, 102.0]))];
    let inputs: Vec<Input> = reports.iter().map(|(file, report)| input(file, report)).collect();
    let page = render(&inputs, Merge::default()).unwrap();
    for expected in
        ["Where esker is behind", "2.00 times as fast (ratio 0.50×)", "0 wins, 1 loss and 0 ties"]
    {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(page.contains("</span>loss</span>"), "the mark is a word");
}

#[test]
fn batches_are_not_compared_with_single_writes() {
    let mut batched = report("x", &[100.0, 102.0]);
    for run in batched["runs"].as_array_mut().unwrap() {
        run["workloads"][0]["batched_instead"] = json!(true);
    }
    let inputs = [input("a", &report("esker", &[50.0, 51.0])), input("b", &batched)];
    let page = render(&inputs, Merge::default()).unwrap();
    for expected in
        ["other work</span>", "0 wins, 0 losses, 0 ties and 1 of other work", "in batches"]
    {
        assert!(page.contains(expected), "{expected}");
    }
}

#[test]
fn where_the_same_rate_was_due_latency_decides() {
    let due = |engine, p99: f64, kept_up: bool| {
        let mut report = report(engine, &[50.0, 50.0]);
        for (i, run) in report["runs"].as_array_mut().unwrap().iter_mut().enumerate() {
            let step = &mut run["workloads"][0];
            step["latency"]["p99_us"] = json!(p99 + i as f64);
            step["open_loop"] = json!({ "rate": 50.0, "percent": null, "kept_up": kept_up });
        }
        report
    };
    let inputs = [input("a", &due("esker", 10.0, true)), input("b", &due("x", 40.0, false))];
    let page = render(&inputs, Merge::default()).unwrap();
    for expected in ["1 win, 0 losses", "3.86×", "esker: 50.0 ops/s, kept up", "in 2 of 2 rounds"]
    {
        assert!(page.contains(expected), "{expected}");
    }
}

#[test]
fn what_spoils_a_report_is_said() {
    let mut stopped = report("esker", &[50.0, 51.0]);
    stopped["complete"] = json!(false);
    stopped["stopped"] = json!("the disk is full");
    stopped["machine"]["debug_build"] = json!(true);
    stopped["agreements"] =
        json!([{ "workload": "fillseq", "engines": ["a", "b"], "agree": false }]);
    let page = render(&[input("s.json", &stopped)], Merge::default()).unwrap();
    for expected in ["s.json: the disk is full", "without optimisation", "fillseq (a and b)"] {
        assert!(page.contains(expected), "{expected}");
    }
    let page = render(&[input("a", &report("esker", &[1.0]))], Merge::default()).unwrap();
    assert!(!page.contains("class=\"warning\""));
}

/// Every text of a file is put where a page could break.
#[test]
fn nothing_from_a_file_becomes_markup() {
    const HOSTILE: &str =
        "</svg></title></style><script>alert(1)</script>\"' onload=x <img src=x>&amp;";
    let mut hostile = report(HOSTILE, &[1.0, 2.0]);
    hostile["machine"]["processor"] = json!(HOSTILE);
    hostile["machine"][HOSTILE] = json!(HOSTILE);
    hostile["settings"][HOSTILE] = json!([HOSTILE, { HOSTILE: HOSTILE }]);
    hostile["experiment"] = json!(HOSTILE);
    hostile["published"] =
        json!([{ "workload": HOSTILE, "engine": HOSTILE, "ops_per_second": 1.0 }]);
    hostile["rules"] = json!([HOSTILE]);
    hostile["agreements"] = json!([{ "workload": HOSTILE, "engines": [HOSTILE], "agree": false }]);
    hostile["engines"] = json!([{
        "name": HOSTILE, "label": HOSTILE, "kind": HOSTILE, "tuning": HOSTILE, "note": HOSTILE,
    }]);
    for run in hostile["runs"].as_array_mut().unwrap() {
        run["version"] = json!(HOSTILE);
        run["failure"] = json!(HOSTILE);
        run["settings"] = json!([[HOSTILE, HOSTILE]]);
        let step = &mut run["workloads"][0];
        step["name"] = json!(HOSTILE);
        step["text"] = json!(HOSTILE);
        step["write_amplification_since_open"] = json!(2.0);
        step["rates"] = json!([
            { "seconds": 1.0, "ops_per_second": 1.0 }, { "seconds": 2.0, "ops_per_second": 0.0 },
        ]);
    }
    let page = render(&[input(HOSTILE, &hostile)], Merge::default()).unwrap();
    for wrong in ["<img", "\"' onload"] {
        assert!(!page.contains(wrong), "{wrong} is in the page");
    }
    for own in ["<script", "</script>", "</style>"] {
        assert_eq!(page.matches(own).count(), 1, "{own}");
    }
    assert_eq!(page.matches("<title").count(), page.matches("</title>").count());
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(page.matches("&lt;script&gt;").count() > 20, "it is there, as text");
}

/// A table for people: its rows, without markup.
fn rows(page: &str, caption: &str) -> Vec<Vec<String>> {
    let (_, table) = page.split_once(&format!("<caption>{caption}</caption>")).unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let cell = |cell: &str| {
        let inside = cell.split('<').enumerate();
        let text = inside.map(|(i, part)| match i {
            0 => part,
            _ => part.split_once('>').map_or("", |(_, text)| text),
        });
        text.collect::<String>()
    };
    let cells = |row: &str| {
        let split = row.replace("</th>", "\n").replace("</td>", "\n");
        split.lines().filter(|text| text.contains("<t")).map(cell).collect()
    };
    let rows = table.split("<tr").skip(1).map(|row| row.split_once('>').unwrap().1);
    rows.map(cells).collect()
}

#[test]
fn published_figures_stand_beside_ours() {
    let mut ours = report("esker", &[400.0, 200.0, 300.0]);
    let mut theirs = report("x", &[150.0]);
    ours["runs"][1]["workloads"][0]["write_amplification_since_open"] = json!(2.5);
    for place in 0..3 {
        ours["runs"][place]["round"] = json!(place + 1);
    }
    let beside = [(1, 4.0), (2, 1.0), (3, 2.0)].map(|(round, reads)| {
        json!({
            "engine": "esker", "round": round, "workload": "fillseq",
            "figures": { "device_reads_per_op": reads, "something_else": 1.0 },
        })
    });
    ours["figures"] = json!(beside);
    for report in [&mut ours, &mut theirs] {
        report["published"] = json!([
            { "workload": "fillseq", "engine": "A <1>", "scale": 50_000, "ops_per_second": 80.0,
              "write_amplification": 4.5, "device_reads_per_op": null },
            { "workload": "fillseq", "engine": "B", "ops_per_second": 20.0 },
            { "workload": "readseq", "engine": "C", "ops_per_second": 1.0 },
        ]);
    }
    let inputs = [input("a.json", &ours), input("b.json", &theirs)];
    let page = render(&inputs, Merge::default()).unwrap();
    let rows = rows(&page, "Published figures of fillseq beside ours");
    let expected = [
        ["esker", "1,000", "300", "1.00×", "2.50", "2.00"],
        ["x", "1,000", "150", "2.00×", "not known", "not known"],
        ["published: A &lt;1&gt;", "50,000", "80.0", "1.00×", "4.50", "not known"],
        ["published: B", "not known", "20.0", "4.00×", "not known", "not known"],
    ];
    assert_eq!(rows[1..], expected);
    assert!(!page.contains("published: C"), "nobody measured its workload");
}

#[test]
fn what_engines_print_is_shown_and_not_compared() {
    let with_shape = |engine: &str| {
        let mut report = report(engine, &[10.0, 10.0]);
        for run in report["runs"].as_array_mut().unwrap() {
            let text = format!("level 0 of {engine}: 7 <files>");
            run["workloads"].as_array_mut().unwrap().push(json!({
                "name": "shape", "maintenance": true, "seconds": 0.001, "operations": 1,
                "ops_per_second": 1000.0, "text": text,
            }));
        }
        report
    };
    let inputs = [input("a", &with_shape("esker")), input("b", &with_shape("x"))];
    let page = render(&inputs, Merge::default()).unwrap();
    for engine in ["esker", "x"] {
        let summary = format!("<summary>Statistics that {engine} printed (shape)</summary>");
        assert!(page.contains(&summary), "{summary}");
        assert!(page.contains(&format!("level 0 of {engine}: 7 &lt;files&gt;</pre>")));
    }
    assert!(!page.contains("Time taken of shape") && !page.contains("All figures of shape"));
}

#[test]
fn figures_that_no_engine_has_leave_no_picture() {
    let page = render(&[input("a", &report("esker", &[1.0]))], Merge::default()).unwrap();
    assert!(!page.contains("Rate over time") && !page.contains("Write amplification"));
}

/// The page without its style sheet and its script.
fn body(page: &str) -> &str {
    let (_, rest) = page.split_once("</style>").unwrap();
    rest.split_once("<script>").unwrap().0
}

#[test]
fn a_page_of_one_engine_compares_nothing() {
    let alone = input("a", &report("esker", &[1.0, 2.0]));
    let page = render(std::slice::from_ref(&alone), Merge::default()).unwrap();
    let comparing =
        ["side by side", "ompared", "Comparison", "Summary", "Overview", "Engines shown"];
    for wrong in comparing {
        assert!(!body(&page).contains(wrong), "{wrong}");
    }
    assert!(body(&page).contains("Measurement") && body(&page).contains("fillseq"));
    // Nor do two measurements that may not share a table.
    let mut other = report("esker", &[1.0]);
    other["settings"]["num"] = json!(5);
    let page = render(&[alone.clone(), input("b", &other)], Merge::default()).unwrap();
    for wrong in comparing {
        assert!(!body(&page).contains(wrong), "{wrong}");
    }
    assert!(body(&page).contains("Measurement 2 of 2"));
    let page = render(&[alone, input("b", &report("x", &[1.0]))], Merge::default()).unwrap();
    for expected in ["side by side", "Comparison", "Summary", "Overview", "Engines shown"] {
        assert!(body(&page).contains(expected), "{expected}");
    }
}

#[test]
fn the_policy_allows_the_own_script_and_no_other() {
    use base64::Engine as _;
    use sha2::Digest as _;
    let page = render(&[input("a", &report("esker", &[1.0]))], Merge::default()).unwrap();
    let (_, script) = page.split_once("<script>").unwrap();
    let (script, _) = script.split_once("</script>").unwrap();
    let hash = base64::prelude::BASE64_STANDARD.encode(sha2::Sha256::digest(script));
    let (_, policy) = page.split_once("http-equiv=\"Content-Security-Policy\" content=\"").unwrap();
    let (policy, _) = policy.split_once('"').unwrap();
    let parts: Vec<&str> = policy.split("; ").collect();
    assert!(parts.contains(&"default-src 'none'"), "{policy}");
    assert!(parts.contains(&format!("script-src 'sha256-{hash}'").as_str()), "{policy}");
    for loading in ["http:", "https:", "fetch(", "import", "XMLHttpRequest", "innerHTML"] {
        assert!(!script.contains(loading), "{loading}");
    }
}

#[test]
fn the_style_sheet_knows_every_colour_of_the_pictures() {
    let style = include_str!("style.css");
    for colour in chart::COLOURS {
        for attribute in ["fill", "stroke"] {
            let rule =
                format!("svg [{attribute}=\"{}\"] {{ {attribute}: var(", chart::code(colour));
            assert!(style.contains(&rule), "{rule}");
        }
    }
    for colour in [chart::INK, chart::GRID, chart::PAPER] {
        for attribute in ["fill", "stroke"] {
            assert!(style.contains(&format!("{attribute}=\"{}\"", chart::code(colour))));
        }
    }
    assert!(!style.contains("url(") && !style.contains("@import"), "the page loads nothing");
}

/// The structures that are written and those that are read are two; this holds them together.
#[test]
fn what_this_build_writes_it_reads() {
    struct Silent;
    impl crate::Observer for Silent {}
    let settings = crate::Settings {
        engines: crate::EngineSpec::parse_list("mem,null").unwrap(),
        workloads: crate::Workload::parse_list("fillseq,readwhilewriting:2,flush,stats").unwrap(),
        num: 500,
        rounds: 2,
        ..crate::Settings::default()
    };
    let report = crate::run(&settings, &mut Silent).unwrap();
    let text = serde_json::to_string(&report).unwrap();
    let document = parse("fresh.json", text.as_bytes()).unwrap();
    let step = &document.runs[0].workloads[0];
    let written = &report.runs[0].workloads[0];
    assert_eq!(step.ops_per_second.0, written.ops_per_second);
    assert_eq!(step.latency.as_ref().unwrap().p9999_us.unwrap().0, written.latency.p9999_us);
    assert_eq!(step.cpu_us_per_op.unwrap().0, written.cpu_us_per_op);
    let page = render(&[Input { file: "fresh.json".into(), document }], Merge::default()).unwrap();
    assert!(page.contains("readwhilewriting:2"));
}

#[test]
fn tables_for_a_document_tell_losses_and_cannot_be_broken() {
    let named = |report: &mut Value, label: &str| {
        let engine = report["runs"][0]["engine"].clone();
        report["engines"] = json!([{ "name": engine, "label": label }]);
    };
    let (mut ours, mut theirs) =
        (report("esker", &[100.0, 101.0]), report("other", &[400.0, 404.0]));
    named(&mut ours, "Esker");
    named(&mut theirs, "a|b<i>");
    theirs["published"] =
        json!([{ "workload": "fillseq", "engine": "System", "ops_per_second": 5000.0 }]);
    let text = markdown(&[input("a", &ours), input("b", &theirs)], Merge::default()).unwrap();
    assert!(text.contains(r"| Speed, operations a second | Esker | a\|b&lt;i> |"), "{text}");
    assert!(text.contains("| fillseq | 100 | 402 (**0.25×**) |"), "{text}");
    assert!(text.contains("behind in speed in 1 of 1 comparison:"), "{text}");
    assert!(text.contains(r"- fillseq, against a\|b&lt;i>: 0.25×"), "{text}");
    assert!(text.contains("| fillseq | 5,000 |"), "{text}");
    let alone = markdown(&[input("a", &ours)], Merge::default()).unwrap();
    assert!(!alone.contains("behind"), "{alone}");
}

/// A report says how it is made again, in the page and in the tables.
#[test]
fn the_origin_of_figures_is_told_once() {
    let origin = json!({
        "date": "2026-11-30T03:04:05Z", "command_line": "esker bench --num '<1>'",
        "commit": "abc", "compiler": "rustc 1",
    });
    let mut ours = report("esker", &[10.0, 11.0]);
    ours["origin"] = origin.clone();
    ours["machine"]["file_system"] = json!("ext4");
    // One run is of the same command, the other of an earlier one.
    ours["runs"][0]["origin"] = origin.clone();
    ours["runs"][1]["origin"] = json!({ "date": "2026-11-01T00:00:00Z", "commit": "older" });
    let theirs = report("x", &[5.0]);
    let inputs = [input("a.json", &ours), input("b.json", &theirs)];
    let page = render(&inputs, Merge::default()).unwrap();
    let rows = rows(&page, "Where the figures come from");
    let told =
        ["a.json", "2026-11-30T03:04:05Z", "esker bench --num '&lt;1&gt;'", "abc", "rustc 1"];
    let earlier =
        ["esker, round 0, in a.json", "2026-11-01T00:00:00Z", "not told", "older", "not told"];
    assert_eq!(rows[1..], [told, earlier]);
    let text = document(&inputs, Merge::default(), Some("page.html")).unwrap();
    let expected = "\n    esker bench --num '<1>'\n\n2026-11-30, 2026-11-01, a processor, 2 cores, ext4, \
                    rustc 1, commit abc, commit older.\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("Measured on 2026-11-01 to 2026-11-30.\n"), "{text}");
    assert!(text.contains("(page.html)"), "{text}");
    let unknown = document(&[input("b", &theirs)], Merge::default(), None).unwrap();
    assert!(!unknown.contains("Measured on") && !unknown.contains(".html"), "{unknown}");
}

/// Earlier versions knew less of a machine. What both know decides.
#[test]
fn a_fact_that_one_report_lacks_does_not_set_it_apart() {
    let on = |file_system: Value| {
        let mut report = report("esker", &[1.0]);
        report["machine"]["file_system"] = file_system;
        report
    };
    let apart =
        |one: Value, other: Value| groups(&[("a", one), ("b", other)], Merge::default()).len();
    let bare = report("x", &[1.0]);
    assert_eq!(apart(bare.clone(), on(json!("ext4"))), 1);
    assert_eq!(apart(on(Value::Null), bare), 1);
    assert_eq!(apart(on(json!("ext4")), on(json!("xfs"))), 2);
    // A report without the fact may stand beside either, and the group knows what any of them knew.
    let three = [("a", report("x", &[1.0])), ("b", on(json!("ext4"))), ("c", on(json!("xfs")))];
    assert_eq!(groups(&three, Merge::default()).len(), 2);
}

/// Costs, latencies of open loops and figures of experiments: a loss in any of them is in the document.
#[test]
fn the_document_has_open_loops_and_the_figures_of_experiments() {
    let with = |engine: &str, p99: f64, kept_up: bool, found: f64| {
        let mut report = report(engine, &[100.0]);
        let step = &mut report["runs"][0]["workloads"][0];
        step["latency"]["p99_us"] = json!(p99);
        step["open_loop"] = json!({ "rate": 100.0, "percent": 50.0, "kept_up": kept_up });
        step["peak_memory_bytes"] = json!(p99 * 1e6);
        report["runs"][0]["round"] = json!(1);
        report["figures"] = json!([{ "engine": engine, "round": 1, "workload": "fillseq",
            "figures": { "links_per_list": found, "unknown": null } }]);
        report
    };
    let inputs =
        [input("a", &with("esker", 40.0, true, 2.0)), input("b", &with("x", 10.0, false, 3.0))];
    let text = document(&inputs, Merge::default(), None).unwrap();
    for expected in [
        "| Open loop: 99th percentile of latency, µs | esker | x |",
        "| fillseq | 40.0 | 10.0 (**0.25×**) |",
        "Did not keep up with the rate: x in fillseq (1 of 1 round).",
        "| Peak memory of the process, MB | esker | x |",
        "| fillseq: links per list | 2.00 | 3.00 |",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    for absent in ["unknown", "optimisation", "Wrong"] {
        assert!(!text.contains(absent), "{text}");
    }
    let mut doubtful = with("esker", 1.0, true, 1.0);
    doubtful["machine"]["debug_build"] = json!(true);
    doubtful["agreements"] =
        json!([{ "workload": "fillseq", "engines": ["esker", "x"], "agree": false }]);
    let text = document(&[input("a", &doubtful)], Merge::default(), None).unwrap();
    assert!(text.contains("without optimisation"), "{text}");
    assert!(text.contains("**Wrong results**, so that"), "{text}");
    assert!(text.contains("fillseq (esker and x)"), "{text}");
}
