//! An installation: a program that knows nothing of this workspace is compiled with what pkg-config
//! says, and runs.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

#[path = "../../esker-capi/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::{Language, compiler, execute, has, libraries, package, run};

/// Installs the libraries that cargo made with this test below a directory.
fn install(prefix: &Path, more: &[&str]) {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.args(["install-c", "--built"]).arg(libraries().shared.parent().unwrap());
    run(xtask.arg("--prefix").arg(prefix).args(more));
}

/// What pkg-config says of the library installed below a directory; `None`: there is none here.
fn flags(prefix: &Path, more: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new(std::env::var_os("PKG_CONFIG").unwrap_or("pkg-config".into()));
    if command.arg("--version").output().is_err() {
        eprintln!("LEFT OUT: there is no pkg-config");
        return None;
    }
    let mut command = Command::new(command.get_program());
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let output = run(command.args(more).arg("esker"));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn a_program_is_compiled_with_what_pkg_config_says() {
    if !has(Language::C99) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let prefix = directory.path().join("installed");
    install(&prefix, &[]);
    // A second time over the first.
    install(&prefix, &[]);
    let Some(version) = flags(&prefix, &["--modversion"]) else { return };
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);
    let lib = prefix.join("lib");
    let source = package().join("tests/c/basics.c");
    for (linked, more) in
        [("shared", &["--cflags", "--libs"][..]), ("static", &["--static", "--cflags", "--libs"])]
    {
        let program = directory.path().join(linked);
        let mut command = Command::new(compiler(Language::C99));
        command.arg("-std=c99").arg("-I").arg(package().join("tests/c")).arg(&source);
        if linked == "static" {
            // Where both are there, a linker takes the shared one.
            for entry in fs::read_dir(&lib).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if name.contains(".so") || name.contains(".dylib") {
                    fs::remove_file(path).unwrap();
                }
            }
        } else {
            command.arg(format!("-Wl,-rpath,{}", lib.display()));
        }
        command.args(flags(&prefix, more).unwrap()).arg("-o").arg(&program);
        run(&mut command);
        assert!(execute(&program, &[]).contains("basics: ok"), "{linked}");
    }
}

/// The library has a name of its own with the number of the interface, which programs ask for.
#[cfg(target_os = "linux")]
#[test]
fn programs_ask_for_the_number_of_the_interface() {
    if !has(Language::C99) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    install(Path::new("/opt/esker"), &["--destdir", root, "--libdir", "lib64"]);
    let lib = directory.path().join("opt/esker/lib64");
    let pc = fs::read_to_string(lib.join("pkgconfig/esker.pc")).unwrap();
    assert!(pc.contains("prefix=/opt/esker\n") && pc.contains("libdir=${prefix}/lib64\n"), "{pc}");
    assert!(!pc.contains('@'), "something is not filled in: {pc}");
    let library = fs::canonicalize(lib.join("libesker.so")).unwrap();
    assert_eq!(library, fs::canonicalize(lib.join("libesker.so.0")).unwrap());
    let Ok(output) = Command::new("readelf").arg("-d").arg(&library).output() else {
        eprintln!("LEFT OUT: there is no readelf");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("SONAME") && text.contains("[libesker.so.0]"), "{text}");
}
