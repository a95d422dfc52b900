use super::*;
use crate::wal::memfs::MemFs;

const MAX: u64 = 1 << 20;

fn directory() -> PathBuf {
    PathBuf::from("/db/wal")
}

fn reserve(fs: &Arc<MemFs>) -> Arc<Reserve> {
    let fs: Arc<dyn Fs> = fs.clone();
    Reserve::find(&fs, &directory(), &Arc::new(EventBus::new(true)))
}

fn begun(fs: &Arc<MemFs>) -> Arc<Reserve> {
    let reserve = reserve(fs);
    reserve.begin(4096, 0);
    reserve
}

fn bytes(fs: &MemFs) -> u64 {
    fs.total_bytes()
}

#[test]
fn it_is_small_at_first_grows_with_memtables_and_is_cut_at_close() {
    let fs = MemFs::new();
    let reserve = begun(&fs);
    assert!(!reserve.is_tight());
    assert!(bytes(&fs) < 512 << 10, "{}", bytes(&fs));
    let mut growths = 0;
    let mut before = bytes(&fs);
    for memtable in (0..=MAX).step_by(STEP_BYTES as usize) {
        assert!(reserve.cover(memtable, MAX, 4096));
        assert!(bytes(&fs) >= memtable + memtable / 8 + OPEN_BYTES + FREEING_BYTES);
        growths += u32::from(bytes(&fs) > before);
        before = bytes(&fs);
    }
    assert!(growths <= 4, "{growths}");
    assert!(before <= 4 * MAX, "{before}");
    reserve.settle(4096);
    assert_eq!(bytes(&fs), OPEN_BYTES + FREEING_BYTES + 4096 + flush_share(0));
}

#[test]
fn what_frees_space_gets_its_part_and_the_background_all() {
    let fs = MemFs::new();
    let reserve = begun(&fs);
    let whole = bytes(&fs);
    assert!(reserve.give_up(Use::Freeing) && reserve.is_tight());
    assert_eq!(bytes(&fs), whole - FREEING_BYTES);
    assert!(!reserve.give_up(Use::Freeing), "there is no more of it");
    assert!(reserve.give_up(Use::All) && !reserve.give_up(Use::All));
    assert_eq!(bytes(&fs), 0);
    assert!(reserve.restore() && !reserve.is_tight());
    assert_eq!(bytes(&fs), whole);
}

#[test]
fn everybody_has_a_part_and_it_is_put_back_when_nobody_uses_it() {
    let fs = MemFs::new();
    let reserve = begun(&fs);
    reserve.cover_unit(MAX);
    assert!(!reserve.is_tight());
    let whole = bytes(&fs);
    assert_eq!(whole, OPEN_BYTES + 4096 + unit_share(MAX) + flush_share(0) + FREEING_BYTES);
    let claim = reserve.claim();
    assert!(reserve.give_up(Use::Flush));
    assert_eq!(bytes(&fs), OPEN_BYTES + 4096 + unit_share(MAX), "a unit can still be written");
    assert!(reserve.give_up(Use::Unit) && !reserve.give_up(Use::Flush));
    assert_eq!(bytes(&fs), OPEN_BYTES + 4096);
    assert!(!reserve.restore() && reserve.is_claimed(), "somebody uses it");
    drop(claim);
    // The available space goes to the parts that are needed most.
    fs.knobs.free.store(unit_share(MAX) + 4096, Ordering::Relaxed);
    assert!(!reserve.restore());
    assert_eq!(bytes(&fs), OPEN_BYTES + 4096 + unit_share(MAX));
    fs.knobs.free.store(MAX, Ordering::Relaxed);
    assert!(reserve.restore() && !reserve.is_tight());
    assert_eq!(bytes(&fs), whole);
}

#[test]
fn a_full_device_makes_it_tight_until_there_is_room() {
    let fs = MemFs::new();
    fs.knobs.free.store(100 << 10, Ordering::Relaxed);
    let reserve = begun(&fs);
    assert!(reserve.is_tight() && !reserve.restore());
    assert!(matches!(reserve.refusal(), Error::DiskFull { .. }));
    assert_eq!(bytes(&fs), OPEN_BYTES + 4096, "the part for opening fits");
    assert!(reserve.cover(MAX, MAX, 4096), "what frees space is not held up");
    fs.knobs.free.store(MAX, Ordering::Relaxed);
    assert!(reserve.restore() && !reserve.is_tight());
    let whole = bytes(&fs);
    // If it cannot grow, it stays as it is, and the memtable must be flushed.
    fs.knobs.free.store(100 << 10, Ordering::Relaxed);
    assert!(!reserve.cover(MAX / 2, MAX, 4096) && !reserve.is_tight());
    assert_eq!(bytes(&fs), whole);
    fs.knobs.free.store(MAX, Ordering::Relaxed);
    assert!(reserve.cover(MAX / 2, MAX, 4096));
}

