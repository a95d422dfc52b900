//! Scans as streams of Arrow's record batches, by the Arrow C stream interface.
//!
//! The importer of the stream (pyarrow, polars, duckdb, …) pulls one batch after the other, on its
//! own thread and without Python. A batch is bounded in rows and in bytes, whatever the range
//! holds, except that one entry is never split.

use crate::errors::{Failure, Result, invalid};
use crate::iter::Wish;
use crate::shared::Space;
use crate::walk::{Range, Walk};
use arrow_array::builder::BinaryBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;
use std::sync::Arc;

/// Names that the Arrow PyCapsule interface gives.
const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// A batch may have at most this many bytes, so that offsets of 32 bits reach; one entry has less
/// than 1 GiB and 64 KiB.
const BATCH_BYTES_MAX: usize = 256 << 20;

/// Entries of a range, to be imported as an Arrow stream, as often as wanted: each stream shows
/// the same moment.
#[pyclass(frozen, module = "esker")]
pub(crate) struct ArrowScan {
    snapshot: esker::Snapshot,
    range: Range,
    plan: Plan,
    space: Space,
}

/// How entries become batches.
#[derive(Clone)]
struct Plan {
    reverse: bool,
    key: bool,
    value: bool,
    /// Bytes that keys lack.
    strip: usize,
    rows: usize,
    bytes: usize,
    schema: SchemaRef,
}

impl ArrowScan {
    /// A scan of what a wish means, as `snapshot` shows it; `limits`: rows and bytes of a batch.
    pub(crate) fn new(
        space: &Space,
        snapshot: esker::Snapshot,
        wish: &Wish<'_, '_>,
        limits: (usize, usize),
    ) -> Result<Self> {
        let (rows, bytes) = limits;
        if rows == 0 || rows > i32::MAX as usize || bytes > BATCH_BYTES_MAX {
            let what = "'batch_rows' must be at least 1, 'batch_bytes' at most 256 MiB";
            return Err(invalid(what));
        }
        let (key, value) = wish.shown;
        let column = |name| Field::new(name, DataType::Binary, false);
        let columns = [key.then(|| column("key")), value.then(|| column("value"))];
        let schema = Arc::new(Schema::new(columns.into_iter().flatten().collect::<Vec<_>>()));
        let strip = space.prefix.as_ref().map_or(0, |prefix| prefix.len());
        let plan = Plan { reverse: wish.reverse, key, value, strip, rows, bytes, schema };
        Ok(Self { snapshot, range: wish.range(space)?, plan, space: space.clone() })
    }
}

#[pymethods]
impl ArrowScan {
    /// The stream, for importers that know the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        // The interface lets a producer that cannot cast return what it has.
        let _ = requested_schema;
        self.space.shared.check()?;
        let cursor = py.detach(|| self.snapshot.cursor(&self.space.keyspace))?;
        let mut walk = Walk::new(cursor, self.space.order.clone(), self.range.clone());
        if self.plan.reverse {
            walk.go_to_stop();
        }
        let plan = self.plan.clone();
        let batches = Batches { walk, plan, ended: false, _space: self.space.clone() };
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        Ok(PyCapsule::new_with_value(py, stream, STREAM)?)
    }

    /// The schema of the stream.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.plan.schema.as_ref())
            .map_err(|error| Failure::Own("error", error.to_string()))?;
        Ok(PyCapsule::new_with_value(py, schema, SCHEMA)?)
    }
}

/// The batches of one stream.
struct Batches {
    walk: Walk,
    plan: Plan,
    ended: bool,
    /// Keeps the database open, and goes last.
    _space: Space,
}

impl Batches {
    fn batch(&mut self) -> std::result::Result<Option<RecordBatch>, ArrowError> {
        let failed = |failure| match failure {
            Failure::Engine(error) => ArrowError::ExternalError(Box::new(error)),
            other => ArrowError::ExternalError(PyErr::from(other).to_string().into()),
        };
        let (mut keys, mut values) = (BinaryBuilder::new(), BinaryBuilder::new());
        let (mut rows, mut bytes) = (0, 0);
        while rows < self.plan.rows && (rows == 0 || bytes < self.plan.bytes) {
            let moved = match self.plan.reverse {
                false => self.walk.forward(),
                true => self.walk.backward(),
            };
            let Some((key, value)) = moved.map_err(failed)? else { break };
            if self.plan.key {
                keys.append_value(key.get(self.plan.strip..).unwrap_or_default());
            }
            if self.plan.value {
                values.append_value(value);
            }
            bytes += key.len() + value.len();
            rows += 1;
        }
        if rows == 0 {
            return Ok(None);
        }
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(2);
        if self.plan.key {
            columns.push(Arc::new(keys.finish()));
        }
        if self.plan.value {
            columns.push(Arc::new(values.finish()));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.plan.schema.clone(), columns, &options).map(Some)
    }
}

impl std::iter::Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let batch = self.batch().transpose();
        // A consumer that goes on after an error must not take the rest for the whole.
        self.ended = !matches!(batch, Some(Ok(_)));
        batch
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.plan.schema.clone()
    }
}
