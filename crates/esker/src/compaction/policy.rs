//! Placeholder.
//!
//! .
use crate::base::codec::hash_key;
/// T.
pub const RUNS_MAX: usize = 8;
/// Route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Cut at partitions.
    Cut,
    /// Top tier.
    Top,
}
/// Tiers.
pub fn tiers_wanted(live_bytes: u64, flush_bytes: u64, present: usize) -> usize {
    let r = live_bytes / flush_bytes.max(1);
    let wanted = |r: u64| match r {
        0..=24 => 0,
        25..=192 => 1,
        193..=1600 => 2,
        1601..=12800 => 3,
        _ => 4,
    };
    let (low, high) = (wanted(r), wanted(r * 3 / 2));
    if present >= low && present <= high { present } else { low }
}
/// Groups.
pub fn span_bounds(children: &[u64]) -> Vec<usize> {
    let groups = children.len().div_ceil(12).max(1);
    (0..groups).map(|g| children.len() * (g + 1) / groups - children.len() * g / groups).collect()
}
/// Due.
pub fn span_due(runs: usize, _pending_bytes: u64, _children: usize, stagger: u64) -> f64 {
    let most = RUNS_MAX - (stagger % 3) as usize;
    runs as f64 / most as f64
}
/// Route.
pub fn route(flush_bytes: u64, touched: usize, partition_bytes: u64, tiers: usize) -> Route {
    if tiers == 0 || flush_bytes / (touched.max(1) as u64) >= partition_bytes / 16 {
        Route::Cut
    } else {
        Route::Top
    }
}
/// Stagger.
pub fn stagger(lower: Option<&[u8]>) -> u64 {
    hash_key(lower.unwrap_or_default()) >> 32
}
