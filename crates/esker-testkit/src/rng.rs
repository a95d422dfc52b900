//! A generator whose sequence never changes, so that a seed printed years ago still replays.

/// What [`Rng`] advances by: 2 to the 64th, divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Another number for each number, without any pattern: the first that [`Rng`] gives for this seed.
#[inline]
pub fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_add(STEP);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator of one thread among those of a seed.
    pub fn of_thread(seed: u64, thread: u64) -> Self {
        let mut rng = Self(seed ^ thread.wrapping_mul(0xa076_1d64_78bd_642f));
        rng.next();
        rng
    }

    /// The next 64 random bits.
    #[allow(clippy::should_implement_trait)] // It never ends.
    pub fn next(&mut self) -> u64 {
        let mixed = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        mixed
    }

    /// A number below `bound`, which is at least 1; the bias is immaterial for tests.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }
}
