use super::*;
use crate::error::ErrorKind;

/// Notes what it is given; fails at a position.
#[derive(Default)]
struct Notes {
    seen: Vec<(Seq, u32, Vec<u8>)>,
    fails_at: Option<Seq>,
    panics_at: Option<Seq>,
    threads: Vec<std::thread::ThreadId>,
}

impl Applies for Notes {
    fn apply(&mut self, position: Seq, operations: u32, payload: &[u8]) -> Result<()> {
        assert_ne!(self.panics_at, Some(position), "a test wants this panic");
        if self.fails_at == Some(position) {
            return Err(Error::corruption(Path::new("wal"), position, "test", "applied"));
        }
        self.seen.push((position, operations, payload.to_vec()));
        self.threads.push(std::thread::current().id());
        self.threads.dedup();
        Ok(())
    }
}

/// Payloads that fill no load, several, and more than one at once.
fn payloads(lens: &[usize]) -> Vec<(Seq, u32, Vec<u8>)> {
    let payload = |(n, len): (usize, &usize)| (8 * n as Seq, n as u32, vec![n as u8; *len]);
    lens.iter().enumerate().map(payload).collect()
}

/// Hands in the batches; returns how many, and fails after the last one if it is to.
fn run(notes: Notes, lens: &[usize], fails: bool) -> Result<(usize, Notes)> {
    relay(Path::new("wal"), notes, |sink| {
        let mut count = 0;
        for (position, operations, payload) in payloads(lens) {
            sink(position, operations, &payload)?;
            count += 1;
        }
        match fails {
            true => Err(Error::corruption(Path::new("wal"), u64::MAX, "test", "read")),
            false => Ok(count),
        }
    })
}

#[test]
fn batches_arrive_whole_and_in_order() {
    for lens in [&[][..], &[0], &[3, 0, 5], &[700 << 10; 20], &[5 << 20, 3 << 20, 1, 2 << 20, 9]] {
        let (count, notes) = run(Notes::default(), lens, false).unwrap();
        assert_eq!(count, lens.len());
        assert!(notes.seen == payloads(lens), "{lens:?}");
    }
}

#[test]
fn a_short_log_takes_no_thread_and_a_long_one_does() {
    let me = std::thread::current().id();
    let (_, notes) = run(Notes::default(), &[1000; 50], false).unwrap();
    assert_eq!(notes.threads, [me]);
    let (_, notes) = run(Notes::default(), &[900 << 10; 5], false).unwrap();
    assert!(notes.threads.len() == 1 && notes.threads[0] != me);
}

#[test]
fn what_cannot_be_applied_ends_reading_with_its_error() {
    for lens in [&[10; 40][..], &[600 << 10; 40], &[3 << 20; 40]] {
        for fails in [false, true] {
            let notes = Notes { fails_at: Some(8 * 7), ..Notes::default() };
            let error = run(notes, lens, fails).err().unwrap();
            let Error::Corruption(found) = &error else { panic!("{error}") };
            assert_eq!(found.offset, 8 * 7, "it comes before an error of reading");
        }
        let error = run(Notes::default(), lens, true).err().unwrap();
        assert!(matches!(&error, Error::Corruption(found) if found.offset == u64::MAX), "{error}");
    }
}

#[test]
fn a_panic_of_the_second_thread_is_an_error() {
    let notes = Notes { panics_at: Some(8 * 7), ..Notes::default() };
    let error = run(notes, &[600 << 10; 40], false).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::UserCodePanicked);
}

#[test]
fn loads_are_bounded_whatever_the_batches() {
    // Every load that waits or is applied was emptied before, or is one large batch on its own.
    let mut load = Load::default();
    load.push(0, 1, &vec![1; 10 * LOAD_BYTES]);
    assert_eq!(load.emptied().bytes.capacity(), 0, "what a large batch took is freed");
    let mut load = Load::default();
    load.push(0, 1, &vec![1; LOAD_BYTES]);
    let capacity = load.bytes.capacity();
    let load = load.emptied();
    assert!(load.bytes.capacity() == capacity && load.batches.is_empty());
}
