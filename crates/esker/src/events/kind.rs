//! The table of events: every kind, its name and its fields.
//!
//! A line of the table gives a kind, the name by which files and other languages know it, its
//! level for `tracing`, and how many events of it are passed on per second; then its fields. The
//! enum, the JSON encoding and the events of `tracing` follow from it. `docs/operations.md` has a
//! table of the same kinds, and a test compares the two.

use super::json::Field;
use std::fmt::Write;
use std::time::Duration;

/// How many events of one kind are passed on per second, for kinds that may come in floods.
const FEW: u32 = 20;
/// No limit: such events follow from work that takes a while itself.
const ALL: u32 = u32::MAX;

/// An event of a database.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let mut options = esker::Options::default();
/// options.on_event = Some(std::sync::Arc::new(|event: &esker::Event| {
///     println!("{} {} {}", event.time, event.sequence, event.kind.name());
///     println!("{}", event.to_json());
/// }));
/// esker::Db::open_with(&dir, options)?.close()?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The number of the event since the database was opened, from 1. The numbers ascend; a missing
    /// number is an event that was dropped.
    pub sequence: u64,
    /// When it happened: milliseconds since the beginning of 1970 (UTC), by the system's clock.
    pub time: u64,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    /// The event as an object of JSON on one line, without a newline. A duration is in
    /// microseconds, and its name ends with `_us`; texts are cut at 1,024 bytes.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut options = esker::Options::default();
    /// options.on_event = Some(std::sync::Arc::new(|event: &esker::Event| {
    ///     assert!(event.to_json().starts_with("{\"time\":"));
    /// }));
    /// esker::Db::open_with(&dir, options)?.close()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(160);
        let (time, sequence, name) = (self.time, self.sequence, self.kind.name());
        let _ = write!(out, "{{\"time\":{time},\"seq\":{sequence},\"event\":\"{name}\"");
        self.kind.encode_fields(&mut out);
        out.push('}');
        out
    }
}

macro_rules! define_events {
    ($(
        $(#[$doc:meta])*
        $variant:ident = $name:literal, $level:ident, $limit:ident {
            $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
        }
    )*) => {
        /// What happened in a database. No event contains a key or a value. More kinds and fields
        /// may be added: end a pattern with `..`.
        ///
        /// In JSON a duration is a whole number of microseconds, and its name ends with `_us`.
        ///
        /// # Example
        /// ```
        /// # let dir = tempfile::tempdir().unwrap();
        /// use esker::EventKind;
        /// let mut options = esker::Options::default();
        /// options.on_event = Some(std::sync::Arc::new(|event: &esker::Event| match &event.kind {
        ///     EventKind::DeviceFull { .. } => println!("free some space"),
        ///     EventKind::CorruptionFound { file, .. } => println!("{file} is damaged"),
        ///     other => println!("{}", other.name()),
        /// }));
        /// esker::Db::open_with(&dir, options)?.close()?;
        /// # Ok::<(), esker::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum EventKind {
            $($(#[$doc])* $variant { $($(#[$field_doc])* $field: $type,)* },)*
        }

        impl EventKind {
            /// The name of the kind in files and in other languages, like `flush`.
            ///
            /// # Example
            /// ```
            /// let created = esker::EventKind::KeyspaceCreated { keyspace: "users".into() };
            /// assert_eq!(created.name(), "keyspace_created");
            /// ```
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                }
            }

            /// How many events of this kind are passed on per second.
            pub(super) fn per_second(&self) -> u32 {
                match self {
                    $(Self::$variant { .. } => $limit,)*
                }
            }

            /// Encodes the fields as members of a JSON object, each after a comma.
            pub(super) fn encode_fields(&self, out: &mut String) {
                match self {
                    $(Self::$variant { $($field),* } => {
                        $(Field::member($field, stringify!($field), out);)*
                    })*
                }
            }

            /// The names of all kinds, each with the names of its fields in JSON.
            ///
            /// # Example
            /// ```
            /// let table = esker::EventKind::table();
            /// let (_, fields) = table.iter().find(|(name, _)| *name == "device_full").unwrap();
            /// assert_eq!(fields, &["free"]);
            /// ```
            pub fn table() -> Vec<(&'static str, Vec<String>)> {
                vec![$((
                    $name,
                    vec![$(format!("{}{}", stringify!($field), <$type as Field>::SUFFIX)),*],
                )),*]
            }
        }

        #[cfg(feature = "tracing")]
        impl Event {
            /// Passes the event on to the subscriber of `tracing`.
            pub(crate) fn trace(&self) {
                match &self.kind {
                    $(EventKind::$variant { $($field),* } => tracing::event!(
                        target: "esker",
                        tracing::Level::$level,
                        event = $name,
                        sequence = self.sequence,
                        time = self.time,
                        $($field = Field::traced($field),)*
                    ),)*
                }
            }
        }
    };
}

