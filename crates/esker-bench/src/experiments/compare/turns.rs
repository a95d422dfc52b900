//! Whose turn it is in a round.
//!
//! Each round starts with another engine, so that no engine always runs behind the same neighbour.

/// The places of the engines in the order of a round: each round starts with the next one.
pub(crate) fn turns(engines: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..engines).map(move |turn| (turn + round - 1) % engines)
}
