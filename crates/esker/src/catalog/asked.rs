//! What a caller asks of a keyspace when it makes or opens one: its order, operator, filter and time to
//! live. The names are checked against what the keyspace has, and against the code that the program
//! gave.

use super::{Catalog, KeyspaceState, Order, missing_order};
use crate::base::Millis;
use crate::base::limits::KEY_BYTES_MAX;
use crate::error::{Error, Result};
use crate::manifest::Traits;
use std::sync::Arc;

/// The traits that a caller asks for when it makes or opens a keyspace; `None`: the present ones.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The name of the merge operator.
    pub operator: Option<String>,
    /// The name of the compaction filter.
    pub filter: Option<String>,
    /// The time to live of writes that do not give one.
    pub ttl: Option<Millis>,
}

impl Asked {
    /// Whether anything is asked for that may have to be changed.
    pub fn changes(&self) -> bool {
        self.operator.is_some() || self.filter.is_some() || self.ttl.is_some()
    }
}

/// Checks that the requested code is given.
pub fn check_asked(catalog: &Catalog, keyspace: &str, asked: &Asked) -> Result<()> {
    if let Some(operator) = &asked.operator {
        check_name("name of the merge operator", operator)?;
        if !catalog.knows_operator(operator) {
            let (keyspace, operator) = (keyspace.to_owned(), operator.clone());
            return Err(Error::MergeOperatorMissing { keyspace, operator });
        }
    }
    if let Some(filter) = &asked.filter {
        check_name("name of the compaction filter", filter)?;
        if !catalog.knows_filter(filter) {
            let what = format!("compaction filter {filter:?} is not known: give it in the options");
            return Err(Error::invalid(what));
        }
    }
    Ok(())
}

/// The traits that a keyspace is to have: the requested ones, otherwise the present ones.
pub fn wanted_traits(state: &KeyspaceState, asked: &Asked) -> Result<Traits> {
    let live = state.traits();
    let names = &live.names;
    if let Some(asked) = &asked.operator
        && !names.operator.is_empty()
        && *asked != names.operator
    {
        return Err(Error::MergeOperatorMismatch {
            keyspace: state.name.clone(),
            stored: names.operator.clone(),
            asked: asked.clone(),
        });
    }
    if !names.operator.is_empty() && !live.operator.is_there() {
        return Err(live.operator.missing());
    }
    Ok(Traits {
        operator: asked.operator.clone().unwrap_or_else(|| names.operator.clone()),
        filter: asked.filter.clone().unwrap_or_else(|| names.filter.clone()),
        ttl: asked.ttl.unwrap_or(names.ttl),
    })
}

/// Checks that a keyspace can be used, and has the requested comparator.
pub fn check_order(state: &Arc<KeyspaceState>, asked: Option<&str>) -> Result<Arc<KeyspaceState>> {
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

/// Checks the name of a keyspace or comparator.
pub fn check_name(what: &str, name: &str) -> Result<()> {
    let max = crate::base::limits::NAME_BYTES_MAX;
    if name.is_empty() || name.len() > max {
        let len = name.len();
        return Err(Error::invalid(format!("the {what} has {len} bytes: give 1 to {max}")));
    }
    Ok(())
}

/// Checks the length of a key.
#[inline]
pub fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::KeyTooLong { len: key.len(), max: KEY_BYTES_MAX });
    }
    Ok(())
}
