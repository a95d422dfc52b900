//! Merges what the threads of a step measured into its report.
//!
//! Counters are added, histograms merged, and the samples of threads brought into one order. Rates
//! and costs per operation are computed here, and nowhere else.

use super::measured::Measured;
use super::plan::Plan;
use super::state::State;
use crate::harness::measure::latency::Latencies;
use crate::harness::measure::median::median;
use crate::harness::measure::meter::Totals;
use crate::harness::measure::{disk, pause};
use crate::harness::settings::LARGE_VALUE;
use crate::harness::step_report::{OpenLoopReport, Sample, WorkloadReport, WriterReport};
use std::time::Duration;

/// An engine keeps up with an open loop if it does so many of the operations that are due. The rest is
/// what is under way at the end.
const KEPT_UP: f64 = 0.99;

impl State<'_> {
    /// The report of a step, from what its threads brought back.
    pub(super) fn summarise(&mut self, plan: &Plan, measured: Measured) -> WorkloadReport {
        let Measured { threads, writer, idle, rates, used, engine_bytes, text } = measured;
        let sum = |figure: fn(&Totals) -> u64| threads.iter().map(figure).sum::<u64>();
        let mut latencies = Latencies::default();
        threads.iter().for_each(|thread| latencies.merge(&thread.latencies));
        let ended = threads.iter().map(|thread| thread.ended).max().unwrap_or(0);
        let seconds = (ended as f64 / 1e9).max(1e-9);
        let operations = sum(|thread| thread.operations);
        let per_op = |amount: f64| if operations > 0 { amount / operations as f64 } else { 0.0 };
        let rate = operations as f64 / seconds;
        let by_second: Vec<f64> = rates.iter().map(|point| point.ops_per_second).collect();
        let spun = Duration::from_nanos(sum(|thread| thread.spun));
        // Waiting for a turn is the harness's own work.
        let cpu = used.cpu.saturating_sub(spun);
        let beside = writer.as_ref().map_or(0, |writer| writer.bytes_written);
        let written = sum(|thread| thread.bytes_written) + beside;
        self.user_bytes_written += written;
        let space = self.dir.map(disk::allocated);
        WorkloadReport {
            name: plan.name(),
            maintenance: plan.workload.kind.is_maintenance(),
            threads: plan.threads,
            seconds,
            operations,
            ops_per_second: rate,
            mb_per_second: sum(|thread| thread.bytes) as f64 / 1e6 / seconds,
            cpu_us_per_op: per_op(cpu.as_secs_f64() * 1e6),
            context_switches_per_op: per_op(used.switches as f64),
            latency: latencies.summary(plan.per_latency),
            longest_pause_ms: pause::longest(&threads) as f64 / 1e6,
            idle_gap_ms: idle.longest_gap.as_secs_f64() * 1e3,
            rate_min: by_second.iter().copied().reduce(f64::min).unwrap_or(rate),
            rate_median: median(by_second).unwrap_or(rate),
            found: sum(|thread| thread.found),
            missing: sum(|thread| thread.missing),
            user_bytes_written: written,
            device_bytes_written: used.device_written,
            device_bytes_read: used.device_read,
            write_amplification: ratio(used.device_written, written),
            write_amplification_since_open: self.amplification_since_open(),
            engine_bytes,
            disk_bytes: space,
            space_amplification: self.live_bytes().and_then(|live| ratio(space, live)),
            peak_memory_bytes: self.workers.peak_memory(),
            writer: writer.map(|writer| WriterReport {
                operations: writer.operations,
                ops_per_second: writer.operations as f64 / seconds,
                latency: writer.latencies.summary(1),
            }),
            rates,
            samples: samples(&threads, plan.sample_every),
            text,
            batch: plan.batch,
            batched_instead: plan.batched_instead,
            latency_curve: latencies.curve(),
            check: None,
            open_loop: plan.pace.map(|pace| OpenLoopReport {
                rate: pace.rate,
                percent: pace.share.map(|(_, percent)| percent),
                sustained: pace.share.map(|(sustained, _)| sustained),
                kept_up: rate >= KEPT_UP * pace.rate,
                behind_ms: threads.iter().map(|thread| thread.behind).max().unwrap_or(0) as f64
                    / 1e6,
            }),
        }
    }

    fn amplification_since_open(&self) -> Option<f64> {
        let used = self.workers.now().since(&self.opened);
        ratio(used.device_written, self.user_bytes_written)
    }

    /// Keys and values present. Unknown where an earlier run filled the database.
    fn live_bytes(&self) -> Option<u64> {
        let settings = self.settings;
        let bytes = |size: usize, keys: u64| (settings.key_size + size) as u64 * keys;
        let small = bytes(settings.value_size, self.live.count());
        let large = bytes(LARGE_VALUE, self.live_large.count());
        (!settings.use_existing_db).then_some(small + large)
    }
}

fn ratio(part: Option<u64>, whole: u64) -> Option<f64> {
    part.filter(|_| whole > 0).map(|part| part as f64 / whole as f64)
}

/// Brings the samples of all threads together. Each thread sampled after its share of the operations
/// of one sample, so that as many of these as there are threads make one sample of the whole.
fn samples(threads: &[Totals], sample_every: Option<u64>) -> Vec<Sample> {
    let Some(every) = sample_every else { return Vec::new() };
    let mut times: Vec<u64> =
        threads.iter().flat_map(|thread| thread.samples.iter().copied()).collect();
    times.sort_unstable();
    let whole = times.chunks_exact(threads.len().max(1));
    whole
        .enumerate()
        .map(|(i, times)| Sample {
            seconds: times.last().map_or(0.0, |time| *time as f64 / 1e9),
            operations: (i as u64 + 1) * every * threads.len() as u64,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_threads_interleave() {
        let thread = |samples: &[u64]| Totals { samples: samples.to_vec(), ..Totals::default() };
        let threads =
            [thread(&[1_000_000_000, 3_000_000_000]), thread(&[2_000_000_000, 9_000_000_000])];
        let expected =
            [Sample { seconds: 2.0, operations: 100 }, Sample { seconds: 9.0, operations: 200 }];
        assert_eq!(samples(&threads, Some(50)), expected);
        assert!(samples(&threads, None).is_empty());
    }
}
