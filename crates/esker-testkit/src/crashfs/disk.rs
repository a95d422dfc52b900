//! The one disk that a file system, its open files and its locks share.

use std::sync::Arc;

use esker::fs::Incarnation;
use parking_lot::Mutex;

use super::state::State;

/// Called before each mutating operation with its number (from 0) and its description. It may
/// clone the file system or look at it, but not change it.
pub type Hook = Arc<dyn Fn(u64, &str) + Send + Sync>;

/// A disk, and what is called before it changes.
pub(super) struct Disk {
    pub(super) state: Mutex<State>,
    pub(super) hook: Mutex<Option<Hook>>,
}

impl Disk {
    /// Announces a mutating operation.
    pub(super) fn begin(&self, what: &str) {
        let number = {
            let mut state = self.state.lock();
            state.write_back();
            state.begin(what)
        };
        let hook = self.hook.lock().clone();
        if let Some(hook) = hook {
            hook(number, what);
        }
    }
}

/// Boot, a constant for the mount, and the inode.
pub(super) fn incarnation(boot: u64, inode: u64) -> Incarnation {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&boot.to_le_bytes());
    bytes[16..24].copy_from_slice(&1_u64.to_le_bytes());
    bytes[24..].copy_from_slice(&inode.to_le_bytes());
    Incarnation(bytes)
}

/// The inode in an incarnation of this disk.
pub(super) fn inode_of(incarnation: &Incarnation) -> u64 {
    let mut inode = [0; 8];
    inode.copy_from_slice(&incarnation.0[24..]);
    u64::from_le_bytes(inode)
}
