//! The versions of the engines that are compiled into this program.
//!
//! Most engines written in Rust cannot say their own version. The build script reads it from the lock
//! file, and the adapters ask for it here.

/// The version of a crate that was built in, by the lock file.
pub fn locked_version(name: &str) -> &'static str {
    let mut all = env!("LOCKED_VERSIONS").split(' ').filter_map(|entry| entry.split_once('='));
    all.find(|(known, _)| *known == name).map_or("of unknown version", |(_, version)| version)
}
