//! The keyspaces: names, numbers, orders.
//!
//! 1. Creating and dropping a keyspace are operations in the log, in sequence order with the writes
//!    around them. The flush that covers them records them in the manifest.
//! 2. A number is never given out twice (R16).
//! 4. Each keyspace belongs to a branch (`branches`); names are unique within one. The
//!    database itself is branch 0. A branch's number is that of its keyspace `default`.
//! 3. A write sequenced after the drop of its keyspace fails: the drop sets `dropped_at` while
//!    reservation is closed, and every writer compares it with its own sequence number after
//!    reservation.

use crate::base::{
    CompactionFilter, Comparator, CustomOrder, Filter, KeyspaceId, MergeOperator, Millis, Moment,
    Operator, SEQ_MAX, Seq, builtin,
};
use crate::error::{Error, Result};
use crate::manifest::{BranchKind, Home, KeyspaceRecord, Traits};
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

mod asked;
mod branches;
mod dropped;
mod orders;

pub use asked::{Asked, check_asked, check_key, check_name, check_order, wanted_traits};
pub use branches::BranchState;
pub use orders::orders_of;

/// The name of the keyspace that is always there.
pub const DEFAULT_KEYSPACE: &str = "default";
/// The number of the keyspace that is always there.
pub const DEFAULT_KEYSPACE_ID: KeyspaceId = 0;

/// The order of a keyspace, selected at run time once per call.
#[derive(Debug, Clone)]
pub enum Order {
    /// Byte order.
    Bytewise,
    /// A custom comparator.
    Custom(CustomOrder),
    /// A custom comparator that was not given at open: nothing can be read or written (R15).
    Missing(String),
}

/// The traits of a keyspace, which may change during its life, with the code that they name.
#[derive(Debug)]
pub struct LiveTraits {
    /// The names of the code, and the time to live, as the manifest stores them.
    pub names: Traits,
    /// The merge operator.
    pub operator: Arc<Operator>,
    /// The compaction filter, if it is given.
    pub filter: Option<Filter>,
}

/// A keyspace of an open database.
#[derive(Debug)]
pub struct KeyspaceState {
    /// Its number.
    pub id: KeyspaceId,
    /// Its name.
    pub name: String,
    /// Its order.
    pub order: Order,
    /// Its branch, and the numbers under which its entries are stored.
    pub home: Home,
    /// For a named snapshot, when it was made (milliseconds since 1970): nothing can be written.
    pub frozen_at: Option<Millis>,
    dropped_at: AtomicU64,
    traits: RwLock<Arc<LiveTraits>>,
    /// A copy of the time to live, for writers; 0: for ever.
    ttl: AtomicU64,
    /// A copy, for writers, of whether there is a merge operator.
    merges: AtomicBool,
}

/// The error of an edit that is refused because the keyspace's comparator is missing.
pub fn missing_order(name: &str, comparator: &str) -> Error {
    Error::ComparatorMissing { keyspace: name.to_owned(), comparator: comparator.to_owned() }
}

impl KeyspaceState {
    /// The error of an access to its keys, if its comparator is missing.
    pub fn missing_comparator(&self) -> Option<Error> {
        match &self.order {
            Order::Missing(name) => Some(missing_order(&self.name, name)),
            _ => None,
        }
    }

    /// The moment at which it is read: a named snapshot is always read at its own time.
    #[inline]
    pub fn moment(&self, at: Option<Moment>) -> Option<Moment> {
        match self.frozen_at {
            None => at,
            Some(time) => Some(Moment { seq: at.map_or(SEQ_MAX, |at| at.seq), time }),
        }
    }

    /// The number under which its entries are stored in memtables that begin at `start`.
    #[inline]
    pub fn id_in(&self, start: Seq) -> KeyspaceId {
        self.home.id_at(self.id, start)
    }

    /// Whether the drop of the keyspace precedes a write or read at `seq`.
    #[inline]
    pub fn dropped_before(&self, seq: Seq) -> bool {
        self.dropped_at.load(Ordering::Acquire) <= seq
    }

