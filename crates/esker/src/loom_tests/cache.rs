//! Loading, eviction and removal in the [`BlockCache`] (R25).
//!
//! A frame says when it is used and when it is freed (`Life`): loom reports a use that does not
//! happen before the end.

use super::model;
use crate::base::Kind;
use crate::block::{Builder, Layout};
use crate::cache::{BlockCache, FrameBuf, FramePin, FrameView, Kept, Slots};
use crate::sync::pin;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Frames that fit: the fifth pushes the first one out.
const FRAMES: usize = 4;
/// About the bytes of a block.
const BYTES: u64 = 100;

/// The bytes of a block with one entry.
fn block(number: usize) -> Vec<u8> {
    let (mut builder, mut bytes) = (Builder::default(), Vec::new());
    builder.reset(true);
    builder.add(b"key", 1, 0, Kind::Put, &[number as u8; 32]);
    builder.finish(&mut bytes);
    bytes
}

fn frame(cache: &BlockCache, number: usize) -> FrameBuf {
    frame_for(Kept::Yes, cache, number)
}

fn frame_for(kept: Kept, cache: &BlockCache, number: usize) -> FrameBuf {
    let bytes = block(number);
    let mut frame = cache.frame_for(kept, bytes.len());
    frame.bytes_mut().copy_from_slice(&bytes);
    frame.set_layout(Layout::parse(&bytes).unwrap());
    frame
}

fn check(view: FrameView<'_>, number: usize) {
    assert_eq!(view.block().value(0), [number as u8; 32]);
}

fn load(slots: &Arc<Slots>, i: usize) -> FramePin {
    slots.load(i, BYTES, |_| Ok(frame(slots.cache(), i))).unwrap()
}

/// Uses a block, if it is there.
fn touch(slots: &Slots, i: usize) {
    let guard = pin();
    if let Some(view) = slots.get(i, &guard) {
        view.touch();
        check(view, i);
    }
}

/// A cache with room for [`FRAMES`], and slots of which the first ones are `loaded`.
fn slots(loaded: usize) -> Arc<Slots> {
    let probe = BlockCache::new(0);
    let one = frame(&probe, 0);
    let bytes = probe.stats().allocated;
    drop(one);
    let cache = Arc::new(BlockCache::new(FRAMES as u64 * bytes));
    let slots = Arc::new(Slots::new(&cache, FRAMES + 1));
    (0..loaded).for_each(|i| drop(load(&slots, i)));
    slots
}

/// Empties the slots; all memory must have returned then.
fn end(slots: &Slots) {
    slots.clear();
    assert_eq!(slots.cache().stats().bytes, 0);
    assert_eq!(slots.cache().stats().allocated, 0, "a frame was never freed");
}

#[test]
fn an_evicted_frame_lives_as_long_as_readers_and_pins() {
    model(4, || {
        let slots = slots(FRAMES);
        let reader = {
            let slots = slots.clone();
            thread::spawn(move || {
                let guard = pin();
                let Some(view) = slots.get(0, &guard) else { return };
                check(view, 0);
                let pinned = view.pin();
                // The pin outlives the epoch.
                drop(guard);
                check(pinned.view(), 0);
            })
        };
        check(load(&slots, FRAMES).view(), FRAMES);
        assert!(slots.pin(0).is_none(), "the oldest frame was evicted");
        reader.join().unwrap();
        end(&slots);
    });
}

#[test]
fn a_frame_is_whole_when_it_is_found() {
    model(4, || {
        let slots = slots(0);
        let reader = {
            let slots = slots.clone();
            thread::spawn(move || {
                let guard = pin();
                slots.get(0, &guard).into_iter().for_each(|view| check(view, 0));
            })
        };
        drop(load(&slots, 0));
        reader.join().unwrap();
        end(&slots);
    });
}

#[test]
fn a_used_frame_survives_and_another_goes() {
    model(4, || {
        let slots = slots(FRAMES);
        touch(&slots, 0);
        let reader = {
            let slots = slots.clone();
            thread::spawn(move || {
                touch(&slots, 0);
                touch(&slots, 1);
            })
        };
        drop(load(&slots, FRAMES));
        assert!(slots.pin(0).is_some(), "a used frame was evicted");
        let cached = (0..=FRAMES).filter(|i| slots.pin(*i).is_some()).count();
        assert_eq!(cached, FRAMES);
        reader.join().unwrap();
        end(&slots);
    });
}

#[test]
fn a_block_is_read_once_and_everybody_gets_it() {
    model(4, || {
        let slots = slots(0);
        let reads = Arc::new(AtomicUsize::new(0));
        let loader = |slots: &Arc<Slots>| {
            let (slots, reads) = (slots.clone(), reads.clone());
            move || {
                let read = |_| {
                    reads.fetch_add(1, Ordering::Relaxed);
                    Ok(frame(slots.cache(), 0))
                };
                let pinned = slots.load(0, BYTES, read).unwrap();
                check(pinned.view(), 0);
            }
        };
        let other = thread::spawn(loader(&slots));
        loader(&slots)();
        other.join().unwrap();
        assert_eq!(reads.load(Ordering::Relaxed), 1, "two threads read the same block");
        end(&slots);
    });
}

