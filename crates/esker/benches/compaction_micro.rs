//! Compaction and scan rates over cursors in memory: what the tree, the version rule and the
//! snapshot view cost by themselves. Run with `cargo bench -p esker --bench compaction_micro`.

use esker::Result;
use esker::internals::base::rangedel::RangeTombstone;
use esker::internals::base::{Bytewise, Cursor, Kind, SEQ_MAX, Seq};
use esker::internals::compaction::{CompactionStream, Depth, VersionGc};
use esker::internals::iter::{Bounds, Reading, Sources, VisibleIter};
use esker_testkit::mix;
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 100;
const ENTRY_BYTES: usize = KEY_BYTES + VALUE_BYTES;

/// A sorted run in one flat buffer, all entries of one size.
#[derive(Debug, Clone, Default)]
struct Run {
    bytes: Vec<u8>,
    seq: Seq,
}

#[derive(Debug)]
struct RunCursor {
    run: Arc<Run>,
    at: usize,
}

impl RunCursor {
    fn new(run: &Arc<Run>) -> Self {
        Self { run: Arc::clone(run), at: usize::MAX }
    }

    fn len(&self) -> usize {
        self.run.bytes.len() / ENTRY_BYTES
    }

    fn key_at(&self, index: usize) -> &[u8] {
        &self.run.bytes[index * ENTRY_BYTES..][..KEY_BYTES]
    }

    fn go(&mut self, index: usize) -> Result<()> {
        self.at = index;
        Ok(())
    }

    fn lower_bound(&self, goes_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            if goes_before(self.key_at(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl Cursor for RunCursor {
    fn valid(&self) -> bool {
        self.at < self.len()
    }
    fn key(&self) -> &[u8] {
        self.key_at(self.at)
    }
    fn seq(&self) -> Seq {
        self.run.seq
    }
    fn kind(&self) -> Kind {
        Kind::Put
    }
    fn value(&self) -> &[u8] {
        &self.run.bytes[self.at * ENTRY_BYTES + KEY_BYTES..][..VALUE_BYTES]
    }
    fn seek(&mut self, key: &[u8], below: Seq) -> Result<()> {
        let seq = self.run.seq;
        self.go(self.lower_bound(|other| other < key || (other == key && seq >= below)))
    }
    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.go(self.lower_bound(|other| other < key).wrapping_sub(1))
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.go(0)
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.go(self.len().wrapping_sub(1))
    }
    fn next(&mut self) -> Result<()> {
        self.go(self.at + 1)
    }
    fn prev(&mut self) -> Result<()> {
        self.go(self.at.wrapping_sub(1))
    }
}

/// A run of `entries` distinct keys out of `space`; random heads, or equal ones.
fn run(number: u64, entries: u64, space: u64, equal_heads: bool) -> Run {
    let key = |index: u64| {
        let chosen = mix(number << 40 | index) % space;
        let mut key = [b'u'; KEY_BYTES];
        let head = if equal_heads { b"userkeys".to_owned() } else { mix(chosen).to_be_bytes() };
        key[..8].copy_from_slice(&head);
        key[8..].copy_from_slice(&chosen.to_be_bytes());
        key
    };
    let mut keys: Vec<_> = (0..entries).map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut bytes = Vec::with_capacity(keys.len() * ENTRY_BYTES);
    for key in keys {
        bytes.extend_from_slice(&key);
        bytes.resize(bytes.len() + VALUE_BYTES, b'v');
    }
    Run { bytes, seq: number }
}

fn report(name: &str, entries: u64, time: Duration) {
    let rate = entries as f64 / time.as_secs_f64() / 1e6;
    let nanoseconds = time.as_nanos() as f64 / entries as f64;
    println!("{name:44} {rate:8.2} M/s {nanoseconds:8.1} ns each");
}

fn merge(name: &str, runs: &[Arc<Run>]) -> Result<()> {
    let gc = VersionGc::new(Vec::new(), Depth::Bottom);
    let cursors = runs.iter().map(RunCursor::new).collect();
    let mut stream =
        CompactionStream::new(Bytewise, cursors, Vec::<Vec<RangeTombstone>>::new(), gc);
    let mut output: Vec<u8> = Vec::with_capacity(4 << 20);
    let start = Instant::now();
    let mut out = |key: &[u8], seq: Seq, _, value: &[u8]| {
        if output.len() + ENTRY_BYTES > 4 << 20 {
            output.clear();
        }
        output.extend_from_slice(key);
        output.extend_from_slice(value);
        std::hint::black_box(seq);
        Ok(())
    };
    while stream.step(&mut out, 4096)? {}
    report(name, stream.counts().entries_in, start.elapsed());
    Ok(())
}

fn view(runs: &[Arc<Run>]) -> VisibleIter<RunCursor, Bytewise, Vec<RangeTombstone>> {
    let mut sources = Sources::with_room(runs.len());
    runs.iter().for_each(|run| sources.push(RunCursor::new(run), SEQ_MAX));
    let operator = Arc::new(esker::internals::base::Operator::new("", "", None));
    let reading = Reading { at: SEQ_MAX, time: 0, operator, leaves_pieces: false };
    VisibleIter::new(Bytewise, sources, Vec::new(), reading, Bounds::default())
}

fn scan(name: &str, runs: &[Arc<Run>]) -> Result<()> {
    let mut iter = view(runs);
    let mut bytes = 0;
    for backward in [false, true] {
        let (start, mut entries) = (Instant::now(), 0);
        if backward {
            iter.seek_to_last()?
        } else {
            iter.seek_to_first()?
        }
        while iter.valid() {
            bytes += iter.key().len() + iter.value().len();
            entries += 1;
            if backward { iter.prev()? } else { iter.next()? }
        }
        let direction = if backward { "backward" } else { "forward" };
        report(&format!("{name}, {direction}"), entries, start.elapsed());
    }
    let start = Instant::now();
    let seeks = 200_000;
    for number in 0..seeks {
        iter.seek(&mix(number).to_be_bytes())?;
        for _ in 0..10 {
            if !iter.valid() {
                break;
            }
            bytes += iter.key().len() + iter.value().len();
            iter.next()?;
        }
    }
    std::hint::black_box(bytes);
    report(&format!("{name}, seek + 10"), seeks, start.elapsed());
    Ok(())
}

fn main() -> Result<()> {
    let base = 1_000_000;
    for equal_heads in [false, true] {
        let mut runs: Vec<_> =
            (1..5).map(|number| run(number, base / 12, base, equal_heads).into()).collect();
        runs.push(Run { seq: 0, ..run(9, base * 3, base, equal_heads) }.into());
        let heads = if equal_heads { "equal heads" } else { "random heads" };
        merge(&format!("compact base and 4 deltas, {heads}"), &runs)?;
        scan(&format!("scan base and 4 deltas, {heads}"), &runs)?;
        let even: Vec<_> =
            (1..6).map(|number| run(number, base / 5, 1 << 40, equal_heads).into()).collect();
        merge(&format!("compact 5 equal runs, {heads}"), &even)?;
        merge(&format!("compact 1 run, {heads}"), &runs[4..])?;
        scan(&format!("scan 1 run, {heads}"), &runs[4..])?;
    }
    Ok(())
}
