//! Sequences of calls of the C interface, with wrong ones among them, against a model.

#![no_main]

#[path = "../../crates/esker-ffi/tests/support/calls.rs"]
mod calls;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // Longer sequences find nothing that several short ones do not.
    let input = &input[..input.len().min(4096)];
    let directory = tempfile::tempdir().expect("a directory for the databases");
    calls::run(input, directory.path());
});
