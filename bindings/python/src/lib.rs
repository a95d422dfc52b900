//! The part of the Python package `esker` that is written in Rust.
//!
//! Every call of the engine that reads files, writes or may wait runs without the interpreter's lock, so
//! other Python threads go on, and engine threads that call Python code (comparators, merge operators)
//! never wait for a thread that waits for them. A get that memory answers keeps the lock (`bytes`).
//!
//! | module | what |
//! |---|---|
//! | `shared` | what the objects of one database share: closing, locking, forked children |
//! | `bytes`, `buffer`, `errors`, `options`, `order` | from Python's values to the engine's and back |
//! | `store`, `db`, `keyspace`, `snapshot`, `batch`, `ingestion`, `txn` | the classes |
//! | `walk`, `iter`, `raw`, `arrow` | scanning |
//! | `pieces` | values that are written and read in pieces |
//! | `admin` | statistics, properties, repair, removal |

mod admin;
mod arrow;
mod batch;
mod buffer;
mod bytes;
mod db;
mod errors;
mod explain;
mod ingestion;
mod iter;
mod keyspace;
mod options;
mod order;
mod pieces;
mod raw;
mod shared;
mod snapshot;
mod store;
mod txn;
mod walk;

/// Esker for Python; see the package `esker`.
#[pyo3::pymodule]
mod _esker {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::admin::{destroy_db, repair_db};
    #[pymodule_export]
    use crate::arrow::ArrowScan;
    #[pymodule_export]
    use crate::batch::WriteBatch;
    #[pymodule_export]
    use crate::db::DB;
    #[pymodule_export]
    use crate::ingestion::Ingestion;
    #[pymodule_export]
    use crate::iter::Iterator;
    #[pymodule_export]
    use crate::keyspace::{KeyspaceBase, PrefixedDB};
    #[pymodule_export]
    use crate::pieces::ValueSource;
    #[pymodule_export]
    use crate::raw::RawIterator;
    #[pymodule_export]
    use crate::shared::{_close_all, _forked};
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::store::Store;
    #[pymodule_export]
    use crate::txn::{Savepoint, Transaction, TransactionIterator};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("FORMAT_VERSION", esker::internals::manifest::FORMAT_VERSION)
    }
}
