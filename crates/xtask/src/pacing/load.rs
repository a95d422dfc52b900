//! What writers do, and what the device does meanwhile.

use std::sync::OnceLock;
use std::time::Duration;

/// What is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Load {
    /// Half of what the database can take for long.
    Calm,
    /// Nine tenths of it.
    Busy,
    /// Twice as much.
    Overload,
    /// Four times as much for half a second, then nothing for two seconds.
    Bursts,
    /// Four fifths; the device is a fifth as fast for twenty seconds.
    SlowDisk,
    /// Four fifths; the device does nothing for a second.
    Stall,
    /// Small and huge writes, as fast as they go.
    SmallAndHuge,
    /// Many threads, as fast as they go.
    Crowd,
    /// What was written while a program was compiled, as recorded; on average as much as goes.
    Recorded,
}

impl Load {
    pub(super) const ALL: [Self; 9] = [
        Self::Calm,
        Self::Busy,
        Self::Overload,
        Self::Bursts,
        Self::SlowDisk,
        Self::Stall,
        Self::SmallAndHuge,
        Self::Crowd,
        Self::Recorded,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Busy => "busy",
            Self::Overload => "overload",
            Self::Bursts => "bursts",
            Self::SlowDisk => "slow disk",
            Self::Stall => "stall",
            Self::SmallAndHuge => "small and huge",
            Self::Crowd => "crowd",
            Self::Recorded => "recorded",
        }
    }
}

/// Bytes per second that the simulated database takes in for long, about: `Overload` measures it.
pub(super) const CAPACITY: f64 = 29e6;
/// When something happens to the device, and when a slow one is as before, in seconds.
pub(super) const EVENT_AT: f64 = 20.0;
pub(super) const SLOW_UNTIL: f64 = 40.0;
const SLOW_FACTOR: f64 = 0.2;
pub(super) const STALL_SECONDS: f64 = 1.0;

/// Bytes of a put, unless a load says otherwise.
const PUT: u64 = 16 << 10;
/// Bytes of a huge one: half of what a batch may have with these memtables.
pub(super) const HUGE: u64 = 16 << 20;
/// What a thread can write without any limit, in bytes per second.
const THREAD_RATE: f64 = 200e6;

/// Bytes that were written in each tenth of a second while a workspace of Rust crates was compiled, in
/// KiB.
const RECORDED: &str = include_str!("recorded.txt");

/// What a writer does.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    pub(super) bytes: u64,
    /// Its part of what is offered; `None`: it goes on at once.
    part: Option<f64>,
    /// It rests so long after each put.
    rests: Duration,
    /// When its next put is due, if it has a part of what is offered.
    due: Duration,
}

impl Writer {
    fn offering(writers: usize) -> Self {
        let part = Some(1.0 / writers as f64);
        Self { bytes: PUT, part, rests: Duration::ZERO, due: Duration::ZERO }
    }

    fn busy(bytes: u64, rests: Duration) -> Self {
        Self { bytes, part: None, rests, due: Duration::ZERO }
    }

    /// When it calls again after a put that ended then. What it could not offer in time is offered late.
    pub(super) fn again(&mut self, ended: Duration, load: Load) -> Duration {
        let Some(part) = self.part else {
            return ended + self.rests + Duration::from_secs_f64(self.bytes as f64 / THREAD_RATE);
        };
        loop {
            let rate = load.offered(self.due.as_secs_f64()) * part;
            if rate > 0.0 {
                self.due += Duration::from_secs_f64(self.bytes as f64 / rate);
                return self.due.max(ended);
            }
            self.due += Duration::from_millis(10);
        }
    }
}

/// The recording, as multiples of its mean.
fn recorded() -> &'static [f64] {
    static PARTS: OnceLock<Vec<f64>> = OnceLock::new();
    PARTS.get_or_init(|| {
        let kib: Vec<f64> =
            RECORDED.split_whitespace().filter_map(|kib| kib.parse().ok()).collect();
        let mean = kib.iter().sum::<f64>() / kib.len().max(1) as f64;
        kib.into_iter().map(|kib| kib / mean).collect()
    })
}

impl Load {
    pub(super) fn writers(self) -> Vec<Writer> {
        match self {
            Self::SmallAndHuge => {
                let huge = Writer::busy(HUGE, Duration::from_secs(2));
                let small = Writer::busy(1 << 10, Duration::ZERO);
                [vec![small; 8], vec![huge; 2]].concat()
            }
            Self::Crowd => vec![Writer::busy(PUT, Duration::ZERO); 256],
            _ => vec![Writer::offering(4); 4],
        }
    }

    /// Bytes per second that all writers offer at a time, in seconds.
    pub(super) fn offered(self, at: f64) -> f64 {
        match self {
            Self::Calm => 0.5 * CAPACITY,
            Self::Busy => 0.9 * CAPACITY,
            Self::Overload => 2.0 * CAPACITY,
            Self::Bursts if at % 2.5 < 0.5 => 4.0 * CAPACITY,
            Self::Bursts => 0.0,
            Self::SlowDisk | Self::Stall => 0.8 * CAPACITY,
            Self::SmallAndHuge | Self::Crowd => f64::INFINITY,
            Self::Recorded => {
                let parts = recorded();
                CAPACITY * parts.get((at * 10.0) as usize % parts.len()).copied().unwrap_or(0.0)
            }
        }
    }

    /// How fast the device is at a time, as a part of what it can do.
    pub(super) fn device(self, at: f64) -> f64 {
        match self {
            Self::SlowDisk if (EVENT_AT..SLOW_UNTIL).contains(&at) => SLOW_FACTOR,
            Self::Stall if (EVENT_AT..EVENT_AT + STALL_SECONDS).contains(&at) => 0.0,
            _ => 1.0,
        }
    }
}
