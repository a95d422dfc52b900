//! The first program of the README.

use esker::{Batch, Db};

pub(crate) fn main() -> esker::Result<()> {
    let db = Db::open("my-database")?;

    db.insert("hello", "world")?;
    assert_eq!(db.get("hello")?, Some(b"world".to_vec()));

    // Keyspaces are maps of their own; a batch over several is atomic.
    let (users, log) = (db.keyspace("users")?, db.keyspace("log")?);
    let mut batch = Batch::new();
    batch.insert(&users, "ann", "engineer");
    batch.insert(&users, "bob", "baker");
    batch.insert(&log, "1", "two people came");
    db.write(batch)?;

    // A snapshot stays as it is, whatever is written later.
    let before = db.snapshot()?;
    users.remove("bob")?;
    assert!(before.contains_key(&users, "bob")?);

    for entry in users.range("a"..)? {
        let (key, value) = entry?;
        println!("{} is a {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
    }

    db.close()
}
