use super::*;

fn parsed(line: &str) -> Command {
    parse(line.as_bytes()).unwrap().unwrap()
}

fn refused(line: &str) -> Refusal {
    parse(line.as_bytes()).unwrap_err()
}

fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

#[test]
fn every_command_of_the_help_is_understood() {
    for line in [
        "put k v",
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
}

#[test]
fn writes_take_a_class() {
    for (word, class) in [
        ("", None),
        (" buffered", Some(Durability::Buffered)),
        (" process", Some(Durability::Process)),
        (" disk", Some(Durability::Disk)),
    ] {
        let put = Command::Put { key: bytes("k"), value: bytes("v"), class };
        assert_eq!(parsed(&format!("put k v{word}")), put);
        assert_eq!(parsed(&format!("del k{word}")), Command::Del { key: bytes("k"), class });
        let range = (Some(bytes("a")), None);
        assert_eq!(parsed(&format!("delrange a -{word}")), Command::DelRange { range, class });
        assert_eq!(parsed(&format!("commit{word}")), Command::Commit(class));
    }
    assert_eq!(refused("put k v safe").kind, "usage");
    assert_eq!(refused("commit disk disk").kind, "usage");
}

#[test]
fn reads_take_a_snapshot() {
    let snapshot = Some(bytes("s"));
    assert_eq!(parsed("get k @s"), Command::Get { key: bytes("k"), snapshot: snapshot.clone() });
    assert_eq!(
        parsed("scan - z 10 rev @s"),
        Command::Scan { range: (None, Some(bytes("z"))), limit: Some(10), reverse: true, snapshot }
    );
    assert_eq!(refused("scan - - - @s t").kind, "usage");
    assert_eq!(refused("get k s").kind, "usage");
}

#[test]
fn scans_take_bounds_and_a_limit() {
    let plain = |range, limit| Command::Scan { range, limit, reverse: false, snapshot: None };
    assert_eq!(parsed("scan - - -"), plain((None, None), None));
    assert_eq!(parsed("scan 0x2d b 0"), plain((Some(bytes("-")), Some(bytes("b"))), Some(0)));
    for line in ["scan a b", "scan a b x", "scan a b -1", "scan a b 1 back", "scan a b 1 @s rev"] {
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
    let value = esker_port::token::pseudo_random(20, b"k");
    assert_eq!(parsed("put k #20"), Command::Put { key: bytes("k"), value, class: None });
    assert_eq!(parsed("get #20"), Command::Get { key: bytes("#20"), snapshot: None });
    assert_eq!(parsed("get @20"), Command::Get { key: bytes("@20"), snapshot: None });
    assert_eq!(parsed("use 0xc3bc"), Command::Use("ü".into()));
    assert_eq!(refused("use 0xff").kind, "usage");
    assert_eq!(refused("put k 0x1").kind, "usage");
    assert_eq!(refused("put k #4294967296").kind, "value-too-large");
}

#[test]
fn refusals_name_the_remedy() {
    assert_eq!(refused("put k").message, "the command is used as: put K V [CLASS]");
    assert!(refused("PUT k v").message.contains("no command PUT: help lists them"));
    let line = format!("{} x", "y".repeat(10_000));
    assert!(refused(&line).message.len() < 200);
    assert_eq!(refused("close now").kind, "usage");
    assert_eq!(refused("begin process").kind, "usage");
    assert_eq!(refused("compact a").kind, "usage");
}