#[test]
fn a_block_that_was_read_ahead_meets_one_that_is_loaded() {
    model(4, || {
        let slots = slots(0);
        let other = {
            let slots = slots.clone();
            thread::spawn(move || check(slots.offer(0, frame(slots.cache(), 0)).view(), 0))
        };
        check(load(&slots, 0).view(), 0);
        other.join().unwrap();
        let kept = slots.pin(0).unwrap();
        check(kept.view(), 0);
        assert_eq!(slots.cache().stats().bytes, slots.cache().stats().allocated);
        drop(kept);
        end(&slots);
    });
}

#[test]
fn a_segment_goes_while_its_frames_are_evicted() {
    model(4, || {
        let slots = slots(FRAMES);
        // The other segment's block evicts one of those that go, and gives the first another round.
        touch(&slots, 0);
        let others = Arc::new(Slots::new(slots.cache(), 1));
        let other = {
            let others = others.clone();
            thread::spawn(move || check(load(&others, 0).view(), 0))
        };
        slots.clear();
        assert!((0..FRAMES).all(|i| slots.pin(i).is_none()));
        other.join().unwrap();
        end(&others);
    });
}

/// Another thread reads, loads and offers blocks: no way into the cache escapes the new capacity.
#[test]
fn a_smaller_capacity_takes_effect_at_once() {
    model(4, || {
        let slots = slots(FRAMES - 1);
        let reader = {
            let slots = slots.clone();
            thread::spawn(move || {
                touch(&slots, 0);
                check(load(&slots, FRAMES).view(), FRAMES);
                slots.offer_to_room(FRAMES - 1, frame(slots.cache(), FRAMES - 1));
            })
        };
        slots.cache().set_capacity(0);
        assert_eq!(slots.cache().stats().bytes, 0, "a cache keeps more than it may");
        reader.join().unwrap();
        assert_eq!(slots.cache().stats().bytes, 0, "a cache keeps more than it may");
        assert!((0..=FRAMES).all(|i| slots.is_vacant(i)));
        end(&slots);
    });
}

/// Loads a block, and says whether it is kept if it was not there.
fn load_and_tell(slots: &Arc<Slots>, i: usize) -> Option<Kept> {
    let mut told = None;
    let read = |kept| {
        told = Some(kept);
        Ok(frame_for(kept, slots.cache(), i))
    };
    let pinned = slots.load(i, BYTES, read).unwrap();
    check(pinned.view(), i);
    told
}

/// Slots of a full cache whose frames are in use, so that not every block is kept. The first slot has none, and has
/// not noted a miss.
fn slots_in_use() -> Arc<Slots> {
    let slots = slots(FRAMES);
    (0..FRAMES).for_each(|i| touch(&slots, i));
    drop(load(&slots, FRAMES));
    assert!(slots.is_vacant(0), "the oldest frame was evicted");
    slots
}

/// The second miss of a block lets it in, and those that come too late for it must not push it out of its slot.
#[test]
fn a_block_that_is_kept_stays_in_its_slot_when_others_miss_it() {
    model(4, || {
        let slots = slots_in_use();
        assert_eq!(load_and_tell(&slots, 0), Some(Kept::No));
        let other = {
            let slots = slots.clone();
            thread::spawn(move || load_and_tell(&slots, 0))
        };
        load_and_tell(&slots, 0);
        other.join().unwrap();
        assert!(slots.pin(0).is_some(), "a block that was kept is not in its slot");
        assert_eq!(slots.cache().stats().bytes, slots.cache().stats().allocated);
        end(&slots);
    });
}

/// Two threads miss a block at once; each has a frame of its own, or both have the one that is kept.
#[test]
fn a_block_that_is_not_kept_goes_with_its_reader() {
    model(4, || {
        let slots = slots_in_use();
        let before = slots.cache().stats().bytes;
        let reader = |slots: &Arc<Slots>| {
            let slots = slots.clone();
            move || load_and_tell(&slots, 0)
        };
        let other = thread::spawn(reader(&slots));
        let told = [reader(&slots)(), other.join().unwrap()];
        assert!(told.contains(&Some(Kept::No)), "the first miss was kept");
        let kept = told.contains(&Some(Kept::Yes));
        assert_eq!(slots.pin(0).is_some(), kept, "a block is kept against what was said");
        let stats = slots.cache().stats();
        assert_eq!((stats.bytes, stats.allocated), (before, before));
        end(&slots);
    });
}

/// There is room for two more blocks. Another thread offers two, of which one is loaded meanwhile, and a third.
#[test]
fn what_comes_along_takes_free_room_only() {
    model(4, || {
        let slots = slots(FRAMES - 2);
        let before = slots.cache().stats().bytes;
        let capacity = before + slots.cache().room();
        let other = {
            let slots = slots.clone();
            thread::spawn(move || {
                for i in [FRAMES - 1, FRAMES - 2] {
                    slots.offer_to_room(i, frame(slots.cache(), i));
                }
            })
        };
        for i in [FRAMES - 1, FRAMES] {
            check(load(&slots, i).view(), i);
        }
        other.join().unwrap();
        assert!(slots.cache().stats().bytes <= capacity, "more is kept than there is room for");
        // A load evicts one block if both that were offered came before it.
        let kept = [1, FRAMES - 1, FRAMES].into_iter().all(|i| slots.pin(i).is_some());
        assert!(kept, "what came along evicted another");
        end(&slots);
    });
}
