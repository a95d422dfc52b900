//! Reading an LMDB file without touching it.
//!
//! LMDB's own library maps the file and follows what stands in it without checks; a damaged file
//! would end the process. So this reads the file with reads, and believes nothing:
//!
//! 1. Every page, node, key and value is compared with what holds it before it is used.
//! 2. A walk ends, whatever the file says: depth and number of pages are those that the tree's
//!    description has, and so is the number of entries, or the file is damaged. Every page belongs
//!    to one place of one tree, so no more pages are read than the file has.
//! 3. What is read is the state after one transaction. LMDB's lock file is left alone (to take
//!    part in it would be to write it), so at the end the file is asked whether another
//!    transaction was committed meanwhile. If one was, pages may have been used again, and
//!    nothing that was read counts.
//!
//! LMDB keeps no checksums: damage inside a key or a value cannot be noticed by anybody.

mod format;

use crate::sink::Sink;
use crate::source::{ImportOptions, Source};
use crate::stream::KeyspaceInfo;
use crate::{Engine, Error, Result};
use esker::internals::base::codec::DecodeError;
use esker::internals::base::limits::VALUE_BYTES_MAX;
use format::{Held, META_BYTES, Meta, PAGE_HEAD, Page, Tree};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Leaves between two reports of how far reading has come.
const REPORT_LEAVES: u64 = 64;

/// A file that can be read.
pub(crate) struct Lmdb {
    path: PathBuf,
    file: File,
    meta: Meta,
    /// Bytes of the pages that reading has seen.
    seen: u64,
    /// Pages that were followed.
    pages: u64,
}

impl Lmdb {
    /// Reads the meta pages.
    pub fn open(path: &Path) -> Result<Self> {
        let inside = path.join("data.mdb");
        let path = if path.is_dir() { inside } else { path.to_owned() };
        let file = crate::foreign::open(&path).map_err(|error| failed("open", &path, error))?;
        let meta = newest(&path, &file)?;
        let lmdb = Self { path, file, meta, seen: 0, pages: 0 };
        let len = lmdb.file.metadata().map_err(|error| failed("look at", &lmdb.path, error))?.len();
        let needed = lmdb.meta.last_page.checked_add(1);
        let needed = needed.and_then(|pages| pages.checked_mul(lmdb.meta.page_bytes as u64));
        // The file may be longer, it grows ahead; pages beyond its end were never written.
        if needed.is_none_or(|needed| needed > len) {
            return Err(lmdb.damaged(0, "the file is shorter than its meta page says"));
        }
        Ok(lmdb)
    }

    fn damaged(&self, page: u64, what: impl std::fmt::Display) -> Error {
        let offset = page.saturating_mul(self.meta.page_bytes as u64);
        source(&self.path, format!("{what} at offset {offset}: get another copy"))
    }

    fn read_at(&self, offset: u64, len: usize, bytes: &mut Vec<u8>) -> Result<()> {
        read_at(&self.path, &self.file, offset, len, bytes)
    }

    /// Counts pages that are about to be read.
    fn follow(&mut self, pages: u64) -> Result<()> {
        self.pages = self.pages.saturating_add(pages);
        if self.pages > self.meta.last_page + 1 {
            return Err(self.damaged(0, "its trees refer to more pages than there are"));
        }
        Ok(())
    }

    /// Reads a page into `bytes`.
    fn page(&mut self, number: u64, bytes: &mut Vec<u8>) -> Result<()> {
        self.follow(1)?;
        if number > self.meta.last_page {
            return Err(self.damaged(0, format!("page {number} is referred to, beyond the last")));
        }
        let len = self.meta.page_bytes;
        self.read_at(number * len as u64, len, bytes)
    }

