//! Models of the protocols between the threads of a database, run by loom over all interleavings
//! (within a bound of preemptions).
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p esker --lib loom`
//!
//! Each model is the protocol with everything else taken away, and names the code that it
//! mirrors. Each has a twin in which one step is out of order: the twin must fail, which shows
//! that the model would notice. (The log's ring is checked in `commit::loom_tests`, with the very
//! code that runs.)

mod loom_models {
    use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    fn model(f: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(f);
    }

    /// `db::snapshots` against `db::compact`: a snapshot reads `visible` under the lock under
    /// which a merge copies the list (R17). The key has version 1, version 2 comes, and a merge
    /// that has read both keeps version 1 only for a snapshot that lies between.
    fn snapshot_and_merge(read_under_lock: bool) {
        model(move || {
            let visible = Arc::new(AtomicU64::new(2));
            let list = Arc::new(Mutex::new(Vec::new()));
            let old_is_there = Arc::new(AtomicBool::new(true));
            let merge = {
                let (visible, list) = (Arc::clone(&visible), Arc::clone(&list));
                let old_is_there = Arc::clone(&old_is_there);
                thread::spawn(move || {
                    // Version 2 is published, flushed, and an input of the merge.
                    visible.store(3, Ordering::Release);
                    let snapshots: Vec<u64> = list.lock().unwrap().clone();
                    if !snapshots.contains(&2) {
                        old_is_there.store(false, Ordering::Release);
                    }
                })
            };
            let seq = if read_under_lock {
                let mut list = list.lock().unwrap();
                let seq = visible.load(Ordering::Acquire);
                list.push(seq);
                seq
            } else {
                let seq = visible.load(Ordering::Acquire);
                list.lock().unwrap().push(seq);
                seq
            };
            let first = seq > 2 || old_is_there.load(Ordering::Acquire);
            merge.join().unwrap();
            let second = seq > 2 || old_is_there.load(Ordering::Acquire);
            assert!(first && second, "a snapshot lost the version that it sees");
        });
    }

    #[test]
    fn a_merge_keeps_what_a_snapshot_sees() {
        snapshot_and_merge(true);
    }

    #[test]
    #[should_panic(expected = "a snapshot lost")]
    fn a_position_read_before_the_lock_is_found_out() {
        snapshot_and_merge(false);
    }

    /// A frame, and whether its memory was given back.
    struct Frame {
        references: AtomicUsize,
        freed: AtomicBool,
    }

    impl Frame {
        fn release(&self) {
            if self.references.fetch_sub(1, Ordering::Release) == 1 {
                fence(Ordering::Acquire);
                assert!(!self.freed.swap(true, Ordering::Relaxed), "freed twice");
            }
        }
    }

    /// `cache::slots` against `cache::shard`: a reader finds a frame in its slot inside an epoch
    /// and pins it there; who evicts it empties the slot, waits for the grace period, and lets go
    /// of the queue's reference (R25). The epoch is reduced to one reader's flag: the period is
    /// over when the flag is down after the slot was emptied.
    fn evict_and_pin(wait_for_grace: bool) {
        model(move || {
            let frame =
                Arc::new(Frame { references: AtomicUsize::new(1), freed: AtomicBool::new(false) });
            let slot = Arc::new(AtomicBool::new(true));
            let inside = Arc::new(AtomicBool::new(false));
            let reader = {
                let (frame, slot) = (Arc::clone(&frame), Arc::clone(&slot));
                let inside = Arc::clone(&inside);
                thread::spawn(move || {
                    inside.store(true, Ordering::Relaxed);
                    fence(Ordering::SeqCst);
                    let found = slot.load(Ordering::Acquire);
                    if found {
                        assert!(!frame.freed.load(Ordering::Relaxed), "read after it was freed");
                        frame.references.fetch_add(1, Ordering::Relaxed);
                    }
                    inside.store(false, Ordering::Release);
                    if found {
                        // The pin outlives the epoch.
                        assert!(!frame.freed.load(Ordering::Relaxed), "freed under a pin");
                        frame.release();
                    }
                })
            };
            slot.store(false, Ordering::Release);
            fence(Ordering::SeqCst);
            while wait_for_grace && inside.load(Ordering::Acquire) {
                thread::yield_now();
            }
            frame.release();
            reader.join().unwrap();
            assert!(frame.freed.load(Ordering::Relaxed), "never freed");
        });
    }

    #[test]
    fn an_evicted_frame_lives_as_long_as_readers_and_pins() {
        evict_and_pin(true);
    }

    #[test]
    #[should_panic(expected = "freed")]
    fn an_eviction_without_grace_is_found_out() {
        evict_and_pin(false);
    }

    /// A run file that is unlinked by its last reference, if it is marked.
    struct File {
        obsolete: AtomicBool,
        unlinked: Arc<AtomicUsize>,
    }

    impl Drop for File {
        fn drop(&mut self) {
            if self.obsolete.load(Ordering::Acquire) {
                self.unlinked.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// `db::store` and `run::file` against readers: the version is swapped, then the file that it
    /// dropped is marked, and the last reference unlinks it (R22). Taking the version is one step
    /// here, as `EpochCell::load_arc` makes it by the epoch.
    fn swap_and_unlink(unlink_at_once: bool) {
        model(move || {
            let unlinked = Arc::new(AtomicUsize::new(0));
            let file = |obsolete| {
                let unlinked = Arc::clone(&unlinked);
                Arc::new(File { obsolete: AtomicBool::new(obsolete), unlinked })
            };
            let first = file(false);
            let version = Arc::new(Mutex::new(Some(Arc::clone(&first))));
            let reader = {
                let (version, unlinked) = (Arc::clone(&version), Arc::clone(&unlinked));
                thread::spawn(move || {
                    let seen = version.lock().unwrap().clone();
                    if let Some(file) = seen {
                        let gone = unlinked.load(Ordering::Acquire);
                        assert_eq!(gone, 0, "a file was unlinked under its reader");
                        drop(file);
                    }
                })
            };
            let old = version.lock().unwrap().take();
            drop(old);
            if unlink_at_once {
                unlinked.fetch_add(1, Ordering::Release);
            } else {
                first.obsolete.store(true, Ordering::Release);
            }
            drop(first);
            reader.join().unwrap();
            assert_eq!(unlinked.load(Ordering::Acquire), 1, "unlinked once");
        });
    }

    #[test]
    fn a_file_goes_once_and_after_its_last_reader() {
        swap_and_unlink(false);
    }

    #[test]
    #[should_panic(expected = "under its reader")]
    fn a_file_that_goes_with_the_version_is_found_out() {
        swap_and_unlink(true);
    }

    /// `sync::Signal`, step by step.
    struct Signal {
        epoch: AtomicU64,
        waiters: AtomicUsize,
        mutex: Mutex<()>,
        changed: Condvar,
    }

    impl Signal {
        fn new() -> Self {
            Self {
                epoch: AtomicU64::new(0),
                waiters: AtomicUsize::new(0),
                mutex: Mutex::new(()),
                changed: Condvar::new(),
            }
        }

        fn notify(&self) {
            self.epoch.fetch_add(1, Ordering::SeqCst);
            // loom's sequentially consistent operations are weaker than the language's: the fence
            // is what they stand for.
            fence(Ordering::SeqCst);
            if self.waiters.load(Ordering::SeqCst) > 0 {
                drop(self.mutex.lock().unwrap());
                self.changed.notify_all();
            }
        }

        fn wait_past(&self, epoch: u64) {
            let mut held = self.mutex.lock().unwrap();
            self.waiters.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            while self.epoch.load(Ordering::SeqCst) <= epoch {
                held = self.changed.wait(held).unwrap();
            }
            self.waiters.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// `db::admin::close` against those who wait (`db::worker`, `wait_for_work`): a waiter takes
    /// the signal's count before it looks at the flag. Whoever waits wakes, or loom reports a
    /// deadlock.
    #[test]
    fn close_wakes_everybody() {
        model(|| {
            let shared = Arc::new((Signal::new(), AtomicBool::new(false)));
            let waiters: Vec<_> = (0..2)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        let (signal, closing) = &*shared;
                        loop {
                            let seen = signal.epoch.load(Ordering::SeqCst);
                            if closing.load(Ordering::Acquire) {
                                return;
                            }
                            signal.wait_past(seen);
                        }
                    })
                })
                .collect();
            let (signal, closing) = &*shared;
            closing.store(true, Ordering::Release);
            signal.notify();
            waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        });
    }

    /// The same without the sleep, which loom cannot unwind from: a waiter that saw no flag goes
    /// to sleep on the count that it took, and the count must have moved when close is done.
    fn close_and_count(flag_first: bool) {
        model(move || {
            let shared = Arc::new((AtomicU64::new(0), AtomicBool::new(false)));
            let waiter = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let seen = shared.0.load(Ordering::SeqCst);
                    (!shared.1.load(Ordering::Acquire)).then_some(seen)
                })
            };
            let (epoch, closing) = &*shared;
            if flag_first {
                closing.store(true, Ordering::Release);
            }
            epoch.fetch_add(1, Ordering::SeqCst);
            closing.store(true, Ordering::Release);
            if let Some(asleep_on) = waiter.join().unwrap() {
                assert!(epoch.load(Ordering::SeqCst) > asleep_on, "asleep for ever");
            }
        });
    }

    #[test]
    fn whoever_missed_the_flag_meets_the_signal() {
        close_and_count(true);
    }

    #[test]
    #[should_panic(expected = "asleep for ever")]
    fn a_signal_before_the_flag_is_found_out() {
        close_and_count(false);
    }
}
