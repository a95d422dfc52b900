//! Ways in and out of an Esker database.
//!
//! [`dump`] writes what a snapshot sees as one stream of bytes, in a text form and a binary form
//! that `docs/dump-format.md` describes; [`load`] brings a stream back; [`Import`] reads the
//! directories of other stores. All three work on the public interface of an open [`esker::Db`],
//! so a program can use them with its own comparators, and the `esker` program is a thin shell
//! around them.
//!
//! Memory is bounded: frames of about 256 KiB pass through a short queue between the thread that
//! reads and the thread that writes; one entry that is larger is a frame of its own.

mod dump;
mod error;
#[cfg(feature = "import-fjall")]
mod fjall;
mod foreign;
mod import;
mod leveldb;
mod lmdb;
mod load;
mod loader;
mod lock;
mod progress;
#[cfg(feature = "import-redb")]
mod redb;
#[cfg(feature = "import-rocksdb")]
mod rocksdb;
mod sink;
mod stream;
pub mod token;

pub use dump::{DumpOptions, dump, dump_to_file};
pub use error::{Engine, Error, Result};
pub use import::{Import, ImportOptions};
pub use load::{LoadOptions, load};
pub use progress::{Progress, Quiet, Step, Summary};
pub use stream::{Entries, Form, Frame, Header, KeyspaceInfo, Reader, Totals, Writer};
