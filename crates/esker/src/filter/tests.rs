use super::*;
use crate::base::codec::hash_key;

fn hashes(range: std::ops::Range<u32>) -> Vec<u64> {
    range.map(|i| hash_key(&i.to_be_bytes())).collect()
}

fn decode(bytes: &[u8], probes: u8) -> Decoded<Filter> {
    Filter::decode(bytes, probes, |_, lines| lines.collect())
}

#[test]
fn every_key_is_found_and_few_others() {
    for (bits, tolerated) in [(4, 0.25), (8, 0.035), (10, 0.015), (14, 0.005)] {
        let present = hashes(0..20_000);
        let filter = Filter::build(present.iter().copied(), bits);
        assert!(present.iter().all(|hash| filter.may_contain(*hash)));
        let wrong = hashes(50_000..150_000).iter().filter(|h| filter.may_contain(**h)).count();
        let rate = wrong as f64 / 100_000.0;
        assert!(rate < tolerated, "{bits} bits per key: {rate}");
        assert!(rate > 0.0, "{bits} bits per key are too good to be true");
    }
}

#[test]
fn survives_encoding() {
    let present = hashes(0..1000);
    let filter = Filter::build(present.iter().copied(), 10);
    let mut bytes = Vec::new();
    filter.encode(&mut bytes);
    assert_eq!(bytes.len(), filter.bytes());
    let decoded = decode(&bytes, filter.probes()).unwrap();
    for hash in hashes(0..5000) {
        assert_eq!(filter.may_contain(hash), decoded.may_contain(hash));
    }
}

#[test]
fn an_empty_filter_excludes_nothing() {
    assert!(Filter::build([].into_iter(), 10).may_contain(1));
    let none = Filter::build(hashes(0..10).into_iter(), 0);
    assert!(none.is_empty() && none.may_contain(hash_key(b"absent")));
}

#[test]
fn refuses_impossible_sizes() {
    assert!(decode(&[0; 63], 6).is_err());
    assert!(decode(&[0; 64], 17).is_err());
    assert!(decode(&[], 0).unwrap().is_empty());
}
