//! What a number of the statistics can be: its kind, its unit, and which part of a metric it is.
//!
//! These are the words of OpenMetrics. A metric has one kind and one unit; a summary or a histogram
//! has several parts.

/// What kind of number a metric is.
///
/// # Example
/// ```
/// use esker::{Metric, MetricKind};
/// let puts = Metric::all().iter().find(|metric| metric.name == "esker_puts").unwrap();
/// assert_eq!(puts.kind, MetricKind::Counter);
/// assert_eq!(puts.kind.as_str(), "counter");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricKind {
    /// Counts from open, and never falls.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Quantiles, a count and a sum.
    Summary,
    /// Counts of values by their size, a count and a sum.
    Histogram,
    /// Exactly one of several named states; the number is the state's place in the list.
    StateSet,
}

impl MetricKind {
    /// The name of the kind in OpenMetrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
            Self::Histogram => "histogram",
            Self::StateSet => "stateset",
        }
    }
}

/// The unit of a metric.
///
/// # Example
/// ```
/// use esker::{Metric, MetricUnit};
/// let timed = |metric: &&esker::Metric| metric.unit == MetricUnit::Seconds;
/// assert!(Metric::all().iter().filter(timed).all(|metric| metric.name.ends_with("_seconds")));
/// assert_eq!(MetricUnit::Seconds.as_str(), "seconds");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricUnit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds; kept in nanoseconds.
    Seconds,
    /// Bytes per second.
    BytesPerSecond,
}

impl MetricUnit {
    /// The name of the unit in OpenMetrics; empty for plain counts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Bytes => "bytes",
            Self::Seconds => "seconds",
            Self::BytesPerSecond => "bytes_per_second",
        }
    }
}

/// Which part of a metric a sample is.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// use esker::SamplePart;
/// # db.insert("key", "value")?;
/// let samples = db.stats().samples();
/// let median = |sample: &&esker::Sample| sample.part == SamplePart::Quantile(500);
/// // Timed are writes, point reads, iterators, syncs, and two kinds of reads from files.
/// assert_eq!(samples.iter().filter(median).count(), 6);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SamplePart {
    /// The number itself.
    Value,
    /// How many values there were.
    Count,
    /// Their sum.
    Sum,
    /// A quantile of them, in thousandths; 1000 is their maximum.
    Quantile(u16),
    /// How many of them were at most this large, in nanoseconds; `u64::MAX`: all of them.
    Bucket(u64),
}

impl SamplePart {
    /// What the part is called in JSON and in the languages that show a metric as a dictionary of
    /// its parts; `None` for parts that have no name of their own: the number itself, buckets, and
    /// quantiles that no metric has. `kind`: that of the metric.
    ///
    /// # Example
    /// ```
    /// use esker::{MetricKind, SamplePart};
    /// assert_eq!(SamplePart::Quantile(990).name(MetricKind::Summary), Some("p99"));
    /// assert_eq!(SamplePart::Count.name(MetricKind::Summary), Some("samples"));
    /// assert_eq!(SamplePart::Count.name(MetricKind::Histogram), Some("count"));
    /// assert_eq!(SamplePart::Value.name(MetricKind::Gauge), None);
    /// ```
    pub fn name(self, kind: MetricKind) -> Option<&'static str> {
        Some(match self {
            Self::Quantile(500) => "p50",
            Self::Quantile(990) => "p99",
            Self::Quantile(999) => "p999",
            Self::Quantile(1000) => "max",
            Self::Count if kind == MetricKind::Histogram => "count",
            Self::Count => "samples",
            Self::Sum => "total",
            Self::Value | Self::Quantile(_) | Self::Bucket(_) => return None,
        })
    }
}
