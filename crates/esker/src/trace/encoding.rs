//! The slowest operations as bytes, for the file that other processes read.
//!
//! Each operation is a string of bytes of its own, and each step is one inside it. Sources, outcomes
//! and causes have their names. So a reader of another version leaves out what it does not know:
//! operations, steps and waits with unknown names, and the bytes behind the fields that it knows.
//! The layout is in `docs/file-formats.md`.
//!
//! 1. The operations together take at most [`BYTES_MAX`]. The slowest of each kind come first, so
//!    that each kind has its worst ones there.
//! 2. An operation has at most 32 steps: those that took longest, in their order.
//! 3. There is no key and no value in them. Every length is checked before it is used.

use super::explanation::{BlockCounts, Explanation, Outcome, Step, StepSource, WaitTime};
use super::slowest::{KINDS, SlowOperation};
use crate::base::codec::{Decoded, Reader, put_bytes, put_varint};
use crate::sync::nanos_of;
use crate::waits::Cause;
use std::cmp::Reverse;
use std::time::{Duration, UNIX_EPOCH};

/// The most bytes of all operations together: a quarter of what the file has for statistics.
pub const BYTES_MAX: usize = 16 << 10;
/// The most steps of an operation that are encoded.
const STEPS_MAX: usize = 32;

/// The slowest of these operations, each as bytes, in the order of the list.
pub fn encode(slowest: &[SlowOperation]) -> Vec<Vec<u8>> {
    let mut ranks = [0_usize; KINDS.len()];
    let mut ranked = Vec::with_capacity(slowest.len());
    for (place, slow) in slowest.iter().enumerate() {
        let kind = KINDS.iter().position(|kind| *kind == slow.explanation.operation);
        let Some(rank) = kind.and_then(|kind| ranks.get_mut(kind)) else { continue };
        ranked.push((*rank, place, encode_one(slow)));
        *rank += 1;
    }
    // The worst of each kind, then the second worst of each, and so on.
    ranked.sort_by_key(|(rank, place, _)| (*rank, *place));
    let mut bytes = 0;
    ranked.retain(|(.., one)| {
        let fits = bytes + one.len() <= BYTES_MAX;
        bytes += if fits { one.len() } else { 0 };
        fits
    });
    ranked.sort_by_key(|(_, place, _)| *place);
    ranked.into_iter().map(|(.., one)| one).collect()
}

fn encode_one(slow: &SlowOperation) -> Vec<u8> {
    let (explanation, mut out) = (&slow.explanation, Vec::new());
    let when = slow.when.duration_since(UNIX_EPOCH).unwrap_or_default();
    put_varint(&mut out, u64::try_from(when.as_micros()).unwrap_or(u64::MAX));
    put_bytes(&mut out, explanation.operation.as_bytes());
    put_bytes(&mut out, explanation.keyspace.as_bytes());
    put_varint(&mut out, u64::from(explanation.found));
    put_varint(&mut out, nanos_of(explanation.time));
    put_blocks(&mut out, explanation.blocks);
    put_varint(&mut out, explanation.bytes_read);
    put_varint(&mut out, explanation.entries);
    put_varint(&mut out, explanation.stepped_over);
    put_varint(&mut out, explanation.waits.len() as u64);
    for wait in &explanation.waits {
        put_bytes(&mut out, wait.cause.as_str().as_bytes());
        put_varint(&mut out, nanos_of(wait.time));
    }
    let steps = longest(&explanation.steps);
    put_varint(&mut out, steps.len() as u64);
    steps.iter().for_each(|step| put_bytes(&mut out, &encode_step(step)));
    out
}

/// The steps that took longest, in their order.
fn longest(steps: &[Step]) -> Vec<&Step> {
    let mut places: Vec<_> = (0..steps.len()).collect();
    places.sort_by_key(|place| Reverse(steps.get(*place).map(|step| step.time)));
    places.truncate(STEPS_MAX);
    places.sort_unstable();
    places.into_iter().filter_map(|place| steps.get(place)).collect()
}

