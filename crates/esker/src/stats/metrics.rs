//! Metrics: every number of [`Stats`] with its name, unit, kind and meaning.
//!
//! [`METRICS`] follows from `table.rs`. A metric has one or several samples: its labels tell them
//! apart. Numbers are kept in whole units (bytes, nanoseconds), so nothing is lost on the way
//! through an encoding; [`Sample::value`] gives the base unit of OpenMetrics.

use super::held::{BranchUse, SnapshotUse};
use super::kinds::{MetricKind, MetricUnit, SamplePart};
use super::lists::{Draft, Entity};
use super::report::{LevelShape, Stats, TreeShape};
use super::values::Field;
use std::fmt;

/// A metric: one line of the table, or one family of lines that labels tell apart.
///
/// # Example
/// ```
/// for metric in esker::Metric::all() {
///     println!("{} ({}): {}", metric.name, metric.kind.as_str(), metric.help());
/// }
/// ```
#[non_exhaustive]
pub struct Metric {
    /// The name in OpenMetrics, without a suffix such as `_total`.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: MetricKind,
    /// Its unit.
    pub unit: MetricUnit,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Where it is counted, as a file below `crates/esker/src`.
    pub place: &'static str,
    pub(super) help: &'static str,
    pub(super) points: Points,
}

impl fmt::Debug for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metric")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("unit", &self.unit)
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}

/// Called with the values of the labels and a field.
type VisitField<'v> = dyn FnMut(&[&str], &dyn Field) + 'v;

/// Called with the name of a field, the values of the labels, and the part and number of a sample.
type VisitNumber<'v> = dyn FnMut(&'static str, &[&str], SamplePart, u64) + 'v;

/// The numbers of a metric.
pub(super) enum Points {
    /// Fields of `Stats` and its structures.
    Fixed(&'static [Point]),
    /// A field of each element of a list.
    Each {
        /// The list, and the field of its elements.
        field: &'static str,
        walk: fn(&Stats, &mut VisitField<'_>),
        place: for<'d> fn(&'d mut Draft, &[&str]) -> Option<&'d mut dyn Field>,
    },
}

/// One field of `Stats` or its structures.
pub(super) struct Point {
    pub(super) field: &'static str,
    pub(super) values: &'static [&'static str],
    pub(super) help: &'static str,
    pub(super) get: fn(&Stats) -> &dyn Field,
    pub(super) get_mut: fn(&mut Stats) -> &mut dyn Field,
}

/// One number of a metric.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("key", "value")?;
/// let samples = db.stats().samples();
/// let user = samples.iter().find(|sample| sample.field == "written.user").unwrap();
/// assert_eq!(user.metric.name, "esker_written_bytes");
/// assert_eq!(user.labels, [("purpose", "user".to_owned())]);
/// assert_eq!((user.raw, user.value()), (8, 8.0));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Sample {
    /// The metric.
    pub metric: &'static Metric,
    /// The field of [`Stats`], such as `written.user`; for lists with the list's name.
    pub field: &'static str,
    /// The names and values of the labels.
    pub labels: Vec<(&'static str, String)>,
    /// Which part of the metric it is.
    pub part: SamplePart,
    /// The number as it is kept: times in nanoseconds.
    pub raw: u64,
}

impl Sample {
    /// The number in the unit of the metric: times in seconds.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # db.insert("key", "value")?;
    /// for sample in db.stats().samples() {
    ///     println!("{} {:?} {}", sample.metric.name, sample.labels, sample.value());
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn value(&self) -> f64 {
        let counted = matches!(self.part, SamplePart::Count | SamplePart::Bucket(_));
        match self.metric.unit {
            MetricUnit::Seconds if !counted => self.raw as f64 / 1e9,
            _ => self.raw as f64,
        }
    }
}

macro_rules! kind {
    (counter) => {
        MetricKind::Counter
    };
    (gauge) => {
        MetricKind::Gauge
    };
    (summary) => {
        MetricKind::Summary
    };
    (histogram) => {
        MetricKind::Histogram
    };
    (stateset) => {
        MetricKind::StateSet
    };
}

macro_rules! unit {
    (count) => {
        MetricUnit::Count
    };
    (bytes) => {
        MetricUnit::Bytes
    };
    (seconds) => {
        MetricUnit::Seconds
    };
    (rate) => {
        MetricUnit::BytesPerSecond
    };
}

macro_rules! labels {
    ([$($label:ident),*]) => {
        &[$(stringify!($label)),*]
    };
}

