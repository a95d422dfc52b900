use super::*;
use std::time::Duration;

#[test]
fn every_leaf_becomes_a_line_with_its_path() {
    let value = json!({ "a": 1, "b": { "c": "text", "d": [true, { "e": 2.5 }] }, "empty": [] });
    let mut lines = Vec::new();
    flatten(String::new(), &value, &mut lines);
    let lines: Vec<String> = lines.iter().map(|(path, leaf)| format!("{path} {leaf}")).collect();
    assert_eq!(lines, ["a 1", "b.c text", "b.d.0 true", "b.d.1.e 2.5"]);
}

#[test]
fn statistics_have_lines_without_spaces_in_their_names() {
    let mut stats = Stats::default();
    stats.puts = 3;
    stats.stalls.memory = Duration::from_nanos(1_500);
    let mut tree = TreeShape::default();
    tree.keyspace = "two words".into();
    stats.trees = vec![tree];
    let mut table = Vec::new();
    write_trees(&mut table, &stats.trees).unwrap();
    let table = String::from_utf8(table).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with(" keyspace ") && rows[0].ends_with("  delta bytes"), "{table}");
    let row: Vec<&str> = rows[1].split_whitespace().collect();
    assert_eq!(
        (rows.len(), &row[..]),
        (2, &["0x74776f20776f726473", "0", "0", "0", "0", "0", "0"][..])
    );
    // Written in pieces, it is what it would be as a whole.
    let mut json = Vec::new();
    write_stats_json(&mut json, stats.clone()).unwrap();
    let whole = esker_json::stats(&stats, |name| token::encode(name.as_bytes()));
    assert_eq!(String::from_utf8(json).unwrap(), format!("{whole}\n"));
    let mut in_pieces = Vec::new();
    flatten(String::new(), &whole, &mut in_pieces);
    let lines: Vec<(String, String)> = stats_lines(stats).collect();
    assert_eq!(lines, in_pieces);
    assert!(lines.iter().all(|(name, value)| !name.contains(' ') && !value.contains(' ')));
    let line = |name: &str| lines.iter().find(|line| line.0 == name).map(|line| line.1.as_str());
    assert_eq!(line("puts"), Some("3"));
    assert_eq!(line("stalls_us.memory"), Some("1.5"));
    assert_eq!(line("trees.0.keyspace"), Some("0x74776f20776f726473"));
}
