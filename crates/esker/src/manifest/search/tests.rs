use super::{Search, VAIN_BYTES, VAIN_PER_BYTE};
use crate::error::ErrorKind;
use crate::manifest::{Edit, Manifest, manifest_name, read};

/// Bytes that say at every place that a record of `len` bytes begins there.
fn lies(len: u32) -> Vec<u8> {
    [len.to_le_bytes(), 1u32.to_le_bytes()].concat().repeat(64_000)
}

#[test]
fn a_search_for_records_is_bounded_by_the_file() {
    for len in [0, 1024, 256 << 10] {
        let bytes = lies(len);
        let mut search = Search::new(&bytes, 7);
        assert_eq!(search.find(0), None);
        let most = VAIN_PER_BYTE * bytes.len() as u64 + VAIN_BYTES;
        assert!(search.vain() <= most, "{} bytes were summed up", search.vain());
        assert_eq!(search.is_spent(), len > 0);
    }
}

#[test]
fn what_cannot_be_searched_is_no_torn_tail() {
    let place = tempfile::tempdir().unwrap();
    let fs = crate::fs::os();
    drop(Manifest::create(fs.as_ref(), place.path(), 1, &Edit::default()).unwrap());
    let path = place.path().join(manifest_name(1));
    let whole = std::fs::read(&path).unwrap();
    for (lies, fits) in [(lies(0), true), (lies(256 << 10), false)] {
        std::fs::write(&path, [&whole[..], &lies].concat()).unwrap();
        let found = read(fs.as_ref(), place.path(), 1, None);
        assert_eq!(found.is_ok(), fits);
        assert!(found.err().is_none_or(|error| error.kind() == ErrorKind::Corruption));
    }
}