    /// Whether it has a custom comparator.
    #[inline]
    pub fn has_custom_comparator(&self) -> bool {
        !matches!(self.order, Order::Bytewise)
    }

    /// Whether it was dropped, by a write that may still be under way.
    #[inline]
    pub fn is_dropped(&self) -> bool {
        self.dropped_at.load(Ordering::Acquire) != u64::MAX
    }

    /// Where it was dropped, if it was.
    pub fn dropped_at(&self) -> Option<Seq> {
        Some(self.dropped_at.load(Ordering::Acquire)).filter(|seq| *seq != u64::MAX)
    }

    /// Records the drop; the first recorded position counts.
    pub fn mark_dropped(&self, seq: Seq) {
        self.dropped_at.fetch_min(seq, Ordering::AcqRel);
    }

    /// Removes the record of a drop that could not be logged.
    pub fn unmark_dropped(&self) {
        self.dropped_at.store(u64::MAX, Ordering::Release);
    }

    /// Its present traits.
    pub fn traits(&self) -> Arc<LiveTraits> {
        self.traits.read().clone()
    }

    /// Its present merge operator.
    pub fn operator(&self) -> Arc<Operator> {
        self.traits.read().operator.clone()
    }

    /// The time to live of writes that do not give one; 0: for ever.
    #[inline]
    pub fn ttl(&self) -> Millis {
        self.ttl.load(Ordering::Acquire)
    }

    /// Whether it has a merge operator.
    #[inline]
    pub fn merges(&self) -> bool {
        self.merges.load(Ordering::Acquire)
    }

    /// The same keyspace with the comparator that it lacked; everything else stays.
    fn with_order(&self, order: Order) -> Self {
        Self {
            id: self.id,
            name: self.name.clone(),
            order,
            home: self.home.clone(),
            frozen_at: self.frozen_at,
            dropped_at: AtomicU64::new(self.dropped_at.load(Ordering::Acquire)),
            traits: RwLock::new(self.traits()),
            ttl: AtomicU64::new(self.ttl()),
            merges: AtomicBool::new(self.merges()),
        }
    }

    fn replace_traits(&self, traits: Arc<LiveTraits>) {
        let mut present = self.traits.write();
        self.merges.store(!traits.names.operator.is_empty(), Ordering::Release);
        self.ttl.store(traits.names.ttl, Ordering::Release);
        *present = traits;
    }

    /// The name of its comparator, as it is stored.
    pub fn comparator_name(&self) -> Option<&str> {
        match &self.order {
            Order::Bytewise => None,
            Order::Custom(order) => Some(order.name()),
            Order::Missing(name) => Some(name),
        }
    }

    fn record(&self) -> KeyspaceRecord {
        KeyspaceRecord {
            id: self.id,
            name: self.name.clone(),
            comparator: self.comparator_name().map(str::to_owned),
        }
    }
}

/// A change that the manifest does not record yet.
#[derive(Debug, Clone)]
enum Change {
    Created(Arc<KeyspaceState>),
    Dropped(KeyspaceId),
    Traits(KeyspaceId, Traits),
}

/// All keyspaces.
pub struct Catalog {
    /// By branch and name.
    by_name: BTreeMap<KeyspaceId, BTreeMap<String, Arc<KeyspaceState>>>,
    by_id: HashMap<KeyspaceId, Arc<KeyspaceState>>,
    branches: BTreeMap<KeyspaceId, Arc<BranchState>>,
    /// Homes of keyspaces, known before the keyspaces themselves.
    homes: HashMap<KeyspaceId, Home>,
    /// The copies of each keyspace, and copies of those: they may read the entries under its
    /// number.
    heirs: HashMap<KeyspaceId, Vec<KeyspaceId>>,
    next_id: KeyspaceId,
    pending: Vec<(Seq, Change)>,
    comparators: Vec<Arc<dyn Comparator>>,
    /// With their names, so that a search for traits runs no user code.
    operators: Vec<(String, Arc<dyn MergeOperator>)>,
    filters: Vec<(String, Filter)>,
    /// Traits that the manifest records; other keyspaces have the default traits.
    durable_traits: HashMap<KeyspaceId, Traits>,
}

