//! From an encoded batch to the published log: the pieces put together.

mod claim;
mod config;
mod full;
mod rest;

pub use config::{Class, LogConfig, LogCounters};

use super::group::{Group, OnSync};
use super::rest::Rest;
use super::ring::{Refused, Ring, Ticket};
use super::space::{Place, Space};
use crate::base::Seq;
use crate::error::{Error, IoContext, Result};
use crate::options::LogKind;
use crate::sync::Latch;
use crate::trace::{Phases, StepSource, Untimed};
use crate::waits::{Cause, Waits};
use crate::wal::format::{
    ALIGNMENT, OperationsPrefix, PAYLOAD_BYTES_MAX, RECORD_HEADER_LEN, operations_prefix,
    payload_sum, record_bytes,
};
use crate::wal::{Chain, LogFile, Medium, RELEASE_BYTES_MIN, Reach, Record, RecordKind, Recovered};
use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Writers that can be between reservation and publication at once, plus one.
const SLOTS: usize = 1024;
/// The plain log's buffer is freed when a record made it larger than this.
const BUFFER_KEPT: usize = 1 << 20;

/// The write path: see the module's description.
pub struct Pipeline {
    ring: Ring,
    space: Space,
    group: Group,
    latch: Arc<Latch>,
    /// Called to make room where a write into allocated space finds none.
    on_full: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// The plain log's lock and buffer; `None` for the mapped log.
    append: Option<Mutex<Vec<u8>>>,
    payload_bytes_max: u64,
    first: Seq,
    on_prepare_needed: Option<Box<dyn Fn() + Send + Sync>>,
    waits: Arc<Waits>,
    rest: Mutex<Rest>,
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("visible", &self.visible())
            .field("synced", &self.synced())
            .finish_non_exhaustive()
    }
}

impl Pipeline {
    /// Starts a new log whose first record stands at `first`, a multiple of 8 above 0. The
    /// directory is created if it is missing. Refuses a directory that holds a log with records.
    pub fn create(config: LogConfig, first: Seq, latch: Arc<Latch>) -> Result<Self> {
        let dir = &config.dir;
        config.fs.create_dir(dir).context("create", dir)?;
        if let Some(parent) = dir.parent() {
            config.fs.sync_dir(parent).context("sync", parent)?;
        }
        let chain = Chain::before_creation(&*config.fs, dir, first)?;
        Self::start(config, chain, first, latch)
    }

    /// Continues a recovered log at its end, in a new log file (R7). Before the first write the
    /// caller must have made durable what it replayed; the records written from now on say so.
    pub fn resume(config: LogConfig, recovered: Recovered, latch: Arc<Latch>) -> Result<Self> {
        let end = recovered.end;
        Self::start(config, recovered.chain, end, latch)
    }

    fn start(config: LogConfig, mut chain: Chain, at: Seq, latch: Arc<Latch>) -> Result<Self> {
        if at == 0 || !at.is_multiple_of(ALIGNMENT) {
            return Err(Error::invalid(format!("{at} is no position where a record can start")));
        }
        let ring = Ring::new(SLOTS, at);
        chain.life = config.life;
        let LogConfig { fs, dir, kind, file_bytes_min, file_bytes_max, on_full, events, .. } =
            config;
        let make_room = || on_full.as_ref().is_some_and(|make_room| make_room());
        let open = |medium, chain| {
            let place = Place { fs: fs.clone(), dir: dir.clone(), events: events.clone() };
            Space::open(place, medium, (file_bytes_min, file_bytes_max), chain, &ring, &make_room)
        };
        let (space, medium) = match kind {
            LogKind::Plain => (open(Medium::Plain, chain)?, Medium::Plain),
            LogKind::Mapped => (open(Medium::Mapped, chain)?, Medium::Mapped),
            LogKind::Auto => match open(Medium::Mapped, chain.clone()) {
                Ok(space) => (space, Medium::Mapped),
                Err(error) if cannot_map(&error) => {
                    // The number of the failed attempt is not used again.
                    chain.next_number += 1;
                    (open(Medium::Plain, chain)?, Medium::Plain)
                }
                Err(error) => return Err(error),
            },
        };
        Ok(Self {
            ring,
            space,
            group: Group::new(Arc::clone(&latch), at, config.on_sync.map(|tell| tell as OnSync)),
            latch,
            on_full,
            append: (medium == Medium::Plain).then(Mutex::default),
            payload_bytes_max: config.payload_bytes_max.min(PAYLOAD_BYTES_MAX),
            first: at,
            on_prepare_needed: config.on_prepare_needed,
            waits: config.waits,
            rest: Mutex::new(Rest::new(at, Instant::now())),
        })
    }

