//! Making, finding and dropping keyspaces.

use crate::base::Comparator;
use crate::commit::Class;
use crate::db::Core;
use crate::db::catalog::{DEFAULT_KEYSPACE, KeyspaceState, Order, check_name};
use crate::db::ops::Op;
use crate::db::store::missing_order;
use crate::error::{Error, Result};
use std::sync::Arc;

impl Core {
    /// The keyspace of this name; made if it is missing. With `comparator`, it must have that
    /// order.
    pub fn keyspace(
        &self,
        name: &str,
        comparator: Option<Arc<dyn Comparator>>,
    ) -> Result<Arc<KeyspaceState>> {
        self.check_open()?;
        check_name("name of the keyspace", name)?;
        let asked = comparator.as_ref().map(|comparator| comparator.name().to_owned());
        if let Some(asked) = &asked {
            check_name("name of the comparator", asked)?;
        }
        let mut catalog = self.catalog.lock();
        if let Some(comparator) = comparator {
            catalog.register(comparator);
        }
        if let Some(state) = catalog.by_name(name) {
            return check_order(state, asked.as_deref());
        }
        let pipeline = self.pipeline.as_ref().ok_or(Error::ReadOnly)?;
        catalog.check_room()?;
        let id = catalog.next_id();
        let comparator = asked.as_deref().unwrap_or_default();
        let mut payload = Vec::new();
        Op::CreateKeyspace { keyspace: id, name, comparator }.encode(&mut payload);
        let mut made = None;
        // No other thread can make a keyspace meanwhile: the catalog is locked.
        pipeline.write(
            &payload,
            1,
            Class::Process,
            |_| Ok(()),
            |(), seq| {
                made = Some(catalog.create(id, name, comparator, seq));
            },
        )?;
        made.ok_or(Error::Closed)
    }

    /// Names of all keyspaces, in order.
    pub fn keyspace_names(&self) -> Result<Vec<String>> {
        self.check_open()?;
        Ok(self.catalog.lock().names())
    }

    /// Drops a keyspace; says whether there was one. Its space returns in the background.
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        let pipeline = self.writable()?;
        if name == DEFAULT_KEYSPACE {
            let what = "the keyspace \"default\" is always there: remove its range instead";
            return Err(Error::invalid(what));
        }
        let mut catalog = self.catalog.lock();
        let Some(state) = catalog.by_name(name).cloned() else { return Ok(false) };
        // Whoever reserves behind this position sees the mark and fails (R16).
        pipeline.seal(|position| state.mark_dropped(position));
        let mut payload = Vec::new();
        Op::DropKeyspace { keyspace: state.id }.encode(&mut payload);
        let written = pipeline.write(
            &payload,
            1,
            Class::Process,
            |_| Ok(()),
            |(), seq| {
                catalog.drop_keyspace(state.id, seq);
            },
        );
        if let Err(error) = written {
            state.unmark_dropped();
            return Err(error);
        }
        self.work.notify();
        Ok(true)
    }
}

/// Checks that a keyspace can be used, and with the order that is asked for.
fn check_order(state: &Arc<KeyspaceState>, asked: Option<&str>) -> Result<Arc<KeyspaceState>> {
    let stored = state.comparator_name();
    match (&state.order, asked) {
        (Order::Missing(name), None) => Err(missing_order(&state.name, name)),
        (_, Some(asked)) if stored != Some(asked) => Err(Error::ComparatorMismatch {
            keyspace: state.name.clone(),
            stored: stored.unwrap_or("bytewise").to_owned(),
            asked: asked.to_owned(),
        }),
        (Order::Missing(name), Some(_)) => Err(missing_order(&state.name, name)),
        _ => Ok(state.clone()),
    }
}