impl Catalog {
    /// A catalog that knows these comparators and the default keyspace.
    pub fn new(comparators: Vec<Arc<dyn Comparator>>) -> Self {
        let mut catalog = Self {
            by_name: BTreeMap::new(),
            by_id: HashMap::new(),
            branches: BTreeMap::new(),
            homes: HashMap::new(),
            heirs: HashMap::new(),
            next_id: DEFAULT_KEYSPACE_ID + 1,
            pending: Vec::new(),
            comparators,
            operators: Vec::new(),
            filters: Vec::new(),
            durable_traits: HashMap::new(),
        };
        catalog.insert(DEFAULT_KEYSPACE_ID, DEFAULT_KEYSPACE, "");
        catalog
    }

    /// The catalog, before any keyspace is added, with merge operators and compaction filters.
    #[must_use]
    pub fn with_code(
        mut self,
        operators: Vec<Arc<dyn MergeOperator>>,
        filters: &[Arc<dyn CompactionFilter>],
    ) -> Self {
        let named = |code: Arc<dyn MergeOperator>| (code.name().to_owned(), code);
        self.operators = operators.into_iter().map(named).collect();
        let named =
            |code: &Arc<dyn CompactionFilter>| (code.name().to_owned(), Filter::new(code.clone()));
        self.filters = filters.iter().map(named).collect();
        self
    }

    /// Whether there is a merge operator of this name.
    pub fn knows_operator(&self, name: &str) -> bool {
        self.operators.iter().any(|(known, _)| known == name) || builtin(name).is_some()
    }

    /// Whether there is a compaction filter of this name.
    pub fn knows_filter(&self, name: &str) -> bool {
        self.filters.iter().any(|(known, _)| known == name)
    }

    /// Traits with the code that they name, as far as it is given.
    fn live_traits(&self, keyspace: &str, names: Traits) -> Arc<LiveTraits> {
        let given = self.operators.iter().find(|(known, _)| *known == names.operator);
        let code = given.map(|(_, code)| code.clone()).or_else(|| builtin(&names.operator));
        let operator = Arc::new(Operator::new(keyspace, &names.operator, code));
        let filter = self.filters.iter().find(|(known, _)| *known == names.filter);
        let filter = filter.map(|(_, filter)| filter.clone());
        Arc::new(LiveTraits { names, operator, filter })
    }

    fn insert(&mut self, id: KeyspaceId, name: &str, comparator: &str) -> Arc<KeyspaceState> {
        // A keyspace that is already known only gets its comparator.
        let known = self.by_id.get(&id).map(|known| known.traits());
        let traits = known.unwrap_or_else(|| self.live_traits(name, Traits::default()));
        let given = self.comparators.iter().find(|known| known.name() == comparator);
        let order = match given {
            _ if comparator.is_empty() => Order::Bytewise,
            Some(known) => Order::Custom(CustomOrder::new(known.clone())),
            None => Order::Missing(comparator.to_owned()),
        };
        let dropped_at = AtomicU64::new(u64::MAX);
        let ttl = AtomicU64::new(traits.names.ttl);
        let merges = AtomicBool::new(!traits.names.operator.is_empty());
        let (name, key) = (name.to_owned(), name.to_owned());
        let traits = RwLock::new(traits);
        let home = self.homes.get(&id).cloned().unwrap_or_default();
        let branch = self.branches.get(&home.branch);
        let frozen = branch.filter(|branch| branch.kind == BranchKind::Snapshot);
        let frozen_at = frozen.map(|branch| branch.made_at);
        let names = self.by_name.entry(home.branch).or_default();
        let state = Arc::new(KeyspaceState {
            id,
            name,
            order,
            home,
            frozen_at,
            dropped_at,
            traits,
            ttl,
            merges,
        });
        names.insert(key, state.clone());
        self.by_id.insert(id, state.clone());
        for (_, original) in &state.home.older {
            let heirs = self.heirs.entry(*original).or_default();
            if !heirs.contains(&id) {
                heirs.push(id);
            }
        }
        self.next_id = self.next_id.max(id.saturating_add(1));
        state
    }

