//! Tests of the bytes: headers of records and log files. Whole logs are tested with the pipeline.

use super::format::*;
use super::log_file::{file_name, file_number};
use crate::base::{SEQ_MAX, Seq};
use crate::fs::Incarnation;

fn record(position: Seq, published: Seq, synced: Seq) -> Record {
    Record {
        position,
        kind: RecordKind::Batch,
        operations: 3,
        payload_len: 100,
        payload_sum: 0x0102_0304,
        published,
        synced,
    }
}

#[test]
fn record_headers_come_back_and_every_flip_is_noticed() {
    let written = record(80_000, 79_000, 64);
    let bytes = written.encode(42);
    assert_eq!(Record::decode(42, 80_000, &bytes), Some(written));
    assert_eq!(Record::decode(43, 80_000, &bytes), None, "another use of the log file");
    assert_eq!(Record::decode(42, 80_008, &bytes), None, "another position");
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Record::decode(42, 80_000, &flipped), None, "bit {bit}");
    }
}

#[test]
fn record_layout_is_what_the_format_says() {
    let bytes = record(80_000, 79_000, 64).encode(42);
    assert_eq!(bytes[4..8], [4, 3, 2, 1]);
    assert_eq!(bytes[8..12], [100, 0, 0, 0]);
    assert_eq!(bytes[12..16], 125u32.to_le_bytes());
    assert_eq!(bytes[16..20], 9_992u32.to_le_bytes());
    assert_eq!(bytes[20..24], [1, 3, 0, 0]);
    assert_eq!(record_bytes(100), 128);
    assert_eq!(record_bytes(0), 24);
}

#[test]
fn distances_that_do_not_fit_claim_nothing() {
    let far = 40 << 32;
    let back = |published, synced| {
        let bytes = record(far, published, synced).encode(1);
        let record = Record::decode(1, far, &bytes).unwrap();
        (record.published, record.synced)
    };
    assert_eq!(back(far, far - 8), (far, far - 8));
    assert_eq!(back(far - 8 * (u64::from(u32::MAX) - 1), 0), (far - 8 * 0xFFFF_FFFE, 0));
    assert_eq!(back(8, 16), (0, 0), "saturation understates");
}

#[test]
fn nonsense_is_no_record() {
    assert_eq!(Record::decode(0, 0, &[0; RECORD_HEADER_LEN]), None);
    let mut long = record(800, 800, 800);
    long.payload_len = u32::MAX;
    assert_eq!(Record::decode(1, 800, &long.encode(1)), None, "longer than any record");
    let before_the_log = record(800, 800, 800).encode(1);
    assert_eq!(Record::decode(1, SEQ_MAX, &before_the_log), None);
}

#[test]
fn segment_headers_come_back_from_either_copy() {
    let header = LogFileHeader {
        nonce: 7,
        serial: 9,
        start: 4096,
        capacity: 8192,
        predecessor: 5,
        incarnation: Incarnation([3; 32]),
        life: 7,
    };
    let page = header.encode_page();
    assert_eq!(page.len() as u64, HEADER_BYTES);
    assert_eq!(LogFileHeader::decode_page(&page), HeaderPage::Valid(header));
    for bit in 0..SEGMENT_HEADER_LEN * 8 {
        let mut flipped = page.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(LogFileHeader::decode_page(&flipped), HeaderPage::Valid(header));
        flipped[COPY_OFFSET + bit / 8] ^= 1 << (bit % 8);
        let outcome = LogFileHeader::decode_page(&flipped);
        assert!(
            matches!(outcome, HeaderPage::Damaged | HeaderPage::Unknown(_)),
            "bit {bit}: {outcome:?}"
        );
    }
    assert_eq!(LogFileHeader::decode_page(&page[..2000]), HeaderPage::Valid(header));
    // A preparation that was cut off; and what only looks like one.
    for len in 1..SEGMENT_HEADER_LEN {
        let cut_off = [&page[..len], &[0; 4096][len..]].concat();
        assert_eq!(LogFileHeader::decode_page(&cut_off), HeaderPage::Blank, "{len}");
        assert_eq!(LogFileHeader::decode_page(&page[..len]), HeaderPage::Blank, "{len}");
    }
    assert_eq!(LogFileHeader::decode_page(&page[1..50]), HeaderPage::Damaged);
    assert_eq!(
        LogFileHeader::decode_page(&[&page[..50], &page[60..]].concat()),
        HeaderPage::Damaged
    );
    assert_eq!(LogFileHeader::decode_page(&[]), HeaderPage::Blank);
    assert_eq!(LogFileHeader::decode_page(&[0; 4096]), HeaderPage::Blank);
}

#[test]
fn crafted_headers_with_valid_checksums_are_refused() {
    let sane = LogFileHeader {
        nonce: 7,
        serial: 9,
        start: 4096,
        capacity: 8192,
        predecessor: 5,
        incarnation: Incarnation::default(),
        life: 0,
    };
    for crafted in [
        LogFileHeader { nonce: 0, ..sane },
        LogFileHeader { serial: u64::MAX, ..sane },
        LogFileHeader { start: 4097, ..sane },
        LogFileHeader { start: u64::MAX - 7, ..sane },
        LogFileHeader { capacity: 0, ..sane },
        LogFileHeader { capacity: 5000, ..sane },
        LogFileHeader { capacity: u64::MAX - 4095, ..sane },
    ] {
        let page = crafted.encode_page();
        assert_eq!(LogFileHeader::decode_page(&page), HeaderPage::Damaged, "{crafted:?}");
    }
}

#[test]
fn only_our_names_are_ours() {
    assert_eq!(file_number(&file_name(17)), Some(17));
    assert_eq!(file_number(&file_name(u64::MAX)), Some(u64::MAX));
    for name in ["17.log", "0000000017.run", "00000000017.log", "+000000017.log", "x.log", ""] {
        assert_eq!(file_number(name), None, "{name}");
    }
}
