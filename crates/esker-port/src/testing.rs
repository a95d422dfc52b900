//! What tests of several modules share.

/// All sequences of up to two bytes.
pub fn short_sequences() -> impl Iterator<Item = Vec<u8>> {
    let all = || 0..=255_u8;
    let pairs = all().flat_map(move |first| all().map(move |second| vec![first, second]));
    std::iter::once(Vec::new()).chain(all().map(|first| vec![first])).chain(pairs)
}
