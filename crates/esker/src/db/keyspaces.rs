//! Making, finding and dropping keyspaces.

use crate::base::{Comparator, Millis};
use crate::catalog::{
    Asked, BranchState, Catalog, DEFAULT_KEYSPACE, DEFAULT_KEYSPACE_ID, KeyspaceState, check_asked,
    check_name, check_order, wanted_traits,
};
use crate::commit::Class;
use crate::db::core::Core;
use crate::error::{Error, Result};
use crate::events::EventKind;
use crate::manifest::Traits;
use crate::wal::ops::Op;
use std::sync::Arc;

/// The bytes that pacing counts for a change of a keyspace, which is its record in the log.
const CHANGE_BYTES: u64 = 64;

impl Core {
    /// The keyspace of this name; it is created if it is missing. If `comparator` is given, the
    /// keyspace must have it.
    pub fn keyspace(
        &self,
        name: &str,
        comparator: Option<Arc<dyn Comparator>>,
    ) -> Result<Arc<KeyspaceState>> {
        self.keyspace_in(&BranchState::main(), name, comparator, &Asked::default())
    }

    /// The keyspace that always exists. It is returned even if its merge operator is not known:
    /// reading an operand fails then.
    pub fn default_keyspace(&self, branch: &BranchState) -> Result<Arc<KeyspaceState>> {
        self.check_open()?;
        let catalog = self.catalog.lock();
        branch.check()?;
        catalog.by_name(branch.id, DEFAULT_KEYSPACE).cloned().ok_or(Error::Closed)
    }

    /// The keyspace of this name in a branch, with traits.
    pub fn keyspace_in(
        &self,
        branch: &BranchState,
        name: &str,
        comparator: Option<Arc<dyn Comparator>>,
        traits: &Asked,
    ) -> Result<Arc<KeyspaceState>> {
        self.check_open()?;
        check_name("name of the keyspace", name)?;
        let asked = comparator.as_ref().map(|comparator| comparator.name().to_owned());
        if let Some(asked) = &asked {
            check_name("name of the comparator", asked)?;
        }
        let changes = traits.changes() || self.catalog.lock().by_name(branch.id, name).is_none();
        if changes {
            self.admit_change()?;
        }
        if let Some(comparator) = comparator {
            let usable = self.catalog.lock().register(comparator);
            self.work.comparator_arrived(&usable);
        }
        let found = self.with_way(|| {
            // The lock is held for one attempt only: flushes, which free space, need it.
            let mut catalog = self.catalog.lock();
            check_asked(&catalog, name, traits)?;
            branch.check()?;
            self.find_or_make(&mut catalog, branch, name, asked.as_deref(), traits)
        });
        self.look_at_log();
        found
    }

    /// Waits as writers do (`admission.rs`), for a call that is about to log a change. The caller
    /// must not hold the catalog, which flushes need.
    fn admit_change(&self) -> Result<()> {
        if self.pacer.is_open() || self.pipeline.is_none() {
            return Ok(());
        }
        // The keyspace may exist already, and a change takes little space in the log.
        self.wait_for_admission(CHANGE_BYTES, true, true)
    }

    /// Seals the memtables when the log has become long. The size of the memtables may not show
    /// that: changes of keyspaces are only in the log. The caller must not hold the catalog.
    fn look_at_log(&self) {
        if let Some(pipeline) = &self.pipeline
            && self.state_now().active().is_full(pipeline.reserved())
        {
            self.look_at_memtable(pipeline);
        }
    }

    fn find_or_make(
        &self,
        catalog: &mut Catalog,
        branch: &BranchState,
        name: &str,
        asked: Option<&str>,
        traits: &Asked,
    ) -> Result<Arc<KeyspaceState>> {
        if let Some(state) = catalog.by_name(branch.id, name) {
            let state = check_order(state, asked)?;
            let wanted = wanted_traits(&state, traits)?;
            self.set_traits_in(catalog, &state, wanted)?;
            return Ok(state);
        }
        let pipeline = self.pipeline.as_ref().ok_or(Error::ReadOnly)?;
        branch.check_writable()?;
        catalog.check_room(1)?;
        let id = catalog.next_id();
        let comparator = asked.unwrap_or_default();
        let mut payload = Vec::new();
        let mut operations = 1;
        if branch.id != DEFAULT_KEYSPACE_ID {
            Op::InBranch { keyspace: id, branch: branch.id }.encode(&mut payload);
            operations += 1;
        }
        Op::CreateKeyspace { keyspace: id, name, comparator }.encode(&mut payload);
        let wanted = Traits {
            operator: traits.operator.clone().unwrap_or_default(),
            filter: traits.filter.clone().unwrap_or_default(),
            ttl: traits.ttl.unwrap_or_default(),
        };
        let plain = wanted == Traits::default();
        if !plain {
            wanted.set_op(id).encode(&mut payload);
        }
        let mut made = None;
        // No other thread can create a keyspace meanwhile: the catalog is locked.
        pipeline.write(
            &payload,
            operations + u32::from(!plain),
            Class::Process,
            |_| Ok(()),
            |(), seq| {
                catalog.place(id, branch.id);
                let seq = seq + u64::from(operations - 1);
                made = Some(catalog.create(id, name, comparator, seq));
                if !plain {
                    catalog.set_traits(id, wanted, seq + 1);
                }
                Ok(())
            },
        )?;
        self.monitor.emit(EventKind::KeyspaceCreated { keyspace: name.to_owned() });
        made.ok_or(Error::Closed)
    }

