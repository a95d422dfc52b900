//! The least that a program does with Esker: open, insert, get, scan.

use esker::Db;

fn main() -> esker::Result<()> {
    let db = Db::open(std::env::args_os().nth(1).unwrap_or_else(|| "data".into()))?;
    for key in ["a", "b", "c", "d"] {
        db.insert(key, key.to_uppercase())?;
    }
    println!("{:?}", db.get("b")?);
    for entry in db.range("a"..)?.take(3) {
        let (key, value) = entry?;
        println!("{key:?} {value:?}");
    }
    db.close()
}
