//! The least that a program does with redb: open, insert, get, scan.

use redb::{Database, ReadableDatabase, TableDefinition};

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("default");

fn main() -> Result<(), redb::Error> {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| "data".into());
    std::fs::create_dir_all(&path)?;
    let db = Database::create(std::path::Path::new(&path).join("data.redb"))?;
    let writing = db.begin_write()?;
    {
        let mut table = writing.open_table(TABLE)?;
        for key in ["a", "b", "c", "d"] {
            table.insert(key.as_bytes(), key.to_uppercase().as_bytes())?;
        }
    }
    writing.commit()?;
    let reading = db.begin_read()?;
    let table = reading.open_table(TABLE)?;
    println!("{:?}", table.get(b"b".as_slice())?.map(|value| value.value().to_vec()));
    for entry in table.range::<&[u8]>(b"a".as_slice()..)?.take(3) {
        let (key, value) = entry?;
        println!("{:?} {:?}", key.value(), value.value());
    }
    Ok(())
}