    /// Logs `payload`, a batch of `operations` operations, applies it and publishes it. Returns the
    /// end of its record once everything before that end is visible. Operation `i` has sequence
    /// number `start + i`; the closures get `start`.
    ///
    /// `check` runs after the reservation. If it fails or unwinds, the reserved stretch becomes a
    /// void (R2), so callers check whatever is possible before the call. `apply` must not fail: if
    /// it fails or unwinds, log and memory differ, and the database is poisoned. Neither closure
    /// may write or seal. What `check` returns is dropped when the write is complete. A sealed memtable set may have been replaced meanwhile: `apply` picks the
    /// set by the sequence number, and not the set that is active now.
    pub fn write<T>(
        &self,
        payload: &[u8],
        operations: u32,
        class: Class,
        check: impl FnOnce(Seq) -> Result<T>,
        apply: impl FnOnce(&T, Seq) -> Result<()>,
    ) -> Result<Seq> {
        self.write_followed(payload, operations, class, check, apply, &mut Untimed)
    }

    /// As [`Self::write`]; `phases` follows the write.
    pub fn write_followed<T>(
        &self,
        payload: &[u8],
        operations: u32,
        class: Class,
        check: impl FnOnce(Seq) -> Result<T>,
        apply: impl FnOnce(&T, Seq) -> Result<()>,
        phases: &mut impl Phases,
    ) -> Result<Seq> {
        self.latch.check()?;
        let len = self.measure(payload, operations, class)?;
        let mut pending = self.begin_write(len)?;
        phases.ended(StepSource::Reservation);
        let start = pending.ticket.start;
        let checked = match check(start) {
            Ok(checked) => checked,
            Err(error) => {
                drop(pending);
                return Err(error);
            }
        };
        pending.log(payload, operations, class)?;
        phases.ended(StepSource::Log);
        if let Err(error) = apply(&checked, start) {
            pending.fail(error.clone());
            return Err(error.poisoning());
        }
        pending.stage = Stage::Applied;
        phases.ended(StepSource::Apply);
        let end = pending.ticket.end;
        drop(pending);
        drop(checked);
        if self.space.alarm(end)
            && let Some(wake) = &self.on_prepare_needed
        {
            wake();
        }
        self.wait_visible(end)?;
        phases.ended(StepSource::Publication);
        // Seeded: class Disk does not sync.
        bug!("commit_disk_class_ignored", return Ok(end));
        if class == Class::Disk {
            let wait = self.waits.begin(Cause::Sync);
            self.sync(end)?;
            drop(wait);
            phases.ended(StepSource::Sync);
        }
        Ok(end)
    }

    /// Fails if a write of `payload` would be refused for its size, for an earlier failure or for
    /// lack of log space. Callers use it before a write that is preceded by an irreversible change.
    /// Another writer may still take the space that is free now.
    pub fn check_room(&self, payload: &[u8], operations: u32, class: Class) -> Result<()> {
        self.latch.check()?;
        let end = self.ring.reserved() + self.measure(payload, operations, class)?;
        if end <= self.ring.limit() {
            return Ok(());
        }
        self.overcome(Refused::Space { end })
    }

    /// The bytes that a record takes (R2: measured before anything is reserved).
    fn measure(&self, payload: &[u8], operations: u32, class: Class) -> Result<u64> {
        let len = payload.len() as u64;
        if len > self.payload_bytes_max {
            return Err(Error::BatchTooLarge { len, max: self.payload_bytes_max });
        }
        if class == Class::Buffered {
            // A record takes at least as many bytes as it has operations, since each operation has
            // a sequence number of its own; the header provides the first 24.
            return Ok(record_bytes(
                u64::from(operations).saturating_sub(RECORD_HEADER_LEN as u64),
            ));
        }
        if u64::from(operations) > len + RECORD_HEADER_LEN as u64 {
            return Err(Error::invalid("a batch has more operations than bytes".to_owned()));
        }
        Ok(record_bytes(operations_prefix(operations).len() as u64 + len))
    }

