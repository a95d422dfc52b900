//! Chores of the workspace that need more than cargo. `cargo xtask help` lists them.
//!
//! Each chore is a module with a function that runs it and returns an error message; this file only
//! reads the command line.

mod api;
mod budget;
mod clients;
mod dropin;
mod footprint;
mod fuzz;
mod headers;
mod import_bench;
mod install;
mod leveldb_bench;
mod metrics;
mod mutants;
mod pacing;
mod programs;
mod release;
mod simulate;
#[cfg(test)]
mod tests;
mod workspace;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
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
    /// Lists the public interfaces of the libraries that are published, in api.txt of their crates.
    Api {
        /// Writes nothing, and fails if a listing that is checked in differs.
        #[arg(long)]
        check: bool,
    },
    /// Writes the reference of metrics in docs/operations.md from the engine's table of metrics.
    Metrics {
        /// Writes nothing, and fails if the reference differs.
        #[arg(long)]
        check: bool,
    },
    /// Runs a fuzz target, with the installed compiler. It needs a C++ compiler.
    Fuzz {
        /// The target: a file in fuzz/fuzz_targets.
        #[arg(long, default_value = "c_calls")]
        target: String,
        /// How long, once it is built.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Also checks memory with AddressSanitizer.
        #[arg(long)]
        address: bool,
        /// Runs only one input that failed.
        #[arg(long)]
        input: Option<PathBuf>,
    },
    /// Builds libesker and installs it for C: header, shared and static library, and a file for
    /// pkg-config.
    InstallC {
        /// The directory to install to.
        #[arg(long, default_value = "/usr/local")]
        prefix: PathBuf,
        /// The directory of libraries below it.
        #[arg(long, default_value = "lib")]
        libdir: String,
        /// A directory in place of the root, to make a package.
        #[arg(long)]
        destdir: Option<PathBuf>,
        /// The profile to build with.
        #[arg(long, default_value = "release", conflicts_with = "built")]
        profile: String,
        /// Builds nothing, and takes the libraries from this directory of cargo: for libraries
        /// built for another system.
        #[arg(long)]
        built: Option<PathBuf>,
    },
    /// Makes target/leveldb-dropin/libleveldb.so.1d, which takes the place of LevelDB's library.
    /// It needs a C++ compiler and LevelDB's headers (Debian: libleveldb-dev).
    LeveldbDropin {
        /// Leaves out the C++ half and writes to target/leveldb-dropin/c; this needs only a C
        /// compiler.
        #[arg(long)]
        c_only: bool,
    },
    /// Measures one C program over LevelDB's interface on LevelDB and on Esker, and the same work
    /// in Rust, in turns. It needs LevelDB (Debian: libleveldb-dev).
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
    /// Measures how fast `esker import` imports a LevelDB directory. It needs LevelDB (Debian:
    /// libleveldb-dev).
    ImportBench {
        /// Entries of 16 + 100 bytes.
        #[arg(long, default_value_t = 10_000_000)]
        num: u64,
        /// How often it is imported.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Runs the tests with one deliberate defect at a time, and prints which test noticed it. This
    /// takes an hour; an interrupted run continues.
    Mutants {
        /// Only defects whose names contain one of these.
        only: Vec<String>,
        /// Discards the results of earlier runs about them.
        #[arg(long)]
        again: bool,
        /// Only lists them.
        #[arg(long)]
        list: bool,
        /// Prints the table as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Measures what a memory budget buys: rates of loads and reads under several budgets.
    Budget(budget::Budget),
    /// Measures what Esker costs a project that uses it, beside redb and fjall: packages, the time of
    /// a first build, the size of a program. Needs the crate registry.
    Footprint(footprint::Footprint),
    /// Runs what a release needs and uploads nothing: checks, packages and their builds, licences,
    /// bills of materials, wheel and source distribution. docs/releasing.md has the other steps.
    Release(release::Release),
    /// Runs programs and test suites of other projects, unchanged, on LevelDB's own library and on
    /// ours. Their sources come from the package registries.
    Clients {
        /// Fails if something is missing, instead of leaving out the clients that need it.
        #[arg(long)]
        all: bool,
    },
    /// Simulates how often bytes are written, over how many runs a key lies and how much space data
    /// of any size take, with the engine's own policy and without any data.
    Simulate(simulate::Simulate),
    /// Simulates how writers are slowed, with the engine's own pacer, on a virtual clock.
    SimulatePacing(pacing::Pacing),
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Headers { check } => headers::run(&workspace::root(), check),
        Chore::Api { check } => api::run(&workspace::root(), check),
        Chore::Metrics { check } => metrics::run(&workspace::root(), check),
        Chore::Fuzz { target, seconds, address, input } => {
            fuzz::run(&workspace::root(), &fuzz::Fuzz { name: target, seconds, address, input })
        }
        Chore::Simulate(asked) => simulate::run(&workspace::root(), &asked),
        Chore::SimulatePacing(asked) => pacing::run(&workspace::root(), &asked),
        Chore::InstallC { prefix, libdir, destdir, profile, built } => {
            let asked = install::Install { prefix, libdir, destdir, profile, built };
            install::run(&workspace::root(), &asked)
        }
        Chore::LeveldbDropin { c_only } => dropin::run(&workspace::root(), c_only).map(|_| ()),
        Chore::LeveldbBench { num, reads, rounds } => {
            leveldb_bench::run(&workspace::root(), num, reads, rounds)
        }
        Chore::ImportBench { num, rounds } => import_bench::run(&workspace::root(), num, rounds),
        Chore::Mutants { only, again, list, json } => {
            mutants::run(&workspace::root(), &mutants::Mutants { only, again, list, json })
        }
        Chore::Budget(asked) => budget::run(&workspace::root(), &asked),
        Chore::Footprint(asked) => footprint::run(&workspace::root(), &asked),
        Chore::Release(asked) => release::run(&workspace::root(), &asked),
        Chore::Clients { all } => clients::run(&workspace::root(), all),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
