//! Options that are set one after the other in one expression.
//!
//! Each method sets the field of its name and gives the options back. Fields whose `None` stands for the default take
//! the value itself; those whose `None` stands for "never" take an `Option`.

use super::{Compression, Durability, LogKind, Options, Recovery};
use crate::base::{Clock, CompactionFilter, Comparator, MergeOperator};
use crate::events::EventListener;
use crate::fs::Fs;
use std::sync::Arc;
use std::time::Duration;

/// Methods that set the field of their name: the type of the argument, how the field gets it, and an example.
macro_rules! setters {
    ($($name:ident($value:ident: $type:ty) = $field:expr, $example:literal;)*) => {
        /// Methods that set a field and give the options back.
        impl Options {
            $(
                #[doc = concat!("Sets the field [`", stringify!($name), "`](Options#structfield.", stringify!($name), ").")]
                ///
                /// # Example
                /// ```
                /// # use esker::{Compression, Durability, LogKind, Options, Recovery};
                /// # use std::time::Duration;
                #[doc = concat!("let options = Options::new().", stringify!($name), "(", $example, ");")]
                /// # let dir = tempfile::tempdir().unwrap();
                /// # esker::Db::open(&dir)?.close()?;
                /// esker::Db::open_with(&dir, options)?.close()?;
                /// # Ok::<(), esker::Error>(())
                /// ```
                #[must_use]
                pub fn $name(mut self, $value: $type) -> Self {
                    self.$name = $field;
                    self
                }
            )*
        }
    };
}

setters! {
    memory(bytes: u64) = Some(bytes), "64 << 20";
    durability(class: Durability) = class, "Durability::Disk";
    create_if_missing(yes: bool) = yes, "false";
    read_only(yes: bool) = yes, "true";
    workers(count: usize) = Some(count), "1";
    compression(how: Compression) = how, "Compression::Zstd";
    separate_values_from(bytes: Option<u32>) = bytes, "Some(1024)";
    cold_after(time: Option<Duration>) = time, "None";
    log(kind: LogKind) = kind, "LogKind::Auto";
    recovery(how: Recovery) = how, "Recovery::Refuse";
    sync_interval(time: Option<Duration>) = time, "Some(Duration::from_secs(1))";
    clock(clock: Arc<dyn Clock>) = clock, "std::sync::Arc::new(esker::SystemClock)";
    fs(fs: Arc<dyn Fs>) = fs, "esker::fs::os()";
    max_space_amplification(times: f64) = times, "1.3";
    memtable_bytes(bytes: u64) = Some(bytes), "16 << 20";
    partition_bytes(bytes: u64) = Some(bytes), "32 << 20";
    segment_bytes(bytes: u32) = bytes, "512 << 10";
    block_bytes(bytes: u32) = bytes, "8 << 10";
    log_file_bytes(bytes: u32) = bytes, "4 << 20";
    slow_operation(time: Duration) = time, "Duration::from_millis(20)";
    monitor(yes: bool) = Some(yes), "false";
}

impl Options {
    /// The default options.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// use esker::{Db, Durability, Options};
    /// let options = Options::new().memory(64 << 20).durability(Durability::Disk);
    /// Db::open_with(&dir, options)?.insert("key", "value")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the field [`error_if_exists`](Options#structfield.error_if_exists).
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// use esker::{Db, Error, Options};
    /// let options = Options::new().error_if_exists(true);
    /// Db::open_with(&dir, options.clone())?.close()?;
    /// assert!(matches!(Db::open_with(&dir, options), Err(Error::Exists { .. })));
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn error_if_exists(mut self, yes: bool) -> Self {
        self.error_if_exists = yes;
        self
    }

    /// Adds one to the [`comparators`](Options#structfield.comparators).
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// use esker::{Comparator, Db, Options};
    /// use std::{cmp::Ordering, sync::Arc};
    /// struct Backwards;
    /// impl Comparator for Backwards {
    ///     fn name(&self) -> &str {
    ///         "backwards"
    ///     }
    ///     fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
    ///         b.cmp(a)
    ///     }
    /// }
    /// let db = Db::open_with(&dir, Options::new().comparator(Arc::new(Backwards)))?;
    /// let news = db.keyspace_ordered("news", Arc::new(Backwards))?;
    /// # news.insert("a", "")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn comparator(mut self, comparator: Arc<dyn Comparator>) -> Self {
        self.comparators.push(comparator);
        self
    }

    /// Adds one to the [`merge_operators`](Options#structfield.merge_operators).
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// use esker::{Append, Associative, Db, Options};
    /// let options = Options::new().merge_operator(std::sync::Arc::new(Associative(Append::new(", "))));
    /// Db::open_with(&dir, options)?.close()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn merge_operator(mut self, operator: Arc<dyn MergeOperator>) -> Self {
        self.merge_operators.push(operator);
        self
    }

    /// Adds one to the [`compaction_filters`](Options#structfield.compaction_filters).
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// use esker::{CompactionFilter, Db, Decision, Options};
    /// struct NoEmptyValues;
    /// impl CompactionFilter for NoEmptyValues {
    ///     fn name(&self) -> &str {
    ///         "no-empty-values"
    ///     }
    ///     fn filter(&self, _key: &[u8], value: &[u8]) -> Decision {
    ///         if value.is_empty() { Decision::Remove } else { Decision::Keep }
    ///     }
    /// }
    /// let options = Options::new().compaction_filter(std::sync::Arc::new(NoEmptyValues));
    /// Db::open_with(&dir, options)?.close()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn compaction_filter(mut self, filter: Arc<dyn CompactionFilter>) -> Self {
        self.compaction_filters.push(filter);
        self
    }

    /// Sets the field [`on_event`](Options#structfield.on_event).
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// use esker::{Db, Event, Options};
    /// let options = Options::new().on_event(|event: &Event| eprintln!("{event:?}"));
    /// Db::open_with(&dir, options)?.insert("key", "value")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn on_event(mut self, listener: impl EventListener + 'static) -> Self {
        self.on_event = Some(Arc::new(listener));
        self
    }
}