fn encode_step(step: &Step) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, step.source.as_str().as_bytes());
    put_bytes(&mut out, step.outcome.as_str().as_bytes());
    put_blocks(&mut out, step.blocks);
    put_varint(&mut out, step.bytes_read);
    put_varint(&mut out, step.entries);
    put_varint(&mut out, nanos_of(step.time));
    let place = match step.source {
        StepSource::Memtable { number, of, sealed } => vec![number, of, u64::from(sealed)],
        StepSource::Run { tier, partition, age, file: Some(file), segment: Some(segment) } => {
            vec![tier, partition, age, file, segment]
        }
        StepSource::Run { tier, partition, age, .. } => vec![tier, partition, age],
        _ => Vec::new(),
    };
    put_varint(&mut out, place.len() as u64);
    place.iter().for_each(|number| put_varint(&mut out, *number));
    out
}

fn put_blocks(out: &mut Vec<u8>, blocks: BlockCounts) {
    [blocks.cached, blocks.page_cache, blocks.device].iter().for_each(|n| put_varint(out, *n));
}

/// The operation of these bytes. `None`: this version does not know such an operation, or the bytes
/// are none.
pub fn decode(bytes: &[u8]) -> Option<SlowOperation> {
    decode_one(&mut Reader::new(bytes)).ok().flatten()
}

fn decode_one(reader: &mut Reader<'_>) -> Decoded<Option<SlowOperation>> {
    let when = UNIX_EPOCH.checked_add(Duration::from_micros(reader.varint()?));
    let operation = name(reader)?;
    let operation = KINDS.iter().find(|kind| Some(**kind) == operation);
    let keyspace = name(reader)?;
    let found = reader.varint()? != 0;
    let time = Duration::from_nanos(reader.varint()?);
    let blocks = read_blocks(reader)?;
    let (bytes_read, entries) = (reader.varint()?, reader.varint()?);
    let stepped_over = reader.varint()?;
    let (mut waits, mut steps) = (Vec::new(), Vec::new());
    // A wait takes at least two bytes and a step at least one, which bounds the work.
    for _ in 0..reader.varint_max(reader.remaining() as u64)? {
        let (cause, time) = (name(reader)?, Duration::from_nanos(reader.varint()?));
        let cause = Cause::ALL.into_iter().find(|known| Some(known.as_str()) == cause);
        waits.extend(cause.map(|cause| WaitTime { cause, time }));
    }
    for _ in 0..reader.varint_max(reader.remaining() as u64)? {
        let step = reader.bytes(reader.remaining())?;
        steps.extend(decode_step(&mut Reader::new(step))?);
    }
    let (Some(when), Some(operation), Some(keyspace)) = (when, operation, keyspace) else {
        return Ok(None);
    };
    let (operation, keyspace) = (*operation, keyspace.to_owned());
    let explanation = Explanation {
        operation,
        keyspace,
        found,
        time,
        steps,
        waits,
        blocks,
        bytes_read,
        entries,
        stepped_over,
    };
    Ok(Some(SlowOperation { when, explanation }))
}

fn decode_step(reader: &mut Reader<'_>) -> Decoded<Option<Step>> {
    let (source, outcome) = (name(reader)?, name(reader)?);
    let blocks = read_blocks(reader)?;
    let (bytes_read, entries) = (reader.varint()?, reader.varint()?);
    let time = Duration::from_nanos(reader.varint()?);
    let mut place = Vec::new();
    for _ in 0..reader.varint_max(reader.remaining() as u64)? {
        place.push(reader.varint()?);
    }
    let source = source.and_then(|source| StepSource::named(source, &place));
    let outcome = outcome.and_then(Outcome::named);
    let (Some(source), Some(outcome)) = (source, outcome) else { return Ok(None) };
    Ok(Some(Step { source, outcome, blocks, bytes_read, entries, time }))
}

/// The next name; `None`: it is no UTF-8, so no version has it.
fn name<'a>(reader: &mut Reader<'a>) -> Decoded<Option<&'a str>> {
    Ok(std::str::from_utf8(reader.bytes(reader.remaining())?).ok())
}

fn read_blocks(reader: &mut Reader<'_>) -> Decoded<BlockCounts> {
    let (cached, page_cache) = (reader.varint()?, reader.varint()?);
    Ok(BlockCounts { cached, page_cache, device: reader.varint()? })
}

#[cfg(all(test, not(loom)))]
mod tests;
