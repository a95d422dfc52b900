//! The shared library that takes the place of LevelDB's: `libleveldb.so.1d`, as Debian names it.
//!
//! The Rust half is built as a static library; the C++ half is compiled against LevelDB's own
//! public headers; both are linked into one, which shows LevelDB's names only. With `--c-only`
//! there is no C++ in it, and neither a C++ compiler nor LevelDB's headers are needed.

use crate::programs::{call, cargo, cc};
use crate::workspace::{Result, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name by which programs ask for the library.
const SONAME: &str = "libleveldb.so.1d";

/// Makes the library and says where it is.
pub(crate) fn run(workspace: &Path, c_only: bool) -> Result<PathBuf> {
    let target = target(workspace);
    let directory = target.join(if c_only { "leveldb-dropin/c" } else { "leveldb-dropin" });
    let sources = workspace.join("crates/esker-leveldb/cxx");
    fs::create_dir_all(&directory).map_err(|e| format!("cannot make {directory:?}: {e}"))?;
    if !c_only {
        check_cxx()?;
    }
    let archive = archive(workspace, &target)?;
    let mut objects = Vec::new();
    for name in if c_only { &[][..] } else { &["leveldb", "env"][..] } {
        let object = directory.join(format!("{name}.o"));
        let mut compiler = Command::new(cxx());
        compiler.args(["-std=c++17", "-O2", "-g1", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c"]);
        call(compiler.arg(sources.join(format!("{name}.cc"))).arg("-o").arg(&object))?;
        objects.push(object);
    }
    let library = directory.join(SONAME);
    let made = directory.join("new.so");
    let mut linker = Command::new(if c_only { cc() } else { cxx() });
    linker.args(["-shared", &format!("-Wl,-soname,{SONAME}"), "-Wl,--gc-sections", "-Wl,-z,defs"]);
    let mut exports = std::ffi::OsString::from("-Wl,--version-script=");
    exports.push(sources.join("exports.map"));
    linker.arg(exports).args(objects);
    linker.arg("-Wl,--whole-archive").arg(&archive).arg("-Wl,--no-whole-archive");
    call(linker.args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lc", "-o"]).arg(&made))?;
    // In one step, so that programs that run with the old one keep it.
    fs::rename(&made, &library).map_err(|e| format!("cannot rename {made:?}: {e}"))?;
    link(&directory.join("libleveldb.so"))?;
    println!("made {}", library.display());
    Ok(directory)
}

/// The name that `-lleveldb` looks for.
fn link(path: &Path) -> Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        fs::remove_file(path).map_err(|e| format!("cannot remove {path:?}: {e}"))?;
    }
    #[cfg(unix)]
    let made = std::os::unix::fs::symlink(SONAME, path);
    #[cfg(not(unix))]
    let made = fs::copy(path.with_file_name(SONAME), path);
    made.map(|_| ()).map_err(|e| format!("cannot make {path:?}: {e}"))
}

/// The Rust half as a static library.
fn archive(workspace: &Path, target: &Path) -> Result<PathBuf> {
    let mut build = cargo();
    build.current_dir(workspace).args(["rustc", "--quiet", "--release", "--lib"]);
    call(build.args(["--package", "esker-leveldb", "--crate-type", "staticlib"]))?;
    Ok(target.join("release/libesker_leveldb.a"))
}

/// Says what is missing before anything is built.
fn check_cxx() -> Result<()> {
    let mut compiler = Command::new(cxx());
    compiler.args(["-std=c++17", "-fsyntax-only", "-x", "c++", "-include", "leveldb/db.h"]);
    match compiler.arg("/dev/null").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(_) => Err("LevelDB's headers are missing (Debian: apt-get install libleveldb-dev); \
                      `--c-only` needs none"
            .to_owned()),
        Err(error) => Err(format!(
            "there is no C++ compiler ({}: {error}; Debian: apt-get install g++); `--c-only` needs \
             none",
            cxx().display()
        )),
    }
}

fn cxx() -> std::ffi::OsString {
    std::env::var_os("CXX").unwrap_or_else(|| "c++".into())
}
