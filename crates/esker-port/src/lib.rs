//! Dump, load and import for Esker databases.
//!
//! [`dump`] writes what a snapshot sees as one stream of bytes, in a text form and a binary form
//! that `docs/dump-format.md` describes; [`load`] reads a stream back; [`Import`] reads the
//! directories of other stores. All three work on the public interface of an open [`esker::Db`],
//! so a program can use them with its custom comparators, and the `esker` program only calls them.
//!
//! [`word`] is how the `esker` program writes and reads keys, values and names in lines, and [`token`]
//! how the text form of a dump does.
//!
//! Memory is bounded: frames of about 256 KiB pass through a short queue between the thread that
//! reads and the thread that writes. A value above a megabyte gets its own frame, and passes in pieces.

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
mod parts;
mod progress;
#[cfg(feature = "import-redb")]
mod redb;
#[cfg(feature = "import-rocksdb")]
mod rocksdb;
mod sink;
mod source;
mod stream;
#[cfg(test)]
mod testing;
pub mod token;
mod walk;
pub mod word;

pub use dump::{DumpOptions, dump, dump_to_file};
pub use error::{Engine, Error, Result};
pub use import::Import;
pub use load::{LoadOptions, load};
pub use progress::{Progress, Quiet, Step, Summary};
pub use source::ImportOptions;
pub use stream::{Entries, Form, Frame, Header, KeyspaceInfo, Reader, Totals, Writer};
