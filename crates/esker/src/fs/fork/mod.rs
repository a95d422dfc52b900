//! Telling a forked child from the process that opened the database (R26).
//!
//! A child of `fork` owns copies of all memory and descriptors of its parent but none of its other
//! threads: a mutex may stay locked for ever, and a write or an unlock would change the parent's
//! files. So every call checks a [`ForkGuard`] first. On Linux the guard is one page of memory that
//! the kernel wipes in the child (`MADV_WIPEONFORK`): a check costs one load and no system call.
//! Elsewhere, and on older kernels, it compares process ids.

#[cfg(target_os = "linux")]
mod page;

#[cfg(test)]
mod tests;

/// Remembers which process made it.
#[derive(Debug)]
pub struct ForkGuard {
    #[cfg(target_os = "linux")]
    page: Option<page::WipedPage>,
    process: u32,
}

impl ForkGuard {
    /// A guard that belongs to this process.
    pub fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            page: page::WipedPage::new(),
            process: std::process::id(),
        }
    }

    /// Whether this is a child process of the one that made the guard.
    #[inline]
    pub fn forked(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(page) = &self.page {
            return page.wiped();
        }
        std::process::id() != self.process
    }
}

impl Default for ForkGuard {
    fn default() -> Self {
        Self::new()
    }
}
