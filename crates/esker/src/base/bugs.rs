//! Defects on purpose, one at a time, that show whether the tests notice.
//!
//! A site reads `bug!("name")`, which is true where the test-only build with `--cfg esker_bugs`
//! runs under `ESKER_BUG=name`, or `bug!("name", wrong)`, which does the wrong thing there. In
//! every other build the first is the literal `false` and the second is code behind it: it is
//! checked by the compiler and leaves no instruction.
//!
//! `cargo xtask mutants` finds the sites in the sources, builds once, and runs the tests with each
//! bug. So a site stands in one line; what would go wrong for a user stands in the comment above
//! it, which begins with `Seeded:`. Names are unique, and begin with the layer they are in.

/// Whether the bug of this name was chosen for this process.
#[cfg(esker_bugs)]
pub fn is_chosen(name: &str) -> bool {
    std::env::var("ESKER_BUG").is_ok_and(|chosen| chosen == name)
}

#[cfg(esker_bugs)]
macro_rules! bug {
    ($name:literal) => {{
        static CHOSEN: std::sync::LazyLock<bool> =
            std::sync::LazyLock::new(|| $crate::base::bugs::is_chosen($name));
        *CHOSEN
    }};
    ($name:literal, $wrong:expr) => {
        if bug!($name) {
            $wrong;
        }
    };
}

#[cfg(not(esker_bugs))]
macro_rules! bug {
    ($name:literal) => {
        false
    };
    ($name:literal, $wrong:expr) => {
        if false {
            $wrong;
        }
    };
}
