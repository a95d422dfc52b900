use super::*;

#[test]
fn sizes_have_units() {
    for (text, bytes) in [
        ("0", 0),
        ("4096", 4096),
        ("64MiB", 64 << 20),
        ("64m", 64 << 20),
        ("2KB", 2048),
        ("1G", 1 << 30),
        ("1TiB", 1 << 40),
    ] {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
    for text in ["", "M", "-1", "1.5G", "1 G", "1PiB", "99999999999999999999", "999999999T", "ü"] {
        assert!(size(text).is_err(), "{text}");
    }
}

#[test]
fn times_to_live_have_units() {
    for (text, millis) in [
        ("1ms", 1),
        ("90s", 90_000),
        ("15m", 900_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("007s", 7_000),
    ] {
        assert_eq!(time_to_live(text), Ok(Duration::from_millis(millis)), "{text}");
    }
    for text in ["", "90", "s", "-1s", "+1s", "1.5h", "1 s", "1w", "1S", "99999999999999999d", "ü"]
    {
        assert!(time_to_live(text).unwrap_err().contains("such as 90s"), "{text}");
    }
    assert!(time_to_live("0s").unwrap_err().contains("more than nothing"));
}

#[test]
fn names_are_words() {
    assert_eq!(keyspace_name("users"), Ok("users".into()));
    assert_eq!(keyspace_name("two words"), Ok("two words".into()));
    assert_eq!(keyspace_name("\"two words\""), Ok("two words".into()));
    assert_eq!(branch_name("0x610a"), Ok("a\n".into()));
    for text in ["", "\"\"", "0xff", "0x1", "\"a", &"n".repeat(256)] {
        assert!(keyspace_name(text).is_err(), "{text}");
    }
}