    /// Reserves the place of a write.
    fn begin_write(&self, len: u64) -> Result<PendingWrite<'_>> {
        // The plain log holds a lock from the reservation until the record is appended, so that a
        // killed process leaves no hole. The mapped log needs no lock.
        let buffer = self.append.as_ref().map(Mutex::lock);
        // This is read before the reservation: what the record says about the past must be true.
        let synced = self.group.synced();
        let ticket = self.reserve(len)?;
        Ok(PendingWrite { pipeline: self, ticket, synced, buffer, stage: Stage::Reserved })
    }

    fn reserve(&self, len: u64) -> Result<Ticket> {
        loop {
            match self.ring.try_reserve(len) {
                Ok(ticket) => return Ok(ticket),
                Err(refused) => self.overcome(refused)?,
            }
        }
    }

    #[cold]
    fn overcome(&self, refused: Refused) -> Result<()> {
        match refused {
            Refused::Gate if self.ring.wait_gate() => Ok(()),
            Refused::Gate => Err(Error::Closed),
            Refused::Slots { visible } => self.wait_ring(visible + ALIGNMENT),
            Refused::Space { end } => {
                let _wait = self.waits.begin(Cause::LogSpace);
                self.space.make_room(&self.ring, end)
            }
        }
    }

    fn wait_ring(&self, upto: Seq) -> Result<()> {
        if self.ring.wait_visible(upto) {
            return Ok(());
        }
        self.latch.check()?;
        Err(Error::Closed)
    }

    /// Stops the pipeline after a failure that leaves a ticket incomplete; every waiter gets the
    /// error (R2).
    fn fail(&self, error: Error) {
        self.latch.fail(error);
        self.ring.stop();
    }

    /// Everything before this position is published. One load.
    #[inline]
    pub fn visible(&self) -> Seq {
        self.ring.visible()
    }

    /// The position of the next record: the end of all reserved space, voids included.
    pub fn reserved(&self) -> Seq {
        self.ring.reserved()
    }

    /// Everything before this position survives power loss, or its log files were released.
    pub fn synced(&self) -> Seq {
        self.group.synced()
    }

    /// How far syncs since this open made the log durable; `None`: there was no sync.
    pub fn reach(&self) -> Option<Reach> {
        let position = self.synced();
        let nonce = self.space.nonce_before(position);
        (position > self.first).then_some(Reach { position, nonce })
    }

    /// Sets the life that is written to the header of every log file prepared from now on.
    pub fn set_life(&self, life: u64) {
        self.space.life.store(life, Ordering::Relaxed);
    }

    /// Closes reservation, runs `f` with the position that separates all earlier writes from all
    /// later ones, and opens it again (R3). Earlier writes may still be applying: see
    /// [`Pipeline::wait_visible`]. `f` must not write.
    pub fn seal<R>(&self, f: impl FnOnce(Seq) -> R) -> R {
        self.ring.seal(f)
    }

    /// Waits until everything before `upto` is published. Fails if that will never happen.
    #[inline]
    pub fn wait_visible(&self, upto: Seq) -> Result<()> {
        if self.ring.visible() >= upto {
            return Ok(());
        }
        if upto > self.ring.reserved() {
            return Err(Error::invalid(format!("nothing was written up to position {upto}")));
        }
        self.wait_ring(upto)
    }

    /// Returns once everything logged before `upto` survives power loss (R5).
    pub fn sync(&self, upto: Seq) -> Result<()> {
        self.wait_visible(upto)?;
        self.sync_files(upto, || self.ring.visible())
    }

    fn sync_files(&self, upto: Seq, visible: impl Fn() -> Seq) -> Result<()> {
        // Seeded: a sync of the log says that it is done and syncs nothing.
        bug!("commit_sync_does_nothing", return Ok(()));
        self.group.sync(upto, visible, |from, target| {
            // Seeded: only the newest log file is synced, so a power cut leaves a hole before
            // durable records.
            let from = if bug!("commit_older_segments_not_synced") { target - 1 } else { from };
            let much = target - from >= RELEASE_BYTES_MIN;
            self.space.span(from, target).iter().try_for_each(|log_file| {
                if much {
                    // Also what is written while earlier files are synced is written out with the last one.
                    log_file.release(from);
                }
                log_file.sync()
            })
        })
    }

    /// Releases the log before `position`, which is no longer needed. The caller first makes the
    /// manifest edit that says so durable (R3). Whole log files are recycled or removed. An error
    /// means that a file could not be removed; the log itself is not affected.
    pub fn release_before(&self, position: Seq) -> Result<()> {
        self.space.release_before(position.min(self.visible()))
    }

    /// Whether [`Pipeline::prepare_ahead`] has a log file to prepare.
    pub fn needs_preparation(&self) -> bool {
        self.space.due(&self.ring)
    }

    /// Prepares the next log file if enough of the last one is used, and makes pages ahead of the
    /// writers resident (R9). Returns whether a log file was prepared. An error is not a failure of
    /// the log: the next writer that needs the space tries again (R8).
    pub fn prepare_ahead(&self) -> Result<bool> {
        self.space.prepare_ahead(&self.ring)
    }

    /// Refuses further writes, waits for writes under way, writes the end mark with payload `say`
    /// and syncs the log. Returns how far the log reaches before the mark; `None`: nothing was
    /// written in this life. A second call does nothing and returns `None`.
    pub fn close(&self, say: &[u8]) -> Result<Option<Reach>> {
        let (end, first) = self.ring.shut();
        if !first {
            return Ok(None);
        }
        self.latch.check()?;
        self.wait_visible(end)?;
        let after = end + record_bytes(say.len() as u64);
        // Without room for the end mark the log has none; the next open then only checks more
        // closely.
        let mut marked = self.space.make_room_quietly(&self.ring, after);
        if marked {
            let mark = Record {
                position: end,
                kind: RecordKind::End,
                operations: 0,
                payload_len: say.len() as u32,
                payload_sum: 0,
                published: end,
                synced: self.group.synced(),
            };
            let mut put = self.put_spanning(mark, &[], say);
            if put.as_ref().is_err_and(|error| self.finds_room(error)) {
                put = self.put_spanning(mark, &[], say);
            }
            match put {
                // A partly written end mark counts as none.
                Err(Error::DiskFull { .. }) => marked = false,
                put => put.inspect_err(|error| self.fail(error.clone()))?,
            }
        }
        // Seeded: what was written before a clean close can be lost to a power cut.
        bug!("commit_close_does_not_sync", return Ok(None));
        let upto = if marked { after } else { end };
        self.sync_files(upto, || upto)?;
        let nonce = self.space.nonce_before(end);
        Ok((end > self.first).then_some(Reach { position: end, nonce }))
    }

    /// Whether records are copied into a mapping.
    pub fn mapped(&self) -> bool {
        self.append.is_none()
    }

    /// What was counted since the log was opened.
    pub fn counters(&self) -> LogCounters {
        let nanos = |counter: &AtomicU64| Duration::from_nanos(counter.load(Ordering::Relaxed));
        LogCounters {
            bytes: self.ring.reserved() - self.first,
            syncs: self.group.syncs.load(Ordering::Relaxed),
            sync_time: nanos(&self.group.sync_nanos),
            files_prepared: self.space.prepared.load(Ordering::Relaxed),
            files_recycled: self.space.recycled.load(Ordering::Relaxed),
        }
    }

    /// Writes a record that may span log files. Its start position salts its checksums.
    fn put_spanning(&self, mut record: Record, prefix: &[u8], payload: &[u8]) -> Result<()> {
        let log_files = self.space.span(record.position, record.end());
        let Some(first) = log_files.first() else {
            return Err(Error::invalid("a record outside of the prepared log".to_owned()));
        };
        let nonce = first.header().nonce;
        seal_payload(&mut record, nonce, prefix, payload);
        // Seeded: a record that spans two log files is written in part.
        let payload = &payload[..payload.len() >> u32::from(bug!("commit_spanning_record_is_cut"))];
        let mut position = record.position;
        for mut piece in [&record.encode(nonce)[..], prefix, payload] {
            for log_file in &log_files {
                let room = log_file.limit().saturating_sub(position).min(piece.len() as u64);
                let (now, later) = piece.split_at(room as usize);
                if !now.is_empty() {
                    log_file.write(position, now)?;
                }
                position += room;
                piece = later;
            }
        }
        Ok(())
    }
}