    /// Gives a keyspace other traits, whether their code is known or not.
    pub fn set_traits(&self, state: &Arc<KeyspaceState>, traits: Traits) -> Result<()> {
        self.check_open()?;
        self.admit_change()?;
        let set =
            self.with_way(|| self.set_traits_in(&mut self.catalog.lock(), state, traits.clone()));
        self.look_at_log();
        set
    }

    /// Sets the time to live of later writes to a keyspace; 0: for ever.
    pub fn set_ttl(&self, state: &Arc<KeyspaceState>, ttl: Millis) -> Result<()> {
        self.check_open()?;
        self.admit_change()?;
        let set = self.with_way(|| {
            let mut catalog = self.catalog.lock();
            let traits = Traits { ttl, ..state.traits().names.clone() };
            self.set_traits_in(&mut catalog, state, traits)
        });
        self.look_at_log();
        set
    }

    fn set_traits_in(
        &self,
        catalog: &mut Catalog,
        state: &Arc<KeyspaceState>,
        traits: Traits,
    ) -> Result<()> {
        if state.traits().names == traits {
            return Ok(());
        }
        if state.frozen_at.is_some() {
            return Err(Error::ReadOnly);
        }
        let pipeline = self.pipeline.as_ref().ok_or(Error::ReadOnly)?;
        let mut payload = Vec::new();
        traits.set_op(state.id).encode(&mut payload);
        let check = |seq| {
            if state.dropped_before(seq) { Err(state.dropped_error()) } else { Ok(()) }
        };
        if state.is_dropped() {
            return Err(state.dropped_error());
        }
        let written = pipeline.write(&payload, 1, Class::Process, check, |(), seq| {
            catalog.set_traits(state.id, traits, seq);
            Ok(())
        });
        written.map(|_| ())
    }

    /// Names of all keyspaces of a branch, in order.
    pub fn keyspace_names(&self, branch: &BranchState) -> Result<Vec<String>> {
        self.check_open()?;
        let catalog = self.catalog.lock();
        branch.check()?;
        Ok(catalog.names(branch.id))
    }

    /// Drops a keyspace; returns whether it existed. The background frees its space.
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.drop_keyspace_in(&BranchState::main(), name)
    }

    /// Drops a keyspace of a branch.
    pub fn drop_keyspace_in(&self, branch: &BranchState, name: &str) -> Result<bool> {
        self.writable()?;
        if name == DEFAULT_KEYSPACE {
            let what = "the keyspace \"default\" is always there: remove its range instead";
            return Err(Error::invalid(what));
        }
        // The catalog is not locked during the search for space: flushes need it.
        let dropped = self.with_way(|| self.drop_once(branch, name))?;
        if dropped && self.reserve.is_tight() {
            self.work.ask_relief(false);
        }
        self.work.notify();
        Ok(dropped)
    }

    fn drop_once(&self, branch: &BranchState, name: &str) -> Result<bool> {
        let pipeline = self.writable()?;
        let mut catalog = self.catalog.lock();
        branch.check_writable()?;
        let Some(state) = catalog.by_name(branch.id, name).cloned() else { return Ok(false) };
        // A write that reserves after this position sees the mark and fails (R16).
        pipeline.seal(|position| state.mark_dropped(position));
        let mut payload = Vec::new();
        Op::DropKeyspace { keyspace: state.id }.encode(&mut payload);
        let apply = |(): &(), seq| {
            catalog.drop_keyspace(state.id, seq);
            Ok(())
        };
        let written = pipeline.write(&payload, 1, Class::Process, |_| Ok(()), apply);
        written.inspect_err(|_| state.unmark_dropped())?;
        self.monitor.emit(EventKind::KeyspaceDropped { keyspace: name.to_owned() });
        Ok(true)
    }
}
