//! What a call comes to after the rules were asked.

use std::io;

/// What a call shall do.
pub(super) enum Verdict {
    /// Pass it on.
    Pass,
    /// Report success and do nothing.
    Skip,
    /// Fail.
    Fail(io::Error),
    /// Write some bytes, then fail.
    Short(usize, io::Error),
    /// Pass a read on and flip a bit of the answer.
    Flip(u64),
    /// Fail a sync and treat the cache as kernels do; whether the data reverts.
    FailSync(bool),
}

/// The error of a device that failed.
pub(super) fn io_error() -> io::Error {
    io::Error::other("input/output error (injected)")
}
