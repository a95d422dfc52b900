use super::*;
use crate::Error;

const FORMS: [Form; 3] = [Form::Binary, Form::Compressed, Form::Text];

fn header() -> Header {
    Header { dump: [0xab; 16], database: [7; 16], position: 4711, selection: 0x0123_4567_89ab_cdef }
}

/// A stream with keyspaces, an order, and keys and values of all kinds.
fn stream(form: Form) -> (Vec<u8>, Vec<Frame>) {
    let keyspace = KeyspaceInfo::named;
    let mut entries = Entries::default();
    entries.push(b"", b"");
    entries.push(b"\0", &[0xff; 40]);
    entries.push(b"0x", b"-");
    entries.push(b"check 0", "größe\n".as_bytes());
    entries.push(&[0xff; 30], b"#1 @ +");
    let mut more = Entries::default();
    more.push(b"k", b"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv");
    let frames = vec![
        Frame::Keyspace(keyspace("default", None)),
        Frame::Entries(entries),
        Frame::Keyspace(KeyspaceInfo {
            merge_operator: Some("an operator".to_owned()),
            ttl: Some(std::time::Duration::from_millis(86_400_000)),
            ..keyspace("with space", Some("reverse"))
        }),
        Frame::Entries(more.clone()),
        Frame::Entries(more),
    ];
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, "memory", form, &header()).unwrap();
    for frame in &frames {
        match frame {
            Frame::Keyspace(info) => writer.keyspace(info).unwrap(),
            Frame::Entries(entries) => writer.entries(entries.clone()).unwrap(),
            Frame::End(_) => unreachable!(),
        }
    }
    let totals = writer.end().unwrap();
    assert_eq!((totals.keyspaces, totals.entries), (2, 7));
    let frames = frames.into_iter().chain([Frame::End(totals)]).collect();
    (bytes, frames)
}

fn read(bytes: &[u8]) -> (Vec<Frame>, Result<(), Error>) {
    let mut frames = Vec::new();
    let mut reader = match Reader::new(bytes, "memory") {
        Ok(reader) => reader,
        Err(error) => return (frames, Err(error)),
    };
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => {
                assert_eq!((*reader.header(), reader.offset()), (header(), bytes.len() as u64));
                return (frames, Ok(()));
            }
            Err(error) => return (frames, Err(error)),
        }
    }
}

#[test]
fn frames_come_back_in_every_form() {
    for form in FORMS {
        let (bytes, frames) = stream(form);
        let (read, result) = read(&bytes);
        result.unwrap();
        assert_eq!(read, frames, "{form:?}");
    }
}

#[test]
fn content_has_one_checksum_in_every_form() {
    let content = FORMS.map(|form| stream(form).1.pop());
    assert!(content[0] == content[1] && content[1] == content[2], "{content:?}");
}

#[test]
fn every_changed_bit_is_noticed() {
    for form in FORMS {
        let (bytes, frames) = stream(form);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let (read, result) = read(&damaged);
                let error = result.expect_err("damage went unnoticed");
                let typed = matches!(
                    error,
                    Error::Damaged { .. }
                        | Error::CutOff { .. }
                        | Error::NotADump { .. }
                        | Error::UnknownVersion { .. }
                );
                assert!(typed, "{form:?} {at} {bit}: {error}");
                assert_eq!(read, frames[..read.len()], "{form:?} {at} {bit}: {error}");
            }
        }
    }
}

#[test]
fn every_cut_is_noticed() {
    for form in FORMS {
        let (bytes, frames) = stream(form);
        for len in 0..bytes.len() {
            let (read, result) = read(&bytes[..len]);
            let error = result.expect_err("a cut went unnoticed");
            let typed = match error {
                Error::NotADump { .. } => len < 8,
                Error::CutOff { offset, .. } => offset <= len as u64,
                _ => false,
            };
            assert!(typed, "{form:?} {len}: {error}");
            assert_eq!(read, frames[..read.len()]);
        }
    }
}

#[test]
fn bytes_behind_the_end_and_frames_twice_are_noticed() {
    for form in FORMS {
        let (bytes, _) = stream(form);
        let longer = [&bytes[..], b"\n"].concat();
        assert!(matches!(read(&longer).1, Err(Error::Damaged { .. })), "{form:?}");
        let twice = [&bytes[..], &bytes[..]].concat();
        assert!(matches!(read(&twice).1, Err(Error::Damaged { .. })), "{form:?}");
    }
}

#[test]
fn lengths_are_not_believed() {
    // Heads with fitting checksums that promise the largest body there can be, and none.
    let (bytes, _) = stream(Form::Binary);
    let mut forged = bytes[..binary::HEADER_BYTES].to_vec();
    let raw = BODY_BYTES_MAX as u32;
    let head = binary::Head { kind: 2, codec: 0, raw, stored: raw };
    forged.extend_from_slice(&head.encode());
    let sum = xxhash_rust::xxh3::xxh3_64(&forged) as u32;
    forged.extend_from_slice(&sum.to_le_bytes());
    forged.extend_from_slice(b"few bytes");
    assert!(matches!(read(&forged).1, Err(Error::CutOff { .. })));
}

#[test]
fn other_files_and_newer_versions_are_told_apart() {
    for bytes in [&b""[..], b"PK", b"esker-dumpster\n", b"SQLite format 3\0", b"ESKRDUMX"] {
        assert!(matches!(read(bytes).1, Err(Error::NotADump { .. })), "{bytes:?}");
    }
    let (mut bytes, _) = stream(Form::Binary);
    bytes[8] = 9;
    assert!(matches!(read(&bytes).1, Err(Error::UnknownVersion { found: 9, .. })));
    let text = b"esker-dump 2\n";
    assert!(matches!(read(text).1, Err(Error::UnknownVersion { found: 2, .. })));
}
