//! How a library is loaded, and what every C interface needs: paths, texts and tables of functions.
//!
//! [`load`] opens a library for the rest of the process's life. `functions!` declares a table of
//! functions that is filled from the library by their names, so that a library which lacks one of them is
//! refused when it is loaded and not when the function is called.

use crate::{Error, Result};
use libloading::Library;
use std::ffi::{CStr, CString, OsStr, c_char};
use std::mem::ManuallyDrop;
use std::path::Path;

/// Opens the first of `names` that there is: paths, or names that the system's loader looks up.
#[allow(unsafe_code, reason = "a library runs code when it is loaded")]
pub fn load<S: AsRef<OsStr>>(names: &[S]) -> Result<ManuallyDrop<Library>, String> {
    let mut causes = Vec::new();
    for name in names {
        // SAFETY: loading runs the library's initialisers. They are those of the engine that the
        // user asked for by name or path, which is about to run in this process anyway.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok(ManuallyDrop::new(library)),
            Err(error) => causes.push(error.to_string()),
        }
    }
    causes.dedup();
    Err(causes.join("; "))
}

/// A path as C wants it.
pub fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|_| Error::usage(format!("{} has a zero byte in it", path.display())))
}

/// A copy of a text that a library handed out; none for a null pointer.
///
/// # Safety
///
/// `text` is null or points at a text that ends with a zero byte and lives for the whole call.
#[allow(unsafe_code, reason = "C says nothing of the length")]
pub unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Declares a table of functions that is filled from a library by their names.
macro_rules! functions {
    ($(#[$about:meta])* struct $table:ident {
        $($name:ident: fn($($argument:ty),* $(,)?) $(-> $returned:ty)?;)*
    }) => {
        $(#[$about])*
        struct $table {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $returned)?,)*
        }

        impl $table {
            #[allow(unsafe_code, reason = "a symbol has no type")]
            fn of(library: std::mem::ManuallyDrop<libloading::Library>) -> Result<Self, String> {
                $(
                    let $name = {
                        // SAFETY: the type is that of the function of this name in the library's
                        // public header, and the library is never unloaded.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) $(-> $returned)?>(
                                concat!(stringify!($name), "\0").as_bytes(),
                            )
                        };
                        *symbol.map_err(|error| error.to_string())?
                    };
                )*
                Ok(Self { $($name,)* })
            }
        }
    };
}
pub(super) use functions;