fn seal_payload(record: &mut Record, nonce: u64, prefix: &[u8], payload: &[u8]) {
    if record.kind == RecordKind::Void {
        record.payload_sum = 0;
    } else {
        record.payload_sum = payload_sum(nonce, record.position, prefix, payload);
    }
}

fn cannot_map(error: &Error) -> bool {
    matches!(error, Error::Io { operation: "map", source, .. }
        if source.kind() == std::io::ErrorKind::Unsupported)
}

/// How far a write has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is applied: the stretch can still become a void.
    Reserved,
    /// Logged, and being applied: there is no way back.
    Logged,
    /// Logged and applied, or void.
    Applied,
    /// The pipeline was stopped.
    Failed,
}

/// A write between reservation and publication. Dropping it always ends in one of the two ways of
/// R2: a completed ticket, or a stopped pipeline.
struct PendingWrite<'a> {
    pipeline: &'a Pipeline,
    ticket: Ticket,
    synced: Seq,
    buffer: Option<MutexGuard<'a, Vec<u8>>>,
    stage: Stage,
}

impl PendingWrite<'_> {
    /// Copies the record to its place.
    fn log(&mut self, payload: &[u8], operations: u32, class: Class) -> Result<()> {
        let (kind, operations, payload) = match class {
            Class::Buffered => (RecordKind::Void, 0, &[][..]),
            Class::Process | Class::Disk => (RecordKind::Batch, operations, payload),
        };
        let prefix = operations_prefix(operations);
        // Seeded: a write of class Buffered leaves zeros in the log, which end it.
        let skipped = class == Class::Buffered && bug!("commit_buffered_write_leaves_a_hole");
        let put = if skipped { Ok(()) } else { self.put(kind, operations, &prefix, payload) };
        let put = match put {
            Err(error) if self.pipeline.finds_room(&error) => {
                self.put(kind, operations, &prefix, payload)
            }
            put => put,
        };
        // The plain log's lock is released here: batches may be applied in any order.
        self.buffer = None;
        self.stage = Stage::Logged;
        put.inspect_err(|error| self.fail(error.clone())).map_err(Error::poisoning)
    }

    fn fail(&mut self, error: Error) {
        self.stage = Stage::Failed;
        self.pipeline.fail(error);
    }

    fn put(
        &mut self,
        kind: RecordKind,
        operations: u32,
        prefix: &OperationsPrefix,
        payload: &[u8],
    ) -> Result<()> {
        // Seeded: records say that all before them is durable; after a power cut an honest hole
        // looks like damage.
        bug!("commit_records_claim_a_sync", self.synced = self.ticket.start);
        let Ticket { number, start, end, published } = self.ticket;
        // Seeded: records say that all before them is published; after a kill an unfinished write
        // looks like damage.
        let published = if bug!("commit_records_claim_publication") { start } else { published };
        let payload_len = match kind {
            // A void takes up its whole stretch, whatever the write was going to be. Only the
            // header is written: readers skip the rest.
            RecordKind::Void => end - start - RECORD_HEADER_LEN as u64,
            _ => (prefix.len() + payload.len()) as u64,
        } as u32;
        let mut record = Record {
            position: start,
            kind,
            operations,
            payload_len,
            payload_sum: 0,
            published,
            synced: self.synced,
        };
        debug_assert_eq!(record.end(), end);
        let pipeline = self.pipeline;
        let buffer = self.buffer.as_deref_mut();
        let slot = pipeline.ring.slot_index(number);
        let whole = pipeline.space.with_file(slot, start, end, |log_file| {
            let nonce = log_file.header().nonce;
            seal_payload(&mut record, nonce, prefix, payload);
            put_whole(log_file, &record, nonce, prefix, payload, buffer)
        });
        whole.unwrap_or_else(|| pipeline.put_spanning(record, prefix, payload))
    }
}

