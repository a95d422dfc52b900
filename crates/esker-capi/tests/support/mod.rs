//! Compiling programs against the library, and running them.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Where the two libraries are.
pub struct Libraries {
    pub shared: PathBuf,
    pub fixed: PathBuf,
}

/// The libraries that cargo made with this test, beside it.
pub fn libraries() -> Libraries {
    let program = std::env::current_exe().unwrap();
    let directory = program.parent().unwrap();
    let shared = if cfg!(target_os = "macos") { "libesker_capi.dylib" } else { "libesker_capi.so" };
    let libraries =
        Libraries { shared: directory.join(shared), fixed: directory.join("libesker_capi.a") };
    for file in [&libraries.shared, &libraries.fixed] {
        assert!(file.exists(), "cargo made no {}", file.display());
    }
    libraries
}

/// Lets programs find the library under the name that they ask for, as an installation does.
fn name_for_programs(shared: &Path) {
    static NAMED: OnceLock<()> = OnceLock::new();
    NAMED.get_or_init(|| {
        let name = if cfg!(target_os = "macos") { "libesker.0.dylib" } else { "libesker.so.0" };
        let link = shared.with_file_name(name);
        // Another test binary may make the same link at the same time.
        let own = shared.with_file_name(format!("{name}.{}", std::process::id()));
        #[cfg(unix)]
        std::os::unix::fs::symlink(shared.file_name().unwrap(), &own).unwrap();
        std::fs::rename(own, link).unwrap();
    });
}

pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The crate of the library; this module serves tests of other crates, too.
pub fn package() -> PathBuf {
    workspace().join("crates/esker-capi")
}

/// Runs a command, which must succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// How a program is compiled.
#[derive(Clone, Copy, PartialEq)]
pub enum Language {
    C99,
    Cpp17,
}

/// How a program gets the library.
#[derive(Clone, Copy, PartialEq)]
pub enum Linked {
    Shared,
    Fixed,
}

/// What is linked with a static library made by Rust on Linux; other systems need less.
const SYSTEM_LIBRARIES: &[&str] = &["-lpthread", "-ldl", "-lm"];

/// The compiler for a language: `CC`, `CXX`, or the usual names.
pub fn compiler(language: Language) -> String {
    let (variable, usual) = match language {
        Language::C99 => ("CC", "cc"),
        Language::Cpp17 => ("CXX", "c++"),
    };
    std::env::var(variable).unwrap_or_else(|_| usual.to_owned())
}

/// Whether this machine can compile a language.
pub fn has(language: Language) -> bool {
    is_there(&compiler(language))
}

/// Whether this machine has a compiler.
pub fn is_there(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("LEFT OUT: there is no {compiler}");
    }
    found
}

/// Compiles a program with all warnings as errors; `more` are further arguments. The program's
/// file is named after the source and `tag`.
pub fn compile(
    source: &Path,
    language: Language,
    linked: Linked,
    tag: &str,
    more: &[&str],
) -> PathBuf {
    compile_by(&compiler(language), source, language, linked, tag, more)
}

/// As [`compile`], by this compiler.
pub fn compile_by(
    compiler: &str,
    source: &Path,
    language: Language,
    linked: Linked,
    tag: &str,
    more: &[&str],
) -> PathBuf {
    let libraries = libraries();
    let name = format!("{}-{tag}", source.file_stem().unwrap().to_string_lossy());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new(compiler);
    command.arg(match language {
        Language::C99 => "-std=c99",
        Language::Cpp17 => "-std=c++17",
    });
    command.args(["-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]).args(more);
    command.arg("-I").arg(package().join("include")).arg("-I").arg(package().join("tests/c"));
    command.arg(source).arg("-o").arg(&program);
    match linked {
        Linked::Shared => {
            let directory = libraries.shared.parent().unwrap();
            name_for_programs(&libraries.shared);
            command.arg("-L").arg(directory).arg("-lesker_capi");
            command.arg(format!("-Wl,-rpath,{}", directory.display()));
        }
        Linked::Fixed => {
            command.arg(&libraries.fixed).args(SYSTEM_LIBRARIES);
        }
    }
    run(&mut command);
    program
}

/// Runs a program in a directory of its own, which is its first argument; what it prints.
pub fn execute(program: &Path, more: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.arg(directory.path()).args(more).current_dir(directory.path());
    String::from_utf8(run(&mut command).stdout).unwrap()
}