#[test]
fn a_file_of_an_earlier_life_is_replaced_and_never_written_to() {
    let fs = MemFs::new();
    begun(&fs);
    let path = directory().join(RESERVE_NAME);
    // Another process gave the file a second name: its content must stay as it is.
    let other = fs.open(&path, OpenMode::ReadWrite).unwrap();
    other.write_at(b"precious", 0).unwrap();
    let len = other.len().unwrap();
    let reserve = begun(&fs);
    assert!(reserve.cover(MAX, MAX, 4096));
    reserve.settle(4096);
    assert_eq!(other.len().unwrap(), len);
    let mut start = [0; 8];
    fs.open(&path, OpenMode::Read).unwrap().read_at(&mut start, 0).unwrap();
    assert_eq!(start, [0; 8]);
}

#[test]
fn a_new_size_and_a_failure_are_events() {
    let fs = MemFs::new();
    let events = Arc::new(EventBus::new(true));
    let reserve = Reserve::find(&(fs.clone() as Arc<dyn Fs>), &directory(), &events);
    let told = || {
        let mut taken = Vec::new();
        events.take(&mut taken, true);
        taken.into_iter().map(|event| event.kind).collect::<Vec<_>>()
    };
    reserve.begin(4096, 0);
    assert_eq!(told(), [], "the size at open is no change");
    let small = bytes(&fs);
    assert!(reserve.cover(MAX, MAX, 4096));
    let large = bytes(&fs);
    assert_eq!(told(), [EventKind::ReserveChanged { before: small, bytes: large }]);
    assert!(reserve.cover(MAX, MAX, 4096));
    assert_eq!(told(), [], "it is as large as that already");
    reserve.cover_unit(MAX);
    let larger = large + unit_share(MAX);
    assert_eq!(told(), [EventKind::ReserveChanged { before: large, bytes: larger }]);
    // Parts that are used and put back change no size.
    assert!(reserve.give_up(Use::All) && reserve.restore());
    assert_eq!(told(), []);
    fs.knobs.fail_set_len.store(true, Ordering::Relaxed);
    reserve.settle(4096);
    let kinds = told();
    let failed = |kind: &EventKind| matches!(kind, EventKind::ReserveFailed { error: "io", .. });
    assert!(kinds.len() == 1 && failed(&kinds[0]), "{kinds:?}");
}

#[test]
fn the_reserve_rests_as_small_as_the_memtables_allow() {
    let fs = MemFs::new();
    let events = Arc::new(EventBus::new(true));
    let reserve = Reserve::find(&(fs.clone() as Arc<dyn Fs>), &directory(), &events);
    reserve.begin(4096, 0);
    let small = bytes(&fs);
    assert!(reserve.cover(MAX, MAX, 4096));
    let large = bytes(&fs);
    // What is needed half of is left.
    reserve.rest(|| MAX / 2);
    assert_eq!(bytes(&fs), large);
    // Somebody uses it.
    let claim = reserve.claim();
    reserve.rest(|| 0);
    assert_eq!(bytes(&fs), large);
    drop(claim);
    // Somebody writes after the size was chosen.
    let looks = std::cell::Cell::new(0);
    reserve.rest(|| {
        looks.set(looks.get() + 1);
        if looks.get() > 2 { MAX / 8 } else { 0 }
    });
    let middle = bytes(&fs);
    assert!(middle < large && middle > small + MAX / 8, "{middle}");
    let mut taken = Vec::new();
    events.take(&mut taken, true);
    let last = taken.pop().map(|event| event.kind);
    assert_eq!(last, Some(EventKind::ReserveChanged { before: large, bytes: middle }));
    assert!(reserve.cover(MAX, MAX, 4096));
    assert_eq!(bytes(&fs), large, "it grows again");
    reserve.rest(|| 0);
    assert_eq!(bytes(&fs), small);
    assert!(!reserve.is_tight());
}

#[test]
fn no_room_for_a_longer_segment_is_an_event_once() {
    let fs = MemFs::new();
    let events = Arc::new(EventBus::new(true));
    let reserve = Reserve::find(&(fs.clone() as Arc<dyn Fs>), &directory(), &events);
    reserve.begin(4096, 0);
    fs.knobs.free.store(0, Ordering::Relaxed);
    for bytes in [MAX / 2, MAX] {
        reserve.cover_unit(bytes);
        assert!(reserve.is_tight());
    }
    let mut taken = Vec::new();
    events.take(&mut taken, true);
    let full = |kind: &EventKind| matches!(kind, EventKind::DeviceFull { free: 0 });
    assert_eq!(taken.iter().filter(|event| full(&event.kind)).count(), 1, "{taken:?}");
}