    /// Reads a value in pages of its own.
    fn far(&mut self, page: u64, len: usize, bytes: &mut Vec<u8>) -> Result<()> {
        if len as u64 > VALUE_BYTES_MAX {
            let what = format!("a value has {len} bytes, the limit is {VALUE_BYTES_MAX}");
            return Err(source(&self.path, what));
        }
        let needed = (PAGE_HEAD + len).div_ceil(self.meta.page_bytes) as u64;
        if page.checked_add(needed).is_none_or(|end| end > self.meta.last_page + 1) {
            return Err(self.damaged(0, "a large value reaches beyond the last page"));
        }
        self.follow(needed)?;
        let offset = page * self.meta.page_bytes as u64;
        self.read_at(offset, PAGE_HEAD, bytes)?;
        let pages = format::far_pages(bytes, page).map_err(|error| self.damaged(page, error))?;
        if pages < needed {
            return Err(self.damaged(page, "a large value is longer than its pages"));
        }
        self.read_at(offset + PAGE_HEAD as u64, len, bytes)
    }

    /// Hands over what stands in a tree, in order. `each` gets key and value, or, in a tree that
    /// may have them, the description of another.
    fn walk(&mut self, tree: &Tree, sink: &mut Sink, each: &mut Each<'_>) -> Result<()> {
        let (mut leaves, mut entries) = (0, 0);
        // The way from the root to the present page: pages, and which node comes next.
        let mut way: Vec<(u64, Vec<u8>, usize)> = Vec::new();
        let mut spare = Vec::new();
        let mut far = Vec::new();
        let mut next = tree.root;
        loop {
            if let Some(number) = next.take() {
                let mut bytes = spare.pop().unwrap_or_default();
                self.page(number, &mut bytes)?;
                way.push((number, bytes, 0));
            }
            let depth = way.len();
            let Some((number, bytes, at)) = way.last_mut() else { break };
            let number = *number;
            let wrong = |lmdb: &Self, error: DecodeError| lmdb.damaged(number, error);
            let page = Page::decode(bytes, number).map_err(|error| wrong(self, error))?;
            if page.is_leaf() != (depth == tree.depth) {
                return Err(
                    self.damaged(number, "a page stands at another depth than its tree has")
                );
            }
            if !page.is_leaf() {
                if *at < page.count() {
                    next = Some(page.child(*at).map_err(|error| wrong(self, error))?);
                    *at += 1;
                    continue;
                }
            } else {
                for index in 0..page.count() {
                    let (key, held) = page.entry(index).map_err(|error| wrong(self, error))?;
                    let found = match held {
                        Held::Value(value) => Found::Value(value),
                        Held::Tree(tree) => Found::Tree(tree),
                        Held::Several => Found::Several,
                        Held::Far { page, len } => {
                            self.far(page, len, &mut far)?;
                            self.seen += len as u64;
                            Found::Value(&far)
                        }
                    };
                    each(sink, key, found)?;
                }
                (leaves, entries) = (leaves + 1, entries + page.count() as u64);
                self.seen += self.meta.page_bytes as u64;
                if leaves > tree.leaves || entries > tree.entries {
                    return Err(self.damaged(number, "a tree has more pages than its description"));
                }
                if leaves % REPORT_LEAVES == 0 {
                    sink.read_bytes(self.seen);
                }
            }
            spare.extend(way.pop().map(|(_, bytes, _)| bytes));
        }
        if (leaves, entries) != (tree.leaves, tree.entries) {
            let page = tree.root.unwrap_or_default();
            return Err(self.damaged(page, "a tree has fewer entries than its description"));
        }
        Ok(())
    }

    fn in_byte_order(&self, tree: &Tree, named: &str) -> Result<()> {
        match tree.other_order() {
            None => Ok(()),
            Some(order) => Err(source(
                &self.path,
                format!(
                    "{named} keeps its keys in the order of {order}, not in that of their bytes: \
                     import it with a program that has this order as a comparator"
                ),
            )),
        }
    }
}

/// What is done with each key of a walk.
type Each<'a> = dyn FnMut(&mut Sink, &[u8], Found<'_>) -> Result<()> + 'a;

/// What a walk comes upon.
enum Found<'a> {
    Value(&'a [u8]),
    Tree(Tree),
    Several,
}

