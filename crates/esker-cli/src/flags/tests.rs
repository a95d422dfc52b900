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
