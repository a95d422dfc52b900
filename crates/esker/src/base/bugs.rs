//! Seeded bugs, enabled one at a time, that show whether the tests find them.
//!
//! A site reads `bug!("name")`, which is true when the test-only build with `--cfg esker_bugs` runs
//! under `ESKER_BUG=name`, or `bug!("name", wrong)`, which then runs `wrong`. In every other build
//! the first form is the literal `false`, and the second form is unreachable code: the compiler
//! checks it and emits no instruction.
//!
//! `cargo xtask mutants` finds the sites in the sources, builds once, and runs the tests with each
//! bug. So a site must fit on one line. The comment above it begins with `Seeded:` and says what
//! would go wrong for a user. Names are unique and begin with the name of their layer.

/// Whether the bug of this name is enabled in this process.
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