    /// The keyspaces whose compaction filter the program did not give, each with the filter's name.
    pub fn missing_filters(&self) -> Vec<(String, String)> {
        let missing = self.durable_traits.iter().filter_map(|(id, traits)| {
            let keyspace = self.by_id.get(id)?.name.to_string();
            let is_missing = !traits.filter.is_empty() && !self.knows_filter(&traits.filter);
            is_missing.then(|| (keyspace, traits.filter.to_string()))
        });
        let mut missing: Vec<_> = missing.collect();
        missing.sort();
        missing
    }

    /// Adds a keyspace from the manifest.
    pub fn load(&mut self, record: &KeyspaceRecord) {
        self.insert(record.id, &record.name, record.comparator.as_deref().unwrap_or_default());
    }

    /// Sets traits from the manifest; false: there is no such keyspace.
    pub fn load_traits(&mut self, id: KeyspaceId, traits: &Traits) -> bool {
        let Some(state) = self.by_id.get(&id) else { return false };
        if !traits.filter.is_empty() && !self.knows_filter(&traits.filter) {
            let (keyspace, name) = (&state.name, &traits.filter);
            log::warn!("keyspace {keyspace:?} has compaction filter {name:?}, which is not given");
        }
        state.replace_traits(self.live_traits(&state.name, traits.clone()));
        self.durable_traits.insert(id, traits.clone());
        true
    }

    /// Removes a keyspace that the manifest says is dropped.
    pub fn unload(&mut self, id: KeyspaceId) {
        self.durable_traits.remove(&id);
        if let Some(state) = self.by_id.remove(&id) {
            self.forget_name(&state);
            self.forget_home(&state);
        }
    }

    /// Makes numbers below `next` unavailable.
    pub fn raise_next_id(&mut self, next: KeyspaceId) {
        self.next_id = self.next_id.max(next);
    }

    /// How many keyspaces there are, in all branches.
    pub fn count(&self) -> u64 {
        self.by_id.len() as u64
    }

    /// The number that the next keyspace will have.
    pub fn next_id(&self) -> KeyspaceId {
        self.next_id
    }

    /// Adds a comparator after open. Returns the keyspaces that lacked it and are usable from now
    /// on.
    pub fn register(&mut self, comparator: Arc<dyn Comparator>) -> Vec<KeyspaceId> {
        let name = comparator.name().to_owned();
        if self.comparators.iter().any(|known| known.name() == name) {
            return Vec::new();
        }
        self.comparators.push(comparator.clone());
        let lacking = |state: &&Arc<KeyspaceState>| matches!(&state.order, Order::Missing(missing) if *missing == name);
        let waiting: Vec<_> = self.by_id.values().filter(lacking).cloned().collect();
        for state in &waiting {
            let order = Order::Custom(CustomOrder::new(comparator.clone()));
            let state = Arc::new(state.with_order(order));
            // A dropped keyspace stays dropped; its name is free or belongs to another keyspace
            // (R16).
            let names = self.by_name.get_mut(&state.home.branch);
            let named = names.and_then(|names| names.get_mut(&state.name));
            if let Some(named) = named.filter(|named| named.id == state.id) {
                *named = state.clone();
            }
            self.by_id.insert(state.id, state.clone());
            // Seeded: a dropped keyspace comes back when its comparator is registered.
            bug!("catalog_late_comparator_revives", self.insert(state.id, &state.name, &name));
        }
        waiting.iter().map(|state| state.id).collect()
    }

