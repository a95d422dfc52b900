//! Among which ids the ends of links are drawn.
//!
//! A request finds a link that was loaded with a given probability. It is drawn among so many ids that
//! this share of them had a link there. After requests, the widest of these ranges says which links an id
//! can have.

/// The share of added links that were there when the graph was loaded.
pub const ADD_EXISTS: f64 = 0.05;

/// Over how many ids the ends of links are drawn if an id has so many.
pub fn range(links: u64, exists: f64) -> u64 {
    ((links as f64 / exists).ceil() as u64).max(1)
}

/// The widest of these ranges: no link of an id ends behind it.
pub fn widest(links: u64) -> u64 {
    range(links, ADD_EXISTS)
}
