//! The layers below the public interface, for this workspace's tests, benchmarks and tools.
//!
//! Nothing here is part of the interface: names, types and behaviour change without notice. Programs
//! use what the front page of the crate names.

macro_rules! layers {
    ($($name:ident)*) => {
        $(
            #[allow(missing_docs)]
            pub mod $name {
                pub use crate::$name::*;
            }
        )*
    };
}

layers! { base budget sync events waits trace block filter options wal memtable cache run manifest state iter compaction commit }

// The model checker compiles none of these.
#[cfg(not(loom))]
layers! { directory catalog txn stats admission recovery monitor db inspect }

/// Values that are kept without a handle of their database.
#[cfg(not(loom))]
pub mod kept {
    pub use crate::api::kept::*;
}

/// Batches whose size is known before they are filled.
#[cfg(not(loom))]
pub mod batches {
    pub use crate::api::reserve;
}

/// Gets that do not wait.
#[cfg(not(loom))]
pub mod cached {
    pub use crate::api::cached::*;
}
