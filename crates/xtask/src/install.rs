//! Installs libesker for C programs: the header, the shared library under the name that programs
//! ask for, the static library, and a file for pkg-config.

use crate::programs::{call, cargo};
use crate::workspace::{Result, target};
use std::fs;
use std::path::{Path, PathBuf};

/// The arguments.
pub(crate) struct Install {
    /// Where the files stand when they are used.
    pub prefix: PathBuf,
    /// The directory of libraries below it.
    pub libdir: String,
    /// A directory in place of the root, for package builders.
    pub destdir: Option<PathBuf>,
    /// The profile of cargo.
    pub profile: String,
    /// Where the libraries are, if they need not be built.
    pub built: Option<PathBuf>,
}

/// What the shared library is called on this system: the file, and the names that lead to it.
struct Names {
    file: String,
    links: Vec<String>,
}

impl Names {
    fn new(interface: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        if cfg!(target_os = "macos") {
            let links = vec![format!("libesker.{interface}.dylib"), "libesker.dylib".to_owned()];
            return Self { file: format!("libesker.{version}.dylib"), links };
        }
        let links = vec![format!("libesker.so.{interface}"), "libesker.so".to_owned()];
        Self { file: format!("libesker.so.{version}"), links }
    }

    /// What cargo calls it.
    fn built() -> &'static str {
        if cfg!(target_os = "macos") { "libesker_capi.dylib" } else { "libesker_capi.so" }
    }
}

/// Builds and installs.
pub(crate) fn run(workspace: &Path, install: &Install) -> Result<()> {
    if cfg!(not(unix)) {
        return Err(
            "this chore knows only the names of libraries on Unix: copy esker.h, esker.dll \
                    and esker.lib"
                .to_owned(),
        );
    }
    if !install.prefix.is_absolute() {
        return Err(format!("the prefix {} is not absolute: give it from the root on", {
            install.prefix.display()
        }));
    }
    let package = workspace.join("crates/esker-capi");
    let built = match &install.built {
        Some(directory) => directory.clone(),
        None => build(workspace, &install.profile)?,
    };
    let root = match &install.destdir {
        Some(destdir) => destdir.join(install.prefix.strip_prefix("/").unwrap_or(&install.prefix)),
        None => install.prefix.clone(),
    };
    let libraries = root.join(&install.libdir);
    copy(&package.join("include/esker.h"), &root.join("include/esker.h"))?;
    let names = Names::new(&interface(&package)?);
    copy(&built.join(Names::built()), &libraries.join(&names.file))?;
    for link in &names.links {
        replace_link(&names.file, &libraries.join(link))?;
    }
    copy(&built.join("libesker_capi.a"), &libraries.join("libesker.a"))?;
    let template = read(&package.join("esker.pc.in"))?;
    let text = fill(&template, install)?;
    write(&libraries.join("pkgconfig/esker.pc"), text.as_bytes())
}

/// Builds the libraries with cargo and returns their directory.
fn build(workspace: &Path, profile: &str) -> Result<PathBuf> {
    let mut build = cargo();
    build.current_dir(workspace).args(["build", "--quiet", "--lib", "--package", "esker-capi"]);
    call(build.args(["--profile", profile]))?;
    // Cargo's own two profiles for development share a directory.
    let directory = if matches!(profile, "dev" | "test") { "debug" } else { profile };
    Ok(target(workspace).join(directory))
}

/// The number of the interface, which the build script of the library gives it.
fn interface(package: &Path) -> Result<String> {
    let script = read(&package.join("build.rs"))?;
    let number = script.split_once("INTERFACE: u32 = ").and_then(|(_, rest)| rest.split_once(';'));
    number
        .map(|(number, _)| number.to_owned())
        .ok_or_else(|| "crates/esker-capi/build.rs names no INTERFACE".to_owned())
}

/// The file for pkg-config.
fn fill(template: &str, install: &Install) -> Result<String> {
    // What a static library made by Rust needs; other systems have it in their one library.
    let private = if cfg!(target_os = "linux") { "-lpthread -ldl -lm" } else { "" };
    let prefix =
        install.prefix.to_str().ok_or("the prefix is not UTF-8, as pkg-config needs it")?;
    if prefix.contains(char::is_whitespace) {
        return Err(format!("the prefix {prefix:?} has spaces, which pkg-config does not take"));
    }
    Ok(template
        .replace("@prefix@", prefix)
        .replace("@libdir@", &install.libdir)
        .replace("@version@", env!("CARGO_PKG_VERSION"))
        .replace("@private@", private))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Writes a file in one step, so that programs that run with the old one keep it.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |e: std::io::Error| format!("cannot write {}: {e}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    fs::write(&new, bytes).map_err(failed)?;
    fs::rename(&new, path).map_err(failed)?;
    println!("installed {}", path.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    write(to, &fs::read(from).map_err(|e| format!("cannot read {}: {e}", from.display()))?)
}

/// Makes a link to a file beside it.
fn replace_link(file: &str, link: &Path) -> Result<()> {
    if fs::symlink_metadata(link).is_ok() {
        fs::remove_file(link).map_err(|e| format!("cannot remove {}: {e}", link.display()))?;
    }
    #[cfg(unix)]
    let made = std::os::unix::fs::symlink(file, link);
    #[cfg(not(unix))]
    let made = fs::copy(link.with_file_name(file), link).map(|_| ());
    made.map_err(|e| format!("cannot make {}: {e}", link.display()))?;
    println!("installed {}", link.display());
    Ok(())
}
