use super::{INLINE, KeyBuf};

#[test]
fn keys_of_every_length_keep_their_bytes() {
    for len in 0..=2 * INLINE {
        let key: Vec<u8> = (0..len).map(|n| n as u8 + 1).collect();
        let kept = KeyBuf::from(&key[..]);
        assert_eq!(&*kept, &key[..]);
        assert_eq!(KeyBuf::from(key.clone()), kept);
        assert_eq!(kept.clone().into_vec(), key);
        let behind = [&key[..], &[0]].concat();
        assert_eq!(&*KeyBuf::behind(&key), &behind[..]);
        assert_ne!(KeyBuf::behind(&key), kept);
    }
}

#[test]
fn it_takes_little_more_than_an_inline_key() {
    assert_eq!(size_of::<KeyBuf>(), 72);
}
