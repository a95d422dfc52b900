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
    let figures = rows[1].strip_prefix(" \"two words\" ").unwrap();
    assert!(rows.len() == 2 && figures.split_whitespace().eq(["0"; 6]), "{table}");
    // Written in pieces, it is what it would be as a whole.
    let mut json = Vec::new();
    write_stats_json(&mut json, stats.clone()).unwrap();
    let whole = esker_json::stats(&stats, str::to_owned);
    assert_eq!(whole["trees"][0]["keyspace"], "two words");
    assert_eq!(String::from_utf8(json).unwrap(), format!("{whole}\n"));
    let whole = esker_json::stats(&stats, word::name);
    let mut in_pieces = Vec::new();
    flatten(String::new(), &whole, &mut in_pieces);
    let lines: Vec<(String, String)> = stats_lines(stats).collect();
    assert_eq!(lines, in_pieces);
    assert!(lines.iter().all(|(name, _)| !name.contains(' ')));
    let line = |name: &str| lines.iter().find(|line| line.0 == name).map(|line| line.1.as_str());
    assert_eq!(line("puts"), Some("3"));
    assert_eq!(line("stalls_us.memory"), Some("1.5"));
    assert_eq!(line("trees.0.keyspace"), Some("\"two words\""));
}

#[test]
fn bytes_in_json_are_a_string_or_an_object() {
    let json = |bytes: &[u8], encoding| bytes_json(bytes, encoding).to_string();
    for (bytes, text) in [
        (&b"apple"[..], r#""apple""#),
        (b"", r#""""#),
        (b"0x61", r#""0x61""#),
        (br#"{"hex":"61"}"#, r#""{\"hex\":\"61\"}""#),
        ("süß".as_bytes(), r#""süß""#),
        (b"a\n", r#"{"hex":"610a"}"#),
        (b"\xff", r#"{"hex":"ff"}"#),
    ] {
        assert_eq!(json(bytes, Encoding::Text), text);
    }
    assert_eq!(json(b"a", Encoding::Hex), r#"{"hex":"61"}"#);
    assert_eq!(json(b"a", Encoding::Base64), r#"{"base64":"YQ=="}"#);
    let entry = entry_json(b"k", b"\x00", Encoding::Text);
    assert_eq!(entry, json!({ "key": "k", "value": { "hex": "00" } }));
}

#[test]
fn what_is_empty_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let first = db.default_keyspace();
    assert_eq!(emptiness(&db, &first).unwrap(), "the database is empty");
    db.keyspace("two words").unwrap().insert("k", "v").unwrap();
    let said = emptiness(&db, &first).unwrap();
    assert_eq!(said, "the keyspace default is empty, others are not");
    first.insert("k", "v").unwrap();
    assert_eq!(emptiness(&db, &first), None);
    let trial = db.branch("trial").unwrap();
    for name in ["default", "two words"] {
        trial.keyspace(name).unwrap().remove("k").unwrap();
    }
    let said = emptiness(&trial, &trial.default_keyspace()).unwrap();
    assert_eq!(said, "the branch trial is empty");
}
