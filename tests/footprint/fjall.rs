//! The least that a program does with fjall: open, insert, get, scan.

use fjall::{Database, KeyspaceCreateOptions};

fn main() -> fjall::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "data".into());
    let db = Database::builder(path).open()?;
    let keyspace = db.keyspace("default", KeyspaceCreateOptions::default)?;
    for key in ["a", "b", "c", "d"] {
        keyspace.insert(key, key.to_uppercase())?;
    }
    println!("{:?}", keyspace.get("b")?);
    for entry in keyspace.range("a"..).take(3) {
        let (key, value) = entry.into_inner()?;
        println!("{key:?} {value:?}");
    }
    Ok(())
}
