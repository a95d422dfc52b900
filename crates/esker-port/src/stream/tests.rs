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

/// A value that is larger than what is read whole, and compresses a little.
fn large_value(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59) as u8 + b'a').collect()
}

/// A stream with one large entry between small ones, whose value was given in pieces or as a whole.
fn stream_with(value: &[u8], form: Form, pieces: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, "memory", form, &header()).unwrap();
    writer.keyspace(&KeyspaceInfo::named("default", None)).unwrap();
    let one = |key: &[u8], value: &[u8]| {
        let mut entries = Entries::default();
        entries.push(key, value);
        entries
    };
    writer.entries(one(b"a", b"1")).unwrap();
    if pieces {
        let mut source = std::io::BufReader::with_capacity(100_003, std::io::Cursor::new(value));
        writer.entry_from(b"large", (&mut source, value.len() as u64)).unwrap();
    } else {
        writer.entries(one(b"large", value)).unwrap();
    }
    writer.entries(one(b"z", b"2")).unwrap();
    assert_eq!(writer.end().unwrap().entries, 3);
    bytes
}

#[test]
fn a_value_in_pieces_makes_the_frame_that_a_whole_one_makes() {
    let mut odd = large_value(3 << 20);
    odd[2 << 20] = 0;
    for value in [large_value(3 << 20), odd] {
        for form in FORMS {
            let (whole, pieces) =
                [false, true].map(|pieces| stream_with(&value, form, pieces)).into();
            if form != Form::Compressed {
                assert!(whole == pieces, "{form:?}");
            }
            for bytes in [whole, pieces] {
                let (frames, result) = read(&bytes);
                result.unwrap();
                let found: Vec<_> = frames
                    .iter()
                    .filter_map(|frame| match frame {
                        Frame::Entries(entries) => entries.iter().next(),
                        _ => None,
                    })
                    .collect();
                assert!(found == [(&b"a"[..], &b"1"[..]), (b"large", &value), (b"z", b"2")]);
            }
        }
    }
    // Readers of earlier builds decompress a frame at once.
    let value = large_value(3 << 20);
    let bytes = stream_with(&value, Form::Compressed, true);
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let at = bytes.windows(4).position(|window| window == magic).unwrap();
    let field = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (raw, stored) = (field(at - 12), field(at - 8));
    assert!(stored < raw);
    let body = zstd::bulk::decompress(&bytes[at..at + stored], raw).unwrap();
    assert!(body.ends_with(&value) && body.len() == raw);
}

#[test]
fn a_value_is_not_proved_before_its_end() {
    let value = large_value(3 << 20);
    for form in [Form::Binary, Form::Compressed] {
        let whole = stream_with(&value, form, true);
        // Two places in the value, one in the checksum behind it, and a cut.
        let at = whole.len() / 3;
        for (at, cut) in [(at, false), (2 * at, false), (whole.len() - 70, false), (at, true)] {
            let mut bytes = whole.clone();
            if cut {
                bytes.truncate(at)
            } else {
                bytes[at] ^= 4
            }
            let mut reader = Reader::new(bytes.as_slice(), "memory").unwrap();
            let (mut piece, mut came) = (Vec::new(), 0);
            let error = loop {
                match reader.next_part() {
                    Ok(Some(Part::Entry { key, len })) => {
                        assert_eq!((key.as_slice(), len), (&b"large"[..], value.len() as u64));
                        let ended = loop {
                            match reader.piece(&mut piece) {
                                Ok(()) if piece.is_empty() => break Ok(()),
                                Ok(()) => came += piece.len(),
                                Err(error) => break Err(error),
                            }
                            assert!(piece.len() <= FRAME_BYTES);
                        };
                        break ended.expect_err("damage went unnoticed");
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("damage went unnoticed"),
                    Err(error) => break error,
                }
            };
            let typed = matches!(error, Error::Damaged { .. } | Error::CutOff { .. });
            assert!(typed && came <= value.len(), "{form:?} {at}: {error}");
        }
    }
}
