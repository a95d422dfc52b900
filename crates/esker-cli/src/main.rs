//! The `esker` program.

fn main() {}
