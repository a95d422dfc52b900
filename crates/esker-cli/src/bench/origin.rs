//! What this program knows of the command that it carries out, and of its own build.

use esker_bench::report::{Build, Origin};

/// Of the command that begins now.
pub fn now() -> Origin {
    let build =
        Build { commit: Some(env!("ESKER_COMMIT")), compiler: Some(env!("ESKER_COMPILER")) };
    Origin::now(build, std::env::args_os())
}
