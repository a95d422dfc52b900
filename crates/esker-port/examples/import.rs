//! Brings over a LevelDB directory whose keys have an order of their own: `import OLD NEW`.

use esker_port::{Engine, Import, ImportOptions, Quiet};
use std::path::Path;
use std::sync::Arc;

/// The comparator that the LevelDB directory was made with, under its name there.
struct Reverse;

impl esker::Comparator for Reverse {
    fn name(&self) -> &str {
        "reverse"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        b.cmp(a)
    }
}

/// Makes `new` of the LevelDB directory `old`.
pub fn import(old: &Path, new: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut options = ImportOptions::default();
    options.comparators = vec![Arc::new(Reverse)];
    options.keyspace = "backwards".into();
    let import = Import::open(Engine::LevelDb, old, options)?;

    let db = esker::Db::open(new)?;
    let done = import.run(&db, &mut Quiet)?;
    println!("{} entries, checksum {:016x}", done.entries, done.content);
    db.close()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [old, new] = [1, 2].map(|at| std::env::args_os().nth(at).unwrap_or_default());
    import(old.as_ref(), new.as_ref())
}
