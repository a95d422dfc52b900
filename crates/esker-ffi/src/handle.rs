//! What lies behind a pointer that C holds: a value, and before it a word that names its kind.
//!
//! A handle is a [`Handle`] in its own box, which C sees as a pointer to an opaque type. The word
//! changes when the handle is freed. `border` follows such pointers and checks the word first.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A kind of handle: the type that C names, and the value behind it.
pub(crate) trait Kind {
    type Inner;
    /// The first word of such a handle while it lives.
    const WORD: u64;
    /// Its name in messages.
    const NAME: &'static str;
}

/// Declares the type that C sees and the [`Kind`] it stands for. The documentation of the type is
/// written where cbindgen sees it, so the type itself is declared outside of the macro.
macro_rules! kind {
    ($opaque:ident, $word:literal, $inner:ty) => {
        impl $crate::handle::Kind for $opaque {
            type Inner = $inner;
            const WORD: u64 = u64::from_le_bytes(*$word);
            const NAME: &'static str = stringify!($opaque);
        }
    };
}
pub(crate) use kind;

/// The first word of a freed handle.
pub(crate) const FREED: u64 = u64::from_le_bytes(*b"freed...");

/// The contents of a handle.
#[repr(C)]
pub(crate) struct Handle<T> {
    /// Names the kind while the handle lives.
    pub(crate) word: AtomicU64,
    pub(crate) in_use: AtomicBool,
    pub(crate) inner: UnsafeCell<T>,
}

impl<T> Handle<T> {
    /// A handle of kind `K`, to be boxed.
    pub(crate) fn new<K: Kind<Inner = T>>(inner: T) -> Self {
        Self {
            word: AtomicU64::new(K::WORD),
            in_use: AtomicBool::new(false),
            inner: UnsafeCell::new(inner),
        }
    }

    /// The value behind a handle that was not boxed.
    pub(crate) fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}
