use super::*;

fn parsed(line: &str) -> Command {
    parse(line.as_bytes()).unwrap().unwrap()
}

fn refused(line: &str) -> Refusal {
    parse(line.as_bytes()).unwrap_err()
}

fn put(key: &str, value: &str, class: Option<Durability>, ttl: Option<u64>) -> Command {
    let ttl = ttl.map(Duration::from_secs);
    Command::Put { key: bytes(key), value: bytes(value), class, ttl }
}

fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

#[test]
fn every_command_of_the_help_is_understood() {
    for line in [
        "put k v ttl=5s",
        "del k",
        "delrange a b",
        "get k",
        "scan a b 1",
        "snap s",
        "unsnap s",
        "begin",
        "commit",
        "abort",
        "use ks",
        "keyspaces",
        "drop ks",
        "flush",
        "compact",
        "sync",
        "verify",
        "stats",
        "help",
        "close",
    ] {
        parsed(line);
        let name = line.split(' ').next().unwrap();
        assert!(HELP.iter().any(|(usage, _)| usage.split(' ').next() == Some(name)), "{name}");
    }
    assert_eq!(HELP.len(), 20);
    for line in ["exit", "quit"] {
        assert_eq!(parsed(line), Command::Close);
    }
}

#[test]
fn writes_take_a_class() {
    for (word, class) in [
        ("", None),
        (" buffered", Some(Durability::Buffered)),
        (" process", Some(Durability::Process)),
        (" disk", Some(Durability::Disk)),
    ] {
        assert_eq!(parsed(&format!("put k v{word}")), put("k", "v", class, None));
        assert_eq!(parsed(&format!("del k{word}")), Command::Del { key: bytes("k"), class });
        let range = (Some(bytes("a")), None);
        assert_eq!(parsed(&format!("delrange a -{word}")), Command::DelRange { range, class });
        assert_eq!(parsed(&format!("commit{word}")), Command::Commit(class));
    }
    assert_eq!(refused("put k v safe").kind, "usage");
    assert_eq!(refused("commit disk disk").kind, "usage");
}

#[test]
fn a_put_takes_a_time_to_live() {
    assert_eq!(parsed("put k v ttl=90s"), put("k", "v", None, Some(90)));
    let disk = Some(Durability::Disk);
    assert_eq!(parsed("put k v disk ttl=2h"), put("k", "v", disk, Some(7200)));
    assert_eq!(parsed("put k v ttl=2h disk"), put("k", "v", disk, Some(7200)));
    // Keys and values stand before it.
    assert_eq!(parsed("put ttl=1s ttl=2s"), put("ttl=1s", "ttl=2s", None, None));
    for line in ["put k v ttl=", "put k v ttl=90", "put k v ttl=0s", "put k v ttl=1s ttl=1s"] {
        assert_eq!(refused(line).kind, "usage", "{line}");
    }
    assert!(refused("put k v ttl=\"1s\"").message.contains("such as 90s"));
    assert_eq!(refused("del k ttl=1s").kind, "usage");
}

#[test]
fn reads_take_a_snapshot() {
    let snapshot = Some(bytes("s"));
    assert_eq!(parsed("get k @s"), Command::Get { key: bytes("k"), snapshot: snapshot.clone() });
    assert_eq!(
        parsed("scan - z 10 rev @s"),
        Command::Scan {
            range: (None, Some(bytes("z"))),
            limit: Limit::Most(10),
            reverse: true,
            snapshot
        }
    );
    let spaced = Some(bytes("two words"));
    assert_eq!(
        parsed("get k @\"two words\""),
        Command::Get { key: bytes("k"), snapshot: spaced.clone() }
    );
    assert_eq!(
        parsed("scan @\"two words\""),
        Command::Scan {
            range: (None, None),
            limit: Limit::Unsaid,
            reverse: false,
            snapshot: spaced
        }
    );
    assert_eq!(refused("scan - - - @s t").kind, "usage");
    assert_eq!(refused("get k s").kind, "usage");
}

#[test]
fn scans_take_bounds_and_a_limit() {
    let plain = |range, limit| Command::Scan { range, limit, reverse: false, snapshot: None };
    let none = (None, None);
    let range = (Some(bytes("-")), Some(bytes("b")));
    assert_eq!(parsed("scan - - -"), plain(none.clone(), Limit::All));
    assert_eq!(parsed("scan 0x2d b 0"), plain(range.clone(), Limit::Most(0)));
    assert_eq!(parsed("scan \"-\" b"), plain(range, Limit::Unsaid));
    assert_eq!(parsed("scan"), plain(none.clone(), Limit::Unsaid));
    let back = Command::Scan { range: none, limit: Limit::Unsaid, reverse: true, snapshot: None };
    assert_eq!(parsed("scan rev"), back);
    assert_eq!(parsed("scan - - rev"), back);
    for line in ["scan a", "scan a b x", "scan a b -1", "scan a b 1 back", "scan a b 1 @s rev"] {
        assert_eq!(refused(line).kind, "usage", "{line}");
    }
}

#[test]
fn spaces_and_line_ends_do_not_matter() {
    assert_eq!(parsed("  put  k   v  \r\n"), parsed("put k v"));
    for blank in ["", " ", "\n", "\r\n", "   \n"] {
        assert_eq!(parse(blank.as_bytes()), Ok(None));
    }
    // Only spaces separate: a tab is a byte of a token.
    assert_eq!(parsed("get a\tb"), Command::Get { key: bytes("a\tb"), snapshot: None });
}

#[test]
fn tokens_of_any_bytes_pass() {
    assert_eq!(
        parse(b"get \xff\x00").unwrap(),
        Some(Command::Get { key: vec![255, 0], snapshot: None })
    );
    let value = word::pseudo_random(20, b"k");
    let made_up = Command::Put { key: bytes("k"), value, class: None, ttl: None };
    assert_eq!(parsed("put k #20"), made_up);
    assert_eq!(parsed("put k \"#20\""), put("k", "#20", None, None));
    assert_eq!(parsed("put \"a b\" \"say \\\"hi\\\"\""), put("a b", "say \"hi\"", None, None));
    assert_eq!(parsed("put 0xb64:a2V5 \"\""), put("key", "", None, None));
    for line in ["get \"a", "get \"a\"b", "put \"a b c", "get \"\\x\""] {
        let refusal = refused(line);
        assert!(refusal.kind == "usage" && refusal.message.contains("double quote"), "{line}");
    }
    assert_eq!(parsed("get #20"), Command::Get { key: bytes("#20"), snapshot: None });
    assert_eq!(parsed("get @20"), Command::Get { key: bytes("@20"), snapshot: None });
    assert_eq!(parsed("use 0xc3bc"), Command::Use("ü".into()));
    assert_eq!(refused("use 0xff").kind, "usage");
    assert_eq!(refused("put k 0x1").kind, "usage");
    assert_eq!(refused("put k #4294967296").kind, "value-too-large");
}

#[test]
fn refusals_name_the_remedy() {
    assert_eq!(refused("put k").message, "the command is used as: put K V [CLASS] [ttl=TIME]");
    assert!(refused("PUT k v").message.contains("no command PUT: help lists them"));
    let line = format!("{} x", "y".repeat(10_000));
    assert!(refused(&line).message.len() < 200);
    assert_eq!(refused("close now").kind, "usage");
    assert_eq!(refused("exit now").message, "the command is used as: close");
    assert_eq!(refused("begin process").kind, "usage");
    assert_eq!(refused("compact a").kind, "usage");
}
