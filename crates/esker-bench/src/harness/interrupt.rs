//! A request, from any thread, to end the running work early.
//!
//! The listener for signals makes the request. The running step of a suite sees it within a second and
//! stops. The figures of that step are dropped, because it ended early; those of the steps before it
//! are kept. Whoever asks again does not want to wait for the step; then the listener removes the databases
//! itself and ends the program.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Why a report is not complete whose suite somebody ended.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// How often it is tried to remove what somebody else removes at the same time.
const TRIES: usize = 100;

/// Ends what is under way early. Clones are one.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    asked: AtomicBool,
    /// What has to be removed if the program ends at once.
    temporary: Mutex<Option<PathBuf>>,
}

impl Interrupt {
    /// Asks for the end. Says whether somebody had asked before.
    pub fn ask(&self) -> bool {
        self.0.asked.swap(true, Ordering::SeqCst)
    }

    /// Forgets that somebody asked: what is under way next was not meant.
    pub fn forget(&self) {
        self.0.asked.store(false, Ordering::SeqCst);
    }

    /// Whether somebody asked.
    pub fn asked(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// Names the directory that must not remain, whichever way the program ends.
    pub fn leaves(&self, temporary: &Path) {
        let mut place = self.0.temporary.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(temporary.to_owned());
    }

    /// Removes that directory, for a program that ends right afterwards: engines may still write.
    pub fn remove_temporary(&self) {
        let temporary = self.0.temporary.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(temporary) = temporary else { return };
        // Under another name no engine can make files in it meanwhile.
        let mut name = temporary.clone().into_os_string();
        name.push("-removed");
        let renamed = PathBuf::from(name);
        let at = if std::fs::rename(&temporary, &renamed).is_ok() { renamed } else { temporary };
        // The run may end by itself and remove it, too: then a file is gone, or a directory is not empty, where this did
        // not expect it. The program ends: there is nobody to tell, and the system clears this place too.
        for _ in 0..TRIES {
            if std::fs::remove_dir_all(&at).is_ok() || !at.exists() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_removed_once_and_only_if_one_was_named() {
        let dir = tempfile::tempdir().unwrap();
        let temporary = dir.path().join("databases");
        std::fs::create_dir_all(temporary.join("inner")).unwrap();
        let interrupt = Interrupt::default();
        interrupt.remove_temporary();
        interrupt.leaves(&temporary);
        interrupt.clone().remove_temporary();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        std::fs::create_dir(&temporary).unwrap();
        interrupt.remove_temporary();
        assert!(temporary.exists());
    }
}
