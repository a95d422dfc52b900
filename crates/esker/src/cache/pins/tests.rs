use super::*;
use crate::cache::{BlockCache, Holder};
use crate::sync::has_stripe;
use std::sync::{Arc, Barrier};

/// Of this the bound is 8 MiB, the share of an iterator 1 MiB and a step 64 KiB.
const CAPACITY: u64 = 40 << 20;
const STEP: u64 = CAPACITY / BOUND / STEPS;

/// An iterator with one cursor.
struct Reader {
    cache: Arc<BlockCache>,
    holder: Holder,
    looks: Looks,
}

impl Reader {
    fn new(cache: &Arc<BlockCache>) -> Self {
        let (cache, holder) = (cache.clone(), Holder::new(cache.clone()));
        Self { cache, holder, looks: Looks::default() }
    }

    /// Positions it; true: it has let go.
    fn position(&mut self, holds: u64) -> bool {
        self.holder.hold(holds);
        self.looks.begin();
        self.look(true)
    }

    fn look(&mut self, can: bool) -> bool {
        let pins = self.cache.pins();
        let lets_go = self.looks.lets_go(pins, self.holder.bytes(), can);
        if lets_go {
            self.holder.hold(0);
        }
        self.looks.count_itself(pins, 1000);
        lets_go
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.looks.end(self.cache.pins());
    }
}

fn sums(cache: &BlockCache) -> [u64; 3] {
    [HELD, OF_SHARES, ITERATORS].map(|sum| cache.pins().sums.get(sum))
}

fn told(cache: &BlockCache) -> [u64; 3] {
    [HELD, OF_SHARES, ITERATORS].map(|sum| cache.pins().sums.told(sum))
}

#[test]
fn an_iterator_that_comes_and_goes_writes_to_no_line_of_all_threads() {
    let cache = Arc::new(BlockCache::new(CAPACITY));
    // While other tests have more threads than there are stripes, this one may have none.
    let alone = has_stripe();
    for round in 1..1000 {
        let (first, second) = (round % (STEP / 4), round * 7 % (STEP / 4));
        let mut iterator = Reader::new(&cache);
        assert!(!iterator.position(first));
        assert!(!iterator.position(second));
        let mut other = Reader::new(&cache);
        assert!(!other.position(first));
        assert_eq!(sums(&cache), [first + second, first + second, 2000]);
        assert!(!alone || told(&cache) == [0; 3], "{:?}", told(&cache));
        drop((iterator, other));
        assert_eq!((sums(&cache), told(&cache)), ([0; 3], [0; 3]));
    }
}

#[test]
fn what_iterators_of_many_threads_hold_is_bounded_and_adds_up() {
    const THREADS: u64 = 70;
    let cache = Arc::new(BlockCache::new(CAPACITY));
    let bound = CAPACITY / BOUND;
    // Each less than a step, so that most threads have told nothing when the bound is reached.
    let holds = STEP - STEP / 8;
    // There are more threads at once than stripes.
    let alive = Barrier::new(THREADS as usize);
    let thread = || {
        alive.wait();
        let mut own: Vec<Reader> = (0..10).map(|_| Reader::new(&cache)).collect();
        for reader in &mut own {
            reader.position(holds);
        }
        own
    };
    let readers: Vec<Vec<Reader>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(thread)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // All are small, so the bound is that of the shares. Those that look at the same moment may all stay, or
    // all let go.
    let [held, shares, iterators] = sums(&cache);
    let let_go = cache.pins().let_go();
    assert_eq!(held, (THREADS * 10 - let_go) * holds, "{let_go} have let go");
    let at_once = THREADS * holds;
    assert!(held + at_once > bound && held <= bound + at_once, "{held}");
    assert!(shares == held && iterators == THREADS * 10_000, "{shares} and {iterators}");
    // This thread drops them.
    drop(readers);
    assert_eq!(sums(&cache), [0; 3]);
}

#[test]
fn one_that_cannot_let_go_holds_its_share_and_is_asked_at_each_move() {
    let cache = Arc::new(BlockCache::new(CAPACITY));
    let (bound, share) = (CAPACITY / BOUND, CAPACITY / BOUND / SHARES);
    let mut forgotten = Reader::new(&cache);
    assert!(!forgotten.position(3 * bound), "one that is alone holds what it has");
    let mut stays = Reader::new(&cache);
    stays.holder.hold(2 * share);
    stays.looks.begin();
    assert!(!stays.look(false));
    assert_eq!(cache.pins().let_go(), 0);
    assert_eq!(sums(&cache)[..2], [3 * bound + 2 * share, 2 * share]);
    assert!(stays.looks.is_due() && !stays.look(false), "it looks at its next move");
    assert!(stays.looks.is_due() && stays.look(true));
    assert_eq!(cache.pins().let_go(), 1);
    assert_eq!(sums(&cache)[..2], [3 * bound, share]);
}
