//! Instruments: latencies, pauses, what the process used, what the machine is.
//!
//! Each instrument says what it costs. Each operation costs one clock read, one histogram update and
//! one store to a counter that only this thread writes ([`meter`]); everything else happens in the
//! monitor thread or after the workload.

pub mod caches;
pub mod cgroup;
pub mod disk;
pub mod disk_use;
pub mod latency;
pub mod machine;
pub mod median;
pub mod meter;
pub mod pause;
pub mod probe;
pub mod process;
pub mod server;
pub mod storage;
