//! Gives the shared library the name under which programs ask for it when they start.

/// Programs that were linked with this number run with every later library of the same number. It
/// goes up when a function is taken away or changes its arguments.
const INTERFACE: u32 = 0;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos" | "ios") => {
            let name = format!("@rpath/libesker.{INTERFACE}.dylib");
            println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,{name}");
        }
        // Windows knows no such names, and asks for esker.dll.
        Ok("windows") | Err(_) => {}
        Ok(_) => println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libesker.so.{INTERFACE}"),
    }
}