impl Source for Lmdb {
    fn total_bytes(&self) -> Option<u64> {
        Some((self.meta.last_page + 1).saturating_mul(self.meta.page_bytes as u64))
    }

    fn read(mut self: Box<Self>, options: &ImportOptions, sink: &mut Sink) -> Result<()> {
        // The tree of the database without a name holds the descriptions of those with names,
        // among its own entries.
        const MAIN: &str = "the database without a name";
        let main = self.meta.main.clone();
        self.in_byte_order(&main, MAIN)?;
        let mut named: Vec<(String, Tree)> = Vec::new();
        let mut begun = false;
        self.walk(&main, sink, &mut |sink, key, found| match found {
            Found::Value(value) => {
                if !begun {
                    begun = true;
                    sink.keyspace(KeyspaceInfo::named(&options.keyspace, None))?;
                }
                sink.ordered(MAIN, key, value)
            }
            Found::Tree(tree) => match std::str::from_utf8(key) {
                Ok(name) => {
                    named.push((name.to_owned(), tree));
                    Ok(())
                }
                Err(_) => {
                    let name = String::from_utf8_lossy(key).into_owned();
                    Err(sink.refuse(format!(
                        "the name of its database {name:?} is not UTF-8: rename it there"
                    )))
                }
            },
            Found::Several => Err(several(sink, MAIN)),
        })?;
        if named.is_empty() && !begun {
            sink.keyspace(KeyspaceInfo::named(&options.keyspace, None))?;
        }
        for (name, tree) in named {
            let what = format!("its database {name:?}");
            self.in_byte_order(&tree, &what)?;
            sink.keyspace(KeyspaceInfo::named(name, None))?;
            self.walk(&tree, sink, &mut |sink, key, found| match found {
                Found::Value(value) => sink.ordered(&what, key, value),
                Found::Several => Err(several(sink, &what)),
                Found::Tree(_) => {
                    Err(sink
                        .refuse(format!("{what} is damaged: it holds another: get another copy")))
                }
            })?;
        }
        if newest(&self.path, &self.file)? != self.meta {
            return Err(sink.refuse(
                "it was written to while it was read: end the program that has it open, and \
                 import into a new directory",
            ));
        }
        Ok(())
    }
}

fn several(sink: &Sink, named: &str) -> Error {
    sink.refuse(format!(
        "a key in {named} has several values (MDB_DUPSORT), a keyspace holds one of each: import \
         it with a program of your own that makes keys of them"
    ))
}

fn source(path: &Path, detail: impl Into<String>) -> Error {
    Error::Source { engine: Engine::Lmdb, path: path.to_owned(), detail: detail.into() }
}

fn failed(operation: &'static str, path: &Path, error: std::io::Error) -> Error {
    Error::io(operation, path.display().to_string(), error)
}

/// The newer one of the two meta pages.
fn newest(path: &Path, file: &File) -> Result<Meta> {
    let mut bytes = Vec::new();
    let mut meta = |offset: u64| {
        read_at(path, file, offset, META_BYTES, &mut bytes)?;
        Meta::decode(&bytes).map_err(|error| {
            source(path, format!("{error}: name the directory or data file of an LMDB database"))
        })
    };
    let first = meta(0)?;
    let second = meta(first.page_bytes as u64)?;
    if first.page_bytes != second.page_bytes {
        return Err(source(path, "its two meta pages do not agree: get another copy"));
    }
    Ok(if second.transaction > first.transaction { second } else { first })
}

fn read_at(path: &Path, file: &File, offset: u64, len: usize, bytes: &mut Vec<u8>) -> Result<()> {
    bytes.clear();
    let mut file = file;
    let read = file
        .seek(SeekFrom::Start(offset))
        .and_then(|_| file.take(len as u64).read_to_end(bytes))
        .map_err(|error| failed("read", path, error))?;
    if read == len {
        return Ok(());
    }
    Err(source(path, format!("the file ends at offset {}: get another copy", offset + read as u64)))
}
