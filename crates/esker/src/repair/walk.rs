//! The way through a damaged database, the same for a plan and for a salvage.
//!
//! The trees come first, then the segments that a damaged description does not know, then the log.
//! Everything that can be saved goes to the sink in this order.

use super::covers::Cover;
use super::log::replay;
use super::merge::{Input, Merge};
use super::report::{Kept, Plan, State};
use super::sink::Sink;
use super::source::{self, Source};
use super::state::{Saver, SpaceOrder, Walk};
use crate::base::Bytewise;
use crate::error::{Error, IoContext, Result};
use crate::options::Options;
use crate::run::{DamagedFile, SegmentKind, SegmentMeta, parse_run_name};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Walks through the database at `path` and gives everything that can be saved to `sink`.
pub(super) fn run<S: Sink>(path: &Path, options: &Options, sink: &mut S) -> Result<Plan> {
    let mut plan = Plan::default();
    let source = source::read(&options.fs, path, &mut plan)?;
    let mut walk = Walk::new(path, options, sink, plan);
    walk.trees(&source)?;
    if !source.whole {
        walk.strays(&source)?;
    }
    replay(&mut walk, path, &source)?;
    walk.check_orders()?;
    walk.plan.find_refusals(source.refusals)?;
    Ok(walk.plan)
}

impl<S: Sink> Walk<'_, S> {
    /// Saves segments that a damaged description does not name, although it may have named them.
    fn strays(&mut self, source: &Source) -> Result<()> {
        let known: HashSet<_> = source.version.segments().map(|s| s.meta().place()).collect();
        let entries = match self.fs().list(&self.data).context("list", &self.data) {
            Ok(entries) => entries,
            Err(error) => return self.plan.find_error(State::Lost, error),
        };
        let (mut bytewise, mut custom) = (Vec::new(), Vec::new());
        for entry in entries {
            let Some(id) = parse_run_name(&entry.name).filter(|_| !entry.is_dir()) else {
                continue;
            };
            let file = match DamagedFile::open(self.fs(), &self.data, id) {
                Ok(file) => file,
                Err(error) => {
                    self.plan.find_error(State::Lost, error)?;
                    continue;
                }
            };
            // A value without the segment that refers to it may have been replaced long ago.
            let strays = file.segments().into_iter().filter(|meta| {
                meta.kind != SegmentKind::Values && !known.contains(&(id, meta.offset))
            });
            for meta in strays {
                if meta.bytewise { bytewise.push(meta) } else { custom.push(meta) }
            }
        }
        self.save_strays("recovered", bytewise, true)?;
        self.save_strays("recovered-ordered", custom, false)
    }

    fn save_strays(&mut self, name: &str, metas: Vec<SegmentMeta>, sorted: bool) -> Result<()> {
        if metas.is_empty() {
            return Ok(());
        }
        let name = self.free_name(name);
        let text = format!(
            "{} segments that no readable manifest names are saved in keyspace {name:?}: their \
             keyspaces are not known, and some may hold what was replaced or removed since",
            metas.len()
        );
        self.plan.find(State::Note, None, text);
        self.names.insert(name.clone());
        let number = self.sink.keyspace(&name, None)?;
        let mut kept = Kept { keyspace: name, ..Kept::default() };
        let (data, lists): (Vec<_>, Vec<_>) =
            metas.into_iter().partition(|meta| meta.kind == SegmentKind::Data);
        let mut inputs: Vec<Input> = data.into_iter().map(|meta| Input { rank: 0, meta }).collect();
        if sorted {
            let mut covers = Vec::new();
            for meta in &lists {
                let fragments = self.tombstones(&Bytewise, meta, &mut kept);
                covers.extend(fragments.map(|fragments| Cover { rank: 0, fragments }));
            }
            let saver = &mut Saver { walk: self, number, kept: &mut kept };
            let mut merge = Merge::new(&Bytewise, HashMap::new());
            merge.partition(inputs, covers, (None, None), saver)?;
        } else {
            // Without the comparator the segments cannot be merged; the newest is written last.
            inputs.sort_by_key(|input| (input.meta.max_seq, input.meta.file, input.meta.offset));
            for input in inputs {
                let saver = &mut Saver { walk: self, number, kept: &mut kept };
                let mut merge = Merge::new(&Bytewise, HashMap::new());
                merge.partition(vec![input], Vec::new(), (None, None), saver)?;
            }
        }
        self.plan.keyspaces.push(kept);
        Ok(())
    }

    fn check_orders(&self) -> Result<()> {
        for space in self.spaces.values() {
            if let SpaceOrder::Custom(order, _) = &space.order
                && order.panicked()
            {
                let what = format!("the comparator {:?}", order.name());
                return Err(Error::UserCodePanicked { what });
            }
        }
        Ok(())
    }
}