/// Writes a record that lies in one log file.
#[inline]
fn put_whole(
    log_file: &LogFile,
    record: &Record,
    nonce: u64,
    prefix: &[u8],
    payload: &[u8],
    buffer: Option<&mut Vec<u8>>,
) -> Result<()> {
    let header = record.encode(nonce);
    let Some(buffer) = buffer else {
        // The order of the copies does not matter: the checksums guard a torn record.
        let mut position = record.position + RECORD_HEADER_LEN as u64;
        for piece in [prefix, payload] {
            if !piece.is_empty() {
                log_file.write(position, piece)?;
                position += piece.len() as u64;
            }
        }
        return log_file.write(record.position, &header);
    };
    buffer.clear();
    buffer.shrink_to(BUFFER_KEPT);
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(prefix);
    buffer.extend_from_slice(payload);
    log_file.write(record.position, buffer)
}

impl Drop for PendingWrite<'_> {
    fn drop(&mut self) {
        match self.stage {
            Stage::Reserved => {
                let none = operations_prefix(0);
                // Seeded: a write that is refused after its reservation leaves zeros in the log,
                // which end it.
                bug!("commit_void_is_a_hole", return self.pipeline.ring.complete(&self.ticket));
                match self.put(RecordKind::Void, 0, &none, &[]) {
                    Ok(()) => self.pipeline.ring.complete(&self.ticket),
                    Err(error) => self.pipeline.fail(error),
                }
            }
            Stage::Logged => {
                let what = "applying a write".to_owned();
                self.pipeline.fail(Error::UserCodePanicked { what });
            }
            Stage::Applied => self.pipeline.ring.complete(&self.ticket),
            Stage::Failed => {}
        }
    }
}
