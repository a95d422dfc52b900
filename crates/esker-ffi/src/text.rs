//! Texts that C reads from a handle.

use esker::internals::stats::clients::Counted;
use std::ffi::c_char;
#[cfg(unix)]
use std::os::unix::ffi::OsStrExt;

/// Bytes as C takes them: followed by a zero byte, which is not counted.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    bytes: Box<[u8]>,
    _counted: Counted,
}

impl Text {
    pub(crate) fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let mut bytes = bytes.into();
        bytes.push(0);
        let bytes = bytes.into_boxed_slice();
        let _counted = Counted::of(bytes.len());
        Self { bytes, _counted }
    }

    /// From a path: its bytes on Unix, a readable form elsewhere.
    pub(crate) fn of_path(path: &std::path::Path) -> Self {
        #[cfg(unix)]
        return Self::new(path.as_os_str().as_bytes());
        #[cfg(not(unix))]
        Self::new(path.to_string_lossy().into_owned())
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - 1
    }

    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }
}