define_events! {
    /// The database was opened.
    DatabaseOpened = "database_opened", INFO, ALL {
        /// Whether it was opened only for reading.
        read_only: bool,
        /// How long opening took.
        duration: Duration,
    }
    /// The database was closed.
    DatabaseClosed = "database_closed", INFO, ALL {
        /// How long closing took.
        duration: Duration,
        /// The kind of the error that closing reported, if it did.
        error: Option<&'static str>,
    }
    /// Recovery has read the manifest.
    ManifestRead = "manifest_read", INFO, ALL {
        /// The number of the manifest.
        manifest: u64,
        /// The keyspaces and branches' copies of keyspaces that have a tree.
        trees: u64,
        /// The run segments to which it refers.
        segments: u64,
        /// Whether its end was torn, as a crash may leave it.
        torn: bool,
        /// How long reading took.
        duration: Duration,
    }
    /// Recovery has replayed the log.
    LogReplayed = "log_replayed", INFO, ALL {
        /// The log files.
        files: u64,
        /// The batches that were replayed.
        batches: u64,
        /// The bytes of log that were replayed.
        bytes: u64,
        /// Where the log ends.
        end: u64,
        /// Whether the log was closed in order.
        clean: bool,
        /// How long replaying took.
        duration: Duration,
    }
    /// Recovery gave up a damaged end of the log, as [`Recovery::KeepPrefix`] asks.
    ///
    /// [`Recovery::KeepPrefix`]: crate::Recovery::KeepPrefix
    LogCutOff = "log_cut_off", WARN, ALL {
        /// The position up to which the log was kept.
        end: u64,
        /// What is damaged.
        message: String,
    }
    /// A memtable set was flushed.
    Flush = "flush", INFO, ALL {
        /// The keyspaces with entries in it.
        keyspaces: u64,
        /// The bytes in memory that became free.
        memtable_bytes: u64,
        /// The bytes that were written.
        bytes: u64,
        /// The run segments that were written.
        segments: u64,
        /// How long it took.
        duration: Duration,
        /// The processor time of the thread, where the platform tells it.
        processor: Option<Duration>,
    }
    /// What was ingested is durable and visible.
    Ingestion = "ingestion", INFO, FEW {
        /// The keyspaces to which something was ingested.
        keyspaces: u64,
        /// The entries, deletes and range deletes included.
        entries: u64,
        /// The bytes of run files that were written.
        bytes: u64,
        /// The run segments that were written.
        segments: u64,
        /// How long it took since it was begun.
        duration: Duration,
    }
    /// A compaction began.
    CompactionBegin = "compaction_begin", INFO, ALL {
        /// Why: `due`, `requested`, or not due: `space`, because dead space can be given back. Or not due, but
        /// nobody writes: `calm`, because runs wait, `uncompressed`, because blocks are raw that would shrink, or `temperature`, because data
        /// was not read for long or is read often again.
        cause: &'static str,
        /// The keyspace of the first partition.
        keyspace: String,
        /// 0: partitions are compacted; otherwise spans of this tier are pushed, or of several
        /// tiers, the first of which is this.
        tier: u64,
        /// The partitions or spans, which may belong to several keyspaces.
        partitions: u64,
        /// The bytes of their runs.
        bytes: u64,
        /// The run segments of their runs.
        segments: u64,
    }
    /// A compaction ended.
    CompactionEnd = "compaction_end", INFO, ALL {
        /// Why it ran: `due`, `requested`, `calm`, `space`, `uncompressed` or `temperature`.
        cause: &'static str,
        /// The keyspace of the first partition.
        keyspace: String,
        /// 0, or the tier of the first span that was pushed.
        tier: u64,
        /// The partitions or spans.
        partitions: u64,
        /// The bytes of their runs before.
        input_bytes: u64,
        /// The run segments of their runs before.
        input_segments: u64,
        /// The bytes that were written.
        output_bytes: u64,
        /// The run segments that were written.
        output_segments: u64,
        /// The run segments that were adopted without rewriting them.
        adopted: u64,
        /// How long it took.
        duration: Duration,
        /// The processor time of the thread, where the platform tells it.
        processor: Option<Duration>,
        /// `done`, or the kind of the error.
        outcome: &'static str,
    }
    /// Writers are slowed or stopped from now on.
    WriteStallBegin = "write_stall_begin", WARN, FEW {
        /// Why: `flush_debt`, `compaction_debt`, `memory` or `disk_full`.
        cause: &'static str,
        /// The bytes per second that writers may write; nothing: no such limit, they wait for space.
        rate: Option<u64>,
    }
    /// Writers are no longer slowed or stopped for this cause.
    WriteStallEnd = "write_stall_end", INFO, FEW {
        /// Why they were: `flush_debt`, `compaction_debt`, `memory` or `disk_full`.
        cause: &'static str,
        /// The last rate, in bytes per second.
        rate: Option<u64>,
        /// How long it lasted.
        duration: Duration,
    }
    /// A call waited for at least [`Options::slow_operation`](crate::Options::slow_operation).
    LongWait = "long_wait", WARN, FEW {
        /// For what: `log_space`, `sync` or `lock`.
        cause: &'static str,
        /// How long.
        duration: Duration,
    }
    /// Damage was found.
    CorruptionFound = "corruption_found", ERROR, FEW {
        /// The damaged file.
        file: String,
        /// Where in the file.
        offset: u64,
        /// The part of the format.
        section: &'static str,
        /// The keyspace, where known.
        keyspace: Option<String>,
        /// What is wrong.
        message: String,
    }
    /// The device is full: the reserve is used, and writes of data are refused.
    DeviceFull = "device_full", ERROR, FEW {
        /// The bytes that are free on the device.
        free: u64,
    }
    /// There is space again: writes are accepted.
    SpaceAgain = "space_again", INFO, FEW {
        /// The bytes that are free on the device.
        free: u64,
    }
    /// Work in the background failed. It is tried again.
    BackgroundFailed = "background_failed", WARN, FEW {
        /// What failed: `flush`, `compaction`, `thinning`, `log sync` or `log file`.
        work: &'static str,
        /// The kind of the error.
        error: &'static str,
        /// Its message.
        message: String,
    }
    /// The manifest has grown and could not be replaced by a new one. It stays in use, and the next
    /// change tries again.
    ManifestNotRewritten = "manifest_not_rewritten", WARN, FEW {
        /// The kind of the error.
        error: &'static str,
        /// Its message.
        message: String,
    }
    /// A superblock could not record how far log and manifest reach. It is tried again; until then a
    /// crash makes the next open search the end of the log.
    ReachNotRecorded = "reach_not_recorded", WARN, FEW {
        /// The kind of the error.
        error: &'static str,
        /// Its message.
        message: String,
    }
    /// Files to which nothing refers, or their unused parts, could not be removed. They only take
    /// space. It is tried again, but not for what a failed checkpoint left.
    FilesLeft = "files_left", WARN, FEW {
        /// Which, like `run files` or `spare log files`.
        what: &'static str,
        /// The kind of the error.
        error: &'static str,
        /// Its message.
        message: String,
    }
    /// Files of a manifest with a torn end were set aside; nothing reads them.
    FilesSetAside = "files_set_aside", WARN, ALL {
        /// The number of the manifest, which stands at the end of their names.
        manifest: u64,
    }
    /// The intended size of the reserve for a full device has changed.
    ReserveChanged = "reserve_changed", INFO, FEW {
        /// Its bytes before.
        before: u64,
        /// Its bytes now.
        bytes: u64,
    }
    /// The reserve for a full device could not be made, released or cut.
    ReserveFailed = "reserve_failed", WARN, FEW {
        /// What failed.
        what: &'static str,
        /// The kind of the error.
        error: &'static str,
        /// Its message.
        message: String,
    }
    /// A partition is too large to be compacted in the free space, and was cut.
    PartitionCut = "partition_cut", INFO, FEW {
        /// Into how many.
        parts: u64,
    }
    /// The device is too full to flush what an open has replayed: it stays in the log.
    ReplayNotFlushed = "replay_not_flushed", WARN, ALL {
        /// The bytes that are free on the device.
        free: u64,
    }
    /// A keyspace has a compaction filter that the program did not give, so nothing is filtered.
    FilterMissing = "filter_missing", WARN, FEW {
        /// The keyspace.
        keyspace: String,
        /// The name of the filter.
        filter: String,
    }
    /// Writing has ended after a failure, until the database is reopened.
    WritingEnded = "writing_ended", ERROR, ALL {
        /// The kind of the first error.
        error: &'static str,
        /// Its message.
        message: String,
    }
    /// A snapshot is held for long; it keeps old versions of entries on the device.
    SnapshotHeld = "snapshot_held", WARN, FEW {
        /// The age of the oldest snapshot.
        age: Duration,
        /// The positions at which snapshots are held.
        snapshots: u64,
    }
    /// An operation took longer than [`Options::slow_operation`](crate::Options::slow_operation).
    SlowOperation = "slow_operation", WARN, FEW {
        /// Which: `get`, `put`, `scan`, `sync`, or `lock` for a transaction's wait.
        operation: &'static str,
        /// How long it took.
        duration: Duration,
        /// What it waited for and how long, by cause.
        waits: Vec<(&'static str, Duration)>,
    }
    /// A checkpoint was made.
    CheckpointMade = "checkpoint_made", INFO, ALL {
        /// Where.
        path: String,
        /// How long it took.
        duration: Duration,
    }
    /// A keyspace was created.
    KeyspaceCreated = "keyspace_created", INFO, FEW {
        /// Its name.
        keyspace: String,
    }
    /// A keyspace was dropped.
    KeyspaceDropped = "keyspace_dropped", INFO, FEW {
        /// Its name.
        keyspace: String,
    }
    /// Events were dropped.
    EventsLost = "events_lost", WARN, ALL {
        /// How many.
        count: u64,
        /// `queue`: they came faster than they were taken. `file`: the file could not be written.
        place: &'static str,
    }
    /// Events of a kind were not passed on because there were too many in a second.
    EventsSuppressed = "events_suppressed", WARN, ALL {
        /// The name of their kind.
        kind: &'static str,
        /// How many.
        count: u64,
    }
}