    /// Those of these keyspaces whose comparator is known.
    pub fn with_known_order(&self, ids: impl Iterator<Item = KeyspaceId>) -> Vec<KeyspaceId> {
        let known = |id: &KeyspaceId| {
            self.by_id.get(id).is_some_and(|state| !matches!(state.order, Order::Missing(_)))
        };
        ids.filter(known).collect()
    }

    /// Whether changes before `seq` wait for the flush that records them in the manifest.
    pub fn has_pending_before(&self, seq: Seq) -> bool {
        self.pending.iter().any(|(at, _)| *at < seq)
    }

    /// Whether changes wait for the flush that records them in the manifest.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether drops wait for the flush that records them in the manifest.
    pub fn has_pending_drops(&self) -> bool {
        self.pending.iter().any(|(_, change)| matches!(change, Change::Dropped(_)))
    }

    /// Records that a keyspace was created at `seq`.
    pub fn create(
        &mut self,
        id: KeyspaceId,
        name: &str,
        comparator: &str,
        seq: Seq,
    ) -> Arc<KeyspaceState> {
        let state = self.insert(id, name, comparator);
        self.pending.push((seq, Change::Created(state.clone())));
        state
    }

    /// Records that a keyspace got other traits at `seq`. Does nothing for an unknown keyspace.
    pub fn set_traits(&mut self, id: KeyspaceId, traits: Traits, seq: Seq) {
        let Some(state) = self.by_id.get(&id).filter(|state| state.dropped_at().is_none()) else {
            return;
        };
        state.replace_traits(self.live_traits(&state.name, traits.clone()));
        self.pending.push((seq, Change::Traits(id, traits)));
    }

    /// Records that a keyspace was dropped at `seq`. Its handles see the drop; its name is free
    /// again.
    pub fn drop_keyspace(&mut self, id: KeyspaceId, seq: Seq) {
        if let Some(state) = self.by_id.get(&id).cloned() {
            state.mark_dropped(seq);
            // Seeded: a dropped keyspace keeps its name.
            bug!(
                "catalog_dropped_name_stays",
                return self.pending.push((seq, Change::Dropped(id)))
            );
            self.forget_name(&state);
            self.pending.push((seq, Change::Dropped(id)));
        }
    }

    /// Frees the name of a dropped keyspace, unless a later keyspace has the same name.
    fn forget_name(&mut self, dropped: &KeyspaceState) {
        let Some(names) = self.by_name.get_mut(&dropped.home.branch) else { return };
        if names.get(&dropped.name).is_some_and(|named| named.id == dropped.id) {
            names.remove(&dropped.name);
        }
    }

    /// Removes the home of a dropped keyspace.
    fn forget_home(&mut self, gone: &KeyspaceState) {
        self.homes.remove(&gone.id);
        for (_, original) in &gone.home.older {
            if let Some(heirs) = self.heirs.get_mut(original) {
                heirs.retain(|id| *id != gone.id);
            }
        }
    }

    /// The keyspace of this name in a branch.
    pub fn by_name(&self, branch: KeyspaceId, name: &str) -> Option<&Arc<KeyspaceState>> {
        self.by_name.get(&branch)?.get(name)
    }

    /// The keyspace of this number, dropped or not.
    pub fn by_id(&self, id: KeyspaceId) -> Option<&Arc<KeyspaceState>> {
        self.by_id.get(&id)
    }

    /// Fails if there are as many keyspaces as allowed: a manifest with more could not be read.
    pub fn check_room(&self, more: usize) -> Result<()> {
        let max = crate::base::limits::KEYSPACES_MAX;
        if self.by_id.len() + more > max {
            return Err(Error::invalid(format!("there are {max} keyspaces: drop some first")));
        }
        Ok(())
    }

    /// The names of a branch's keyspaces, in order.
    pub fn names(&self, branch: KeyspaceId) -> Vec<String> {
        self.live(branch).map(|state| state.name.clone()).collect()
    }

