//! Fuzzing with a stable compiler: the coverage that libFuzzer follows is an LLVM pass, which
//! stable rustc takes as a flag, so neither cargo-fuzz nor a nightly toolchain is needed.
//!
//! `cargo fuzz run TARGET` works on the same targets if both are installed.

use crate::programs::{call, cargo};
use crate::workspace::{Result, target};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The arguments.
pub(crate) struct Fuzz {
    /// One of `TARGETS`.
    pub name: String,
    /// How long.
    pub seconds: u64,
    /// Whether AddressSanitizer watches.
    pub address: bool,
    /// An input that failed, to be run once.
    pub input: Option<PathBuf>,
}

/// The fuzz targets, each with inputs from which to begin.
const TARGETS: &[(&str, &[&[u8]])] = &[
    // Opens a database and three keyspaces, so that there is something to call.
    ("c_calls", &[&[0, 0, 0, 1, 0, 1, 1, 0, 2, 1, 0, 3, 2, 0, 3, 65, 7, 0, 6, 0, 65]]),
    (
        "blocks",
        &[
            // Literals, and a match that overlaps what it copies, in the format of LZ4.
            &[0, 21, 0, 0x1b, b'a', 1, 0, 0x50, b'b', b'c', b'd', b'e', b'f'],
            // A frame of Zstandard with five bytes as they are, without and with a dictionary.
            b"\x01\x05\x00\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello",
            b"\x05\x05\x00\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello",
            // What the dictionary has in common with it.
            b"\x06\x00\x00user:000200:name=person 200 of 4;city=town 5",
            // A dictionary of its own, and then what is compressed with it.
            b"\x07\x28\x00user:000200:name=person 200 of 4;city=tow user:000207:name=person 207",
        ],
    ),
];

/// The flags that make a build report its coverage, as cargo-fuzz passes them.
const COVERAGE: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // The engine's own checks are to speak.
    "-Cdebug-assertions=on",
    "-Coverflow-checks=on",
];

/// Builds a target and runs it. Inputs that reach something new are kept beside the build.
pub(crate) fn run(workspace: &Path, fuzz: &Fuzz) -> Result<()> {
    let Some((name, seeds)) = TARGETS.iter().find(|(name, _)| *name == fuzz.name) else {
        let known: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
        return Err(format!("there is no target {}: take one of {known:?}", fuzz.name));
    };
    let directory = target(workspace).join(if fuzz.address { "fuzz-address" } else { "fuzz" });
    let program = build(workspace, &directory, name, fuzz.address)?;
    let mut command = Command::new(program);
    if let Some(place) = memory() {
        // Databases come and go here by the thousand.
        command.env("TMPDIR", place);
    }
    if let Some(input) = &fuzz.input {
        return call(command.arg(input));
    }
    let corpus = directory.join("corpus").join(name);
    let failures = directory.join("failures").join(name);
    for made in [&corpus, &failures] {
        fs::create_dir_all(made).map_err(|e| format!("cannot make {}: {e}", made.display()))?;
    }
    for (number, seed) in seeds.iter().enumerate() {
        let first = corpus.join(format!("seed-{number}"));
        fs::write(&first, seed).map_err(|e| format!("cannot write {}: {e}", first.display()))?;
    }
    let mut prefix = OsString::from("-artifact_prefix=");
    prefix.push(&failures);
    prefix.push("/");
    command.arg(&corpus).arg(prefix).args(["-max_len=1024", "-print_final_stats=1"]);
    // From the start on whole sequences, not from the shortest on.
    command.args(["-len_control=0", "-timeout=120", "-rss_limit_mb=4096"]);
    let seconds = fuzz.seconds;
    call(command.arg(format!("-max_total_time={seconds}"))).map_err(|why| {
        let failures = failures.display();
        format!("{why}\nreplay: cargo xtask fuzz --target {name} --input FILE, one of {failures}")
    })
}

/// The program of a target.
fn build(workspace: &Path, directory: &Path, name: &str, address: bool) -> Result<PathBuf> {
    let host = host()?;
    let mut flags: Vec<&str> = COVERAGE.to_vec();
    let mut build = cargo();
    if address {
        // The sanitizer comes with every toolchain, its flag only with this.
        build.env("RUSTC_BOOTSTRAP", "1");
        flags.push("-Zsanitizer=address");
    }
    build.current_dir(workspace.join("fuzz")).env("CARGO_TARGET_DIR", directory);
    // Flags in the environment would replace these.
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")).env_remove("RUSTFLAGS");
    // With a target named, build scripts are made without the flags.
    build.args(["build", "--release", "--locked", "--target", &host, "--bin", name]);
    call(&mut build)?;
    Ok(directory.join(host).join("release").join(name))
}

/// The compiler's name of this machine.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().map_err(|e| format!("no rustc: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not name its host".to_owned())
}

/// A file system in memory, where the system has one.
fn memory() -> Option<PathBuf> {
    let place = PathBuf::from("/dev/shm");
    (std::env::var_os("TMPDIR").is_none() && place.is_dir()).then_some(place)
}