macro_rules! metric {
    ($kind:ident $unit:ident $name:literal $labels:tt $place:literal $help:expr, $points:expr) => {
        Metric {
            name: $name,
            kind: kind!($kind),
            unit: unit!($unit),
            labels: labels!($labels),
            place: $place,
            help: $help,
            points: $points,
        }
    };
}

macro_rules! counter_metric {
    ($field:ident $kind:ident $unit:ident $name:literal $place:literal $help:expr) => {
        metric!($kind $unit $name [] $place $help, Points::Fixed(&[Point {
            field: stringify!($field),
            values: &[],
            help: "",
            get: |stats| &stats.$field,
            get_mut: |stats| &mut stats.$field,
        }]))
    };
}

macro_rules! define_metrics {
    (
        calls { $($(#[doc = $call_help:literal])* $call:ident = $variant:ident:
            $call_kind:ident $call_unit:ident $call_name:literal in $call_place:literal;)* }
        background { $($(#[doc = $background_help:literal])* $background:ident:
            $background_kind:ident $background_unit:ident $background_name:literal
            in $background_place:literal;)* }
        computed { $($(#[doc = $computed_help:literal])* $computed:ident:
            $computed_kind:ident $computed_unit:ident $computed_name:literal
            in $computed_place:literal;)* }
        families { $($(#[doc = $family_help:literal])*
            $family_kind:ident $family_unit:ident $family_name:literal $family_labels:tt
            in $family_place:literal {
                $($(#[doc = $point_help:literal])*
                    $head:ident $(. $rest:ident)* [$($value:literal),*];)*
            })*
        }
        each { $($entity:ident $list:ident $entity_labels:tt {
            $($(#[doc = $field_help:literal])* $field:ident:
                $field_kind:ident $field_unit:ident $field_name:literal in $field_place:literal;)*
        })* }
    ) => {
        /// All metrics, in the order of the table.
        pub static METRICS: &[Metric] = &[
            $(counter_metric!($call $call_kind $call_unit $call_name $call_place
                concat!($($call_help),*)),)*
            $(counter_metric!($background $background_kind $background_unit $background_name
                $background_place concat!($($background_help),*)),)*
            $(counter_metric!($computed $computed_kind $computed_unit $computed_name
                $computed_place concat!($($computed_help),*)),)*
            $(metric!($family_kind $family_unit $family_name $family_labels
                $family_place concat!($($family_help),*), Points::Fixed(&[
                    $(Point {
                        field: concat!(stringify!($head) $(, ".", stringify!($rest))*),
                        values: &[$($value),*],
                        help: concat!($($point_help),*),
                        get: |stats| &stats.$head$(.$rest)*,
                        get_mut: |stats| &mut stats.$head$(.$rest)*,
                    },)*
                ])),)*
            $($(metric!($field_kind $field_unit $field_name $entity_labels
                $field_place concat!($($field_help),*), Points::Each {
                    field: concat!(stringify!($list), ".", stringify!($field)),
                    walk: |stats, visit| {
                        <$entity as Entity>::walk(stats, &mut |labels, element| {
                            visit(labels, &element.$field);
                        });
                    },
                    place: |draft, labels| {
                        <$entity as Entity>::place(draft, labels)
                            .map(|element| &mut element.$field as &mut dyn Field)
                    },
                }),)*)*
        ];
    };
}
super::table::metrics!(define_metrics);

impl Metric {
    /// All metrics, in a fixed order.
    ///
    /// # Example
    /// ```
    /// let names: Vec<_> = esker::Metric::all().iter().map(|metric| metric.name).collect();
    /// assert!(names.contains(&"esker_compaction_debt_bytes"));
    /// ```
    pub fn all() -> &'static [Metric] {
        METRICS
    }

    /// What the metric measures.
    ///
    /// # Example
    /// ```
    /// let metric = &esker::Metric::all()[0];
    /// assert_eq!((metric.name, metric.help()), ("esker_puts", "Entries put."));
    /// ```
    pub fn help(&self) -> &'static str {
        self.help.trim_start()
    }

    /// The fields of [`Stats`] that the metric shows: each with the values of the labels, and what
    /// they mean. The fields of a list have the list's name and no values.
    ///
    /// # Example
    /// ```
    /// let all = esker::Metric::all();
    /// let written = all.iter().find(|metric| metric.name == "esker_written_bytes").unwrap();
    /// let (field, values, help) = written.fields()[1];
    /// assert_eq!((field, values, help), ("written.log", &["log"][..], "The write-ahead log."));
    /// ```
    pub fn fields(&self) -> Vec<(&'static str, &'static [&'static str], &'static str)> {
        let shown = |point: &Point| (point.field, point.values, point.help.trim_start());
        match &self.points {
            Points::Fixed(points) => points.iter().map(shown).collect(),
            Points::Each { field, .. } => vec![(*field, &[][..], "")],
        }
    }

    /// Whether the metric has samples for each element of a list: a keyspace, a snapshot and so on.
    ///
    /// # Example
    /// ```
    /// let metric = |name| esker::Metric::all().iter().find(|metric| metric.name == name).unwrap();
    /// assert!(metric("esker_keyspace_partitions").is_listed());
    /// assert!(!metric("esker_written_bytes").is_listed());
    /// ```
    pub fn is_listed(&self) -> bool {
        matches!(self.points, Points::Each { .. })
    }

    /// The samples of this metric alone.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let stats = db.stats();
    /// let all = esker::Metric::all().iter().map(|metric| metric.samples(&stats).len());
    /// assert_eq!(all.sum::<usize>(), stats.samples().len());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn samples(&'static self, stats: &Stats) -> Vec<Sample> {
        let mut samples = Vec::new();
        self.visit(stats, &mut |field, values, part, raw| {
            let values = values.iter().map(|value| (*value).to_owned());
            let labels = self.labels.iter().copied().zip(values).collect();
            samples.push(Sample { metric: self, field, labels, part, raw });
        });
        samples
    }

    /// Calls `visit` with the field, the values of the labels, and the part and number of every
    /// sample of the metric.
    pub(super) fn visit(&self, stats: &Stats, visit: &mut VisitNumber<'_>) {
        match &self.points {
            Points::Fixed(points) => {
                for point in *points {
                    (point.get)(stats)
                        .emit(&mut |part, raw| visit(point.field, point.values, part, raw));
                }
            }
            Points::Each { field, walk, .. } => walk(stats, &mut |values, element| {
                element.emit(&mut |part, raw| visit(field, values, part, raw));
            }),
        }
    }

    /// The field with these values of the labels; a list gets a new element if it has none. `None`:
    /// the metric has no such field.
    pub(super) fn place<'d>(
        &self,
        draft: &'d mut Draft,
        values: &[&str],
    ) -> Option<&'d mut dyn Field> {
        if values.len() != self.labels.len() {
            return None;
        }
        match &self.points {
            Points::Fixed(points) => {
                let point = points.iter().find(|point| point.values == values)?;
                Some((point.get_mut)(&mut draft.stats))
            }
            Points::Each { place, .. } => place(draft, values),
        }
    }

    /// The names of the states of a stateset; otherwise empty.
    ///
    /// # Example
    /// ```
    /// let states = |metric: &esker::Metric| metric.states().len();
    /// let kind = |metric: &esker::Metric| metric.kind == esker::MetricKind::StateSet;
    /// assert!(esker::Metric::all().iter().all(|metric| (states(metric) > 0) == kind(metric)));
    /// ```
    pub fn states(&self) -> &'static [&'static str] {
        match &self.points {
            Points::Fixed([point, ..]) => (point.get)(&Stats::default()).states(),
            _ => &[],
        }
    }
}

#[cfg(test)]
impl Metric {
    /// Values of the labels: all there are, or some of elements of a list.
    pub(super) fn examples(&self) -> Vec<Vec<&'static str>> {
        let choices = |name: &&str| match *name {
            "level" => &["base", "delta_0", "tier_1"][..],
            "position" => &["8", "16"],
            "label" => &["one", "one"],
            _ => &["one \"word\"", "\u{e4}\\\n"],
        };
        let mut all: Vec<Vec<&'static str>> = vec![Vec::new()];
        for choices in self.labels.iter().map(choices) {
            let with = |labels: &Vec<&'static str>| {
                let one = |choice: &&'static str| labels.iter().copied().chain([*choice]).collect();
                choices.iter().map(one).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        match &self.points {
            Points::Fixed(points) => points.iter().map(|point| point.values.to_vec()).collect(),
            Points::Each { .. } => all,
        }
    }
}

impl Stats {
    /// Every number with its metric, in the order of [`Metric::all`]: what the outputs show.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("key", "value")?;
    /// let samples = db.stats().samples();
    /// let puts = samples.iter().find(|sample| sample.metric.name == "esker_puts").unwrap();
    /// assert_eq!(puts.value(), 1.0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn samples(&self) -> Vec<Sample> {
        METRICS.iter().flat_map(|metric| metric.samples(self)).collect()
    }
}

#[cfg(test)]
mod tests;
