//! The longest time in which no thread completed an operation.
//!
//! The longest latency of one thread says little about many threads: sixteen writers on two cores wait
//! for each other all the time while the engine as a whole makes progress. A *silence* is a span in
//! which one thread completed nothing; threads record their silences above a millisecond. A *pause* is
//! a span that lies inside a silence of every thread, found here by going through all silences in the
//! order of time. A thread that has ended is silent from then on, and the workload ends with the last
//! thread.

use super::meter::{SILENCE_NS, Silence, Totals};

/// The longest pause in nanoseconds.
///
/// Without a common silence there was no pause of a millisecond, and the answer is an upper bound:
/// the smallest of the threads' longest latencies, and at most that millisecond.
pub fn longest(threads: &[Totals]) -> u64 {
    if let [only] = threads {
        return only.longest_gap.unwrap_or_else(|| only.latencies.max_ns());
    }
    let end = threads.iter().map(|thread| thread.ended).max().unwrap_or(0);
    let common = sweep(threads, end);
    if common > 0 {
        return common;
    }
    let shortest = threads
        .iter()
        .map(|thread| thread.longest_gap.unwrap_or_else(|| thread.latencies.max_ns()))
        .min()
        .unwrap_or(0);
    shortest.min(SILENCE_NS)
}

/// The longest span that lies inside a silence of every thread.
fn sweep(threads: &[Totals], end: u64) -> u64 {
    // (time, +1 where a thread falls silent or -1 where it completes something). At equal times the
    // completions come first: adjacent silences of one thread have a completion between them.
    let mut edges: Vec<(u64, i32)> = Vec::new();
    for thread in threads {
        let after = Silence { from: thread.ended, to: end };
        for silence in thread.silences.iter().chain([&after]) {
            edges.push((silence.from, 1));
            edges.push((silence.to, -1));
        }
    }
    edges.sort_unstable();
    let all = threads.len() as i32;
    let (mut silent, mut since, mut longest) = (0, 0, 0);
    for (time, change) in edges {
        if silent == all {
            longest = longest.max(time - since);
        }
        silent += change;
        since = time;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn thread(silences: &[(u64, u64)], ended: u64) -> Totals {
        let mut totals = Totals { ended: ended * MS, ..Totals::default() };
        for &(from, to) in silences {
            totals.silences.push(Silence { from: from * MS, to: to * MS });
            totals.latencies.record((to - from) * MS);
        }
        totals
    }

    #[test]
    fn one_thread_pauses_for_its_longest_latency() {
        let longest = longest(&[thread(&[(0, 3), (5, 12)], 20)]);
        assert!(longest.abs_diff(7 * MS) < MS / 100);
    }

    #[test]
    fn many_threads_pause_where_all_are_silent() {
        let cases: &[(&[Totals], u64)] = &[
            (&[thread(&[(0, 10)], 20), thread(&[(4, 14)], 20)], 6),
            (&[thread(&[(0, 10), (10, 18)], 20), thread(&[(4, 14)], 20)], 6),
            (&[thread(&[(0, 2), (8, 9)], 20), thread(&[(0, 3)], 20), thread(&[(1, 9)], 20)], 1),
            // The first thread ended at 5 and is silent from then on.
            (&[thread(&[], 5), thread(&[(3, 9), (12, 15)], 20)], 4),
        ];
        for (i, (threads, expected)) in cases.iter().enumerate() {
            assert_eq!(sweep(threads, 20 * MS), expected * MS, "case {i}");
        }
    }

    #[test]
    fn without_a_common_silence_the_answer_is_a_bound() {
        let threads = [thread(&[(0, 5)], 20), thread(&[(5, 12)], 20)];
        assert_eq!(longest(&threads), SILENCE_NS);
    }
}
