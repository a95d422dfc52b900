//! The comparators of several keyspaces.

use super::{KeyspaceState, Order, missing_order};
use crate::base::{CustomOrder, KeyspaceId};
use crate::error::Result;

/// The keyspaces among these that have a custom comparator, by number.
pub fn orders_of<'k>(
    keyspaces: &[&'k KeyspaceState],
) -> Result<Vec<(KeyspaceId, &'k CustomOrder)>> {
    let order = |keyspace: &&'k KeyspaceState| match &keyspace.order {
        Order::Custom(order) => Some(Ok((keyspace.id, order))),
        Order::Missing(name) => Some(Err(missing_order(&keyspace.name, name))),
        Order::Bytewise => None,
    };
    keyspaces.iter().filter_map(order).collect()
}
