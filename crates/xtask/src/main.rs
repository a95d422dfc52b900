//! Chores of the workspace that need more than cargo. `cargo xtask help` lists them.
//!
//! Each chore is a module with a function that does it and says in words what went wrong; this
//! file only reads the command line.

mod clients;
mod dropin;
mod fuzz;
mod headers;
mod import_bench;
mod install;
mod leveldb_bench;
mod mutants;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Chores of the workspace")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Writes the C headers that are generated from the sources of the C interfaces.
    Headers {
        /// Writes nothing, and fails if a header that is checked in differs.
        #[arg(long)]
        check: bool,
    },
    /// Runs a fuzz target, with the compiler that is there. It needs a C++ compiler.
    Fuzz {
        /// Which: a file in fuzz/fuzz_targets.
        #[arg(long, default_value = "c_calls")]
        target: String,
        /// How long, once it is built.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Watches memory with AddressSanitizer, too.
        #[arg(long)]
        address: bool,
        /// Runs one input that failed, instead.
        #[arg(long)]
        input: Option<PathBuf>,
    },
    /// Builds libesker and installs it for C: header, shared and static library, and a file for
    /// pkg-config.
    InstallC {
        /// Where to.
        #[arg(long, default_value = "/usr/local")]
        prefix: PathBuf,
        /// The directory of libraries below it.
        #[arg(long, default_value = "lib")]
        libdir: String,
        /// A directory that stands for the root, to make a package of.
        #[arg(long)]
        destdir: Option<PathBuf>,
        /// The profile to build with.
        #[arg(long, default_value = "release", conflicts_with = "built")]
        profile: String,
        /// Builds nothing, and takes the libraries that cargo made in this directory: for
        /// libraries that were built for another system.
        #[arg(long)]
        built: Option<PathBuf>,
    },
    /// Makes target/leveldb-dropin/libleveldb.so.1d, which takes the place of LevelDB's library.
    /// It needs a C++ compiler and LevelDB's headers (Debian: libleveldb-dev).
    LeveldbDropin {
        /// Leaves the C++ half out, into target/leveldb-dropin/c; a C compiler is enough then.
        #[arg(long)]
        c_only: bool,
    },
    /// Measures one C program over LevelDB's interface on LevelDB and on Esker, and the same work in
    /// Rust, in turns. It needs LevelDB (Debian: libleveldb-dev).
    LeveldbBench {
        /// Entries of 16 + 100 bytes.
        #[arg(long, default_value_t = 1_000_000)]
        num: u64,
        /// Gets, and seeks with ten steps.
        #[arg(long, default_value_t = 1_000_000)]
        reads: u64,
        /// How often all three are run.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Measures how fast `esker import` brings a LevelDB directory over. It needs LevelDB (Debian:
    /// libleveldb-dev).
    ImportBench {
        /// Entries of 16 + 100 bytes.
        #[arg(long, default_value_t = 10_000_000)]
        num: u64,
        /// How often it is imported.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Runs the tests with one deliberate defect at a time, and prints which test noticed it. It is
    /// an hour's work, and goes on where it was interrupted.
    Mutants {
        /// Only defects whose names contain one of these.
        only: Vec<String>,
        /// Forgets what earlier runs found about them.
        #[arg(long)]
        again: bool,
        /// Only names them.
        #[arg(long)]
        list: bool,
        /// Prints the table as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Runs programs and test suites of other projects, unchanged, on LevelDB's own library and on
    /// ours. What they are made of comes from the package registries.
    Clients {
        /// Fails where something is missing, instead of leaving out what needs it.
        #[arg(long)]
        all: bool,
    },
}

/// Why a chore was not done, in words.
type Result<T, E = String> = std::result::Result<T, E>;

/// The directory of the workspace.
fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Headers { check } => headers::run(&workspace(), check),
        Chore::Fuzz { target, seconds, address, input } => {
            fuzz::run(&workspace(), &fuzz::Fuzz { name: target, seconds, address, input })
        }
        Chore::InstallC { prefix, libdir, destdir, profile, built } => {
            let asked = install::Install { prefix, libdir, destdir, profile, built };
            install::run(&workspace(), &asked)
        }
        Chore::LeveldbDropin { c_only } => dropin::run(&workspace(), c_only).map(|_| ()),
        Chore::LeveldbBench { num, reads, rounds } => {
            leveldb_bench::run(&workspace(), num, reads, rounds)
        }
        Chore::ImportBench { num, rounds } => import_bench::run(&workspace(), num, rounds),
        Chore::Mutants { only, again, list, json } => {
            mutants::run(&workspace(), &mutants::Mutants { only, again, list, json })
        }
        Chore::Clients { all } => clients::run(&workspace(), all),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