    /// Every keyspace of a branch that is not dropped, by name.
    pub fn live(&self, branch: KeyspaceId) -> impl Iterator<Item = &Arc<KeyspaceState>> {
        self.by_name.get(&branch).into_iter().flat_map(BTreeMap::values)
    }

    /// How many there are.
    pub fn live_count(&self, branch: KeyspaceId) -> usize {
        self.by_name.get(&branch).map_or(0, BTreeMap::len)
    }

    /// The changes before `seq` that the manifest does not record yet: created and dropped
    /// keyspaces. A keyspace that was created and dropped since then appears only as dropped.
    pub fn pending_before(&self, seq: Seq) -> (Vec<KeyspaceRecord>, Vec<KeyspaceId>) {
        let due = || self.pending.iter().filter(|(at, _)| *at < seq).map(|(_, change)| change);
        let dropped: Vec<_> = due()
            .filter_map(|c| if let Change::Dropped(id) = c { Some(*id) } else { None })
            .collect();
        let gone: HashSet<KeyspaceId> = dropped.iter().copied().collect();
        let created = due()
            .filter_map(|c| if let Change::Created(state) = c { Some(state) } else { None })
            .filter(|state| !gone.contains(&state.id))
            .map(|state| state.record())
            .collect();
        (created, dropped)
    }

    /// The traits before `seq` that the manifest does not record yet, in order.
    pub fn pending_traits_before(&self, seq: Seq) -> Vec<(KeyspaceId, Traits)> {
        let (_, dropped) = self.pending_before(seq);
        let due = self.pending.iter().filter(|(at, _)| *at < seq);
        due.filter_map(|(_, change)| match change {
            Change::Traits(id, traits) if !dropped.contains(id) => Some((*id, traits.clone())),
            _ => None,
        })
        .collect()
    }

    /// The traits that a new manifest must hold for the keyspaces in `records`.
    pub fn durable_traits(
        &self,
        log_start: Seq,
        records: &[KeyspaceRecord],
    ) -> Vec<(KeyspaceId, Traits)> {
        let mut traits: BTreeMap<_, _> =
            self.durable_traits.iter().map(|(id, traits)| (*id, traits.clone())).collect();
        traits.extend(self.pending_traits_before(log_start));
        let told: HashSet<KeyspaceId> = records.iter().map(|record| record.id).collect();
        traits.retain(|id, traits| told.contains(id) && *traits != Traits::default());
        traits.into_iter().collect()
    }

    /// Removes the pending changes before `seq`, which the manifest now records. The states of
    /// dropped keyspaces live on in the handles.
    pub fn forget_before(&mut self, seq: Seq) {
        let known: Vec<_> = self.pending.extract_if(.., |(at, _)| *at < seq).collect();
        for (_, change) in known {
            match change {
                Change::Dropped(id) => {
                    self.durable_traits.remove(&id);
                    if let Some(state) = self.by_id.remove(&id) {
                        self.forget_home(&state);
                    }
                }
                Change::Traits(id, traits) => {
                    self.durable_traits.insert(id, traits);
                }
                Change::Created(_) => {}
            }
        }
    }

    /// The keyspaces that a new manifest must hold: those of the old manifest and those that
    /// changes before `log_start` created; later changes are still in the log.
    pub fn durable_records(&self, log_start: Seq) -> Vec<KeyspaceRecord> {
        // There may be many changes, so this avoids a pass over all of them for each keyspace.
        let outside: HashSet<KeyspaceId> = self
            .pending
            .iter()
            .filter_map(|(at, change)| match change {
                Change::Created(state) => (*at >= log_start).then_some(state.id),
                Change::Dropped(dropped) => (*at < log_start).then_some(*dropped),
                Change::Traits(..) => None,
            })
            .collect();
        self.by_id
            .values()
            .filter(|state| !outside.contains(&state.id))
            .map(|state| state.record())
            .collect()
    }
}

#[cfg(test)]
mod tests;
