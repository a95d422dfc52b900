//! Bindings of engines that have a C interface and are loaded at run time.
//!
//! Nothing here is linked: a library is opened by its path or its name when a user asks for the engine,
//! so a build needs no header, and the program starts without the library. All unsafe code of these
//! engines is in this module. The objects that it returns cannot be used after they are closed, and it
//! checks the results of all calls. The adapters are written against these objects and are safe.
//!
//! A library stays loaded until the process ends. LevelDB never stops its background thread, and
//! unloading a library takes away the code that such a thread runs.

mod library;

#[cfg(feature = "peer-berkeleydb")]
pub mod berkeleydb;
#[cfg(feature = "peer-capi")]
pub mod leveldb;
#[cfg(feature = "peer-splinterdb")]
pub mod splinterdb;
#[cfg(feature = "peer-wiredtiger")]
pub mod wiredtiger;
