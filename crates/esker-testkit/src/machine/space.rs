//! Space does not leak: when nothing holds a file any more and the background has finished, the run files are
//! the files that the manifest names, and no others.

use super::Machine;
use crate::referred;

impl Machine {
    /// Ends what holds files, and checks that everything else goes.
    pub(super) fn check_space(&mut self) {
        self.finish_checkpoint();
        self.walks.clear();
        self.keeper.let_go();
        let values = referred::check(self.db(), &self.disk.as_fs(), &self.path);
        self.watch_values(&values);
    }
}
