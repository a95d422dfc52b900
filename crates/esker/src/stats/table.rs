//! The table of metrics: the one place to add a metric.
//!
//! A line of the table names a metric and says what it measures, in which unit, and where it is
//! counted. All outputs follow from it: the fields of [`Stats`](super::Stats) that are plain
//! counters, the places where these are kept while the database is open, and for all metrics
//! [`METRICS`](super::metrics::METRICS), from which OpenMetrics, JSON, the command line, the C
//! interface, Python and the reference in `docs/operations.md` are derived.
//!
//! Only the line that counts remains to be written: `counters.add(Counter::Name, 1)` in a call,
//! `counters.background.name.fetch_add(…)` in the background, or the value of a computed field in
//! `stats/gather.rs`. A field of a structure in `stats/report.rs` also gets a line in `families`, or
//! in `each` if it exists once per keyspace, level or owner; the test
//! `stats::metrics::every_field_of_stats_is_in_the_table` finds one that is missing.
//!
//! A line has a kind (`counter`, `gauge`, `summary`, `histogram`, `stateset`), a unit (`count`,
//! `bytes`, `seconds`, `rate`: bytes per second) and the name in OpenMetrics, without `_total`.

/// Passes the table to the macro `$with`.
macro_rules! metrics {
    ($with:ident) => {
        $with! {
            // Counted by the threads that call the database, each in a stripe of its own.
            calls {
                /// Entries put.
                puts = Puts: counter count "esker_puts" in "db/write.rs";
                /// Point deletes.
                deletes = Deletes: counter count "esker_deletes" in "db/write.rs";
                /// Range deletes.
                range_deletes = RangeDeletes: counter count "esker_range_deletes" in "db/write.rs";
                /// Batches committed, single writes included.
                commits = Commits: counter count "esker_commits" in "db/write.rs";
                /// Point reads.
                gets = Gets: counter count "esker_gets" in "db/read.rs";
                /// Iterators made.
                scans = Scans: counter count "esker_scans" in "db/scan.rs";
                /// Entries that iterators returned.
                scanned = Scanned: counter count "esker_scanned_entries" in "db/scan.rs";
                /// Entries that iterators skipped: deleted ones, older versions, and entries that
                /// were written after the iterator's moment.
                skipped = Skipped: counter count "esker_skipped_entries" in "db/scan.rs";
                /// How often a Bloom filter said that the key of a point read is not in a run
                /// segment, which saved the search of a block.
                filter_absent = FilterAbsent: counter count "esker_filter_absent" in "lookup.rs";
                /// How often a Bloom filter let a point read pass, and the run segment had no
                /// version of the key that the read could see.
                filter_false_positives = FilterFalsePositives: counter count
                    "esker_filter_false_positives" in "lookup.rs";
                /// How often a Bloom filter let a point read pass, and the key was there.
                filter_found = FilterFound: counter count "esker_filter_found" in "lookup.rs";
            }
            // Counted by flushes and compactions, which are rare enough to share a counter.
            background {
                /// Memtables flushed.
                flushes: counter count "esker_flushes" in "db/flush.rs";
                /// Ingestions committed.
                ingestions: counter count "esker_ingestions" in "ingest/mod.rs";
                /// Entries of these ingestions, deletes and range deletes included. No other metric of
                /// calls counts them.
                entries_ingested: counter count "esker_ingested_entries" in "ingest/mod.rs";
                /// Bytes of keys and values of these ingestions; the bytes that programs wrote contain
                /// them.
                bytes_ingested: counter bytes "esker_ingested_bytes" in "ingest/mod.rs";
                /// Compactions done.
                compactions: counter count "esker_compactions" in "db/compact.rs";
                /// Spans of tiers whose runs were pushed to the row below.
                pushes: counter count "esker_pushes" in "db/push.rs";
                /// Bytes that pushes wrote; the bytes of compactions contain them.
                bytes_pushed: counter bytes "esker_pushed_bytes" in "db/push.rs";
                /// Operands that flushes and compactions applied to a value or combined with
                /// another operand, and the values that they were applied to.
                operands_folded: counter count "esker_operands_folded" in "compaction/counts.rs";
                /// Entries that flushes and compactions removed because they had expired.
                entries_expired: counter count "esker_entries_expired" in "compaction/counts.rs";
                /// Entries that compaction filters removed or changed.
                entries_filtered: counter count "esker_entries_filtered" in "compaction/counts.rs";
                /// Updates of the statistics for other processes that could not be written.
                statistics_failures: counter count "esker_statistics_failures"
                    in "monitor/statistics/writer.rs";
                /// Bytes that compactions wrote because data had not been read for long and Zstandard
                /// saves enough; the bytes of compactions contain them.
                bytes_cooled: counter bytes "esker_cooled_bytes" in "stats/counters.rs";
                /// Bytes that compactions wrote because data that is compressed with Zstandard was
                /// read often; the bytes of compactions contain them.
                bytes_warmed: counter bytes "esker_warmed_bytes" in "stats/counters.rs";
                /// Run segments that compactions adopted without rewriting them.
                segments_adopted: counter count "esker_segments_adopted" in "db/compact.rs";
            }
            // Computed from other parts of the database when statistics are asked for.
            computed {
                /// Point reads that found a value.
                gets_found: counter count "esker_gets_found" in "db/read.rs";
                /// Log syncs.
                syncs: counter count "esker_syncs" in "commit/group.rs";
                /// Bytes of blocks read from files.
                bytes_read: counter bytes "esker_block_read_bytes" in "cache/block_cache.rs";
                /// How often an iterator let its blocks go, because iterators held more than their
                /// share; it reads them again when it moves.
                pins_let_go: counter count "esker_pins_let_go" in "cache/pins.rs";
                /// Point reads that found their value in a cached block, and blocks that iterators
                /// found in the cache.
                cache_hits: counter count "esker_cache_hits" in "cache/block_cache.rs";
                /// Blocks read because they were not cached.
                cache_misses: counter count "esker_cache_misses" in "cache/block_cache.rs";
                /// Reads of blocks and indexes from files that were as fast as the system's page
                /// cache.
                page_cache_reads: counter count "esker_page_cache_reads" in "cache/counters.rs";
                /// Reads of blocks and indexes from files that were slower, and so came from the
                /// device.
                device_reads: counter count "esker_device_reads" in "cache/counters.rs";
                /// Bytes that point reads read from files.
                get_bytes_read: counter bytes "esker_get_read_bytes" in "cache/counters.rs";
                /// Bytes that iterators read from files.
                scan_bytes_read: counter bytes "esker_scan_read_bytes" in "cache/counters.rs";
                /// Bytes that flushes and compactions read from files.
                compaction_bytes_read: counter bytes "esker_compaction_read_bytes"
                    in "cache/counters.rs";
                /// Bytes that compactions which are due have to read.
                compaction_debt: gauge bytes "esker_compaction_debt_bytes"
                    in "compaction/queue.rs";
                /// Bytes that run files take on the device.
                data_file_bytes: gauge bytes "esker_data_file_bytes" in "directory/files.rs";
                /// Bytes of run files that compactions could free now: an estimate, made when the tree
                /// has changed and no compaction is due.
                reclaimable_bytes: gauge bytes "esker_reclaimable_bytes"
                    in "compaction/space.rs";
                /// How many such bytes there may be by `Options::max_space_amplification`, with the
                /// reserve.
                reclaimable_bytes_max: gauge bytes "esker_reclaimable_max_bytes"
                    in "compaction/policy.rs";
                /// Bytes of run files that are dead, but that snapshots or branches keep: an estimate
                /// like `esker_reclaimable_bytes`.
                unreclaimable_bytes: gauge bytes "esker_unreclaimable_bytes"
                    in "compaction/space.rs";
                /// Bytes that log files take on the device.
                log_file_bytes: gauge bytes "esker_log_file_bytes" in "commit/space/rest.rs";
                /// Bytes of log that memtables need: what an open after a kill would read.
                log_needed_bytes: gauge bytes "esker_log_needed_bytes" in "stats/gather.rs";
                /// Bytes of log files in which nothing is needed: kept to be used again, or prepared
                /// ahead. A log at rest has none.
                log_spare_bytes: gauge bytes "esker_log_spare_bytes" in "commit/space/rest.rs";
                /// Log files that were prepared, the recycled ones included.
                log_files_prepared: counter count "esker_log_files_prepared" in "commit/space.rs";
                /// Log files that were used again.
                log_files_recycled: counter count "esker_log_files_recycled" in "commit/space.rs";
                /// Run files that are open.
                run_files_open: gauge count "esker_run_files_open" in "run/file.rs";
                /// The most run files that are open at once: a quarter of the descriptors that the
                /// process may have.
                run_files_open_max: gauge count "esker_run_files_open_max" in "run/file.rs";
            }
            // Fields of the structures in `Stats`. Each line of a family has the values of the
            // family's labels.
            families {
                /// Latency of writes; one call in 128 is timed.
                summary seconds "esker_put_latency_seconds" [] in "db/write.rs" {
                    put_latency [];
                }
                /// Latency of point reads; one call in 128 is timed.
                summary seconds "esker_get_latency_seconds" [] in "db/read.rs" {
                    get_latency [];
                }
                /// Latency of making and positioning an iterator; one call in 128 is timed.
                summary seconds "esker_scan_latency_seconds" [] in "db/scan.rs" {
                    scan_latency [];
                }
                /// Latency of log syncs; all are timed.
                summary seconds "esker_sync_latency_seconds" [] in "commit/group.rs" {
                    sync_latency [];
                }
                /// Latency of reads of blocks and indexes from files, by where they came from: the
                /// system's page cache (one read in 128 is recorded) or the device (all are).
                summary seconds "esker_read_latency_seconds" [source] in "cache/counters.rs" {
                    /// As fast as the system's page cache.
                    page_cache_latency ["page_cache"];
                    /// Slower.
                    device_latency ["device"];
                }
                /// Bytes that the engine wrote, by purpose; `user`: what programs wrote, for
                /// comparison.
                counter bytes "esker_written_bytes" [purpose] in "stats/gather.rs" {
                    /// Keys and values that programs wrote.
                    written.user ["user"];
                    /// The write-ahead log.
                    written.log ["log"];
                    /// Flushes of memtables.
                    written.flush ["flush"];
                    /// Compactions, and pushes from tier to tier.
                    written.compaction ["compaction"];
                    /// Ingestions that were committed.
                    written.ingestion ["ingestion"];
                    /// The manifest and superblocks.
                    written.manifest ["manifest"];
                }
                /// Time that calls waited, by cause: the sums of `esker_wait_seconds`.
                counter seconds "esker_stall_seconds" [cause] in "waits.rs" {
                    /// Paced because memtables fill faster than flushes empty them.
                    stalls.flush_debt ["flush_debt"];
                    /// Paced because deltas arrive faster than compactions rewrite them.
                    stalls.compaction_debt ["compaction_debt"];
                    /// Stopped because all write buffers were full.
                    stalls.memory ["memory"];
                    /// Waited for a log file to be prepared.
                    stalls.log_space ["log_space"];
                    /// Waited for a sync of the log.
                    stalls.sync ["sync"];
                    /// Waited for space on a full device.
                    stalls.disk_full ["disk_full"];
                    /// Waited for a lock that another transaction held.
                    stalls.lock ["lock"];
                }
                /// Waits of calls, by cause; the causes are those of `esker_stall_seconds`.
                histogram seconds "esker_wait_seconds" [cause] in "waits.rs" {
                    waits.flush_debt ["flush_debt"];
                    waits.compaction_debt ["compaction_debt"];
                    waits.memory ["memory"];
                    waits.log_space ["log_space"];
                    waits.sync ["sync"];
                    waits.disk_full ["disk_full"];
                    waits.lock ["lock"];
                }
                /// What the database does with writers: nothing (`open`), slow them by a rate
                /// (`flush_debt`, `compaction_debt`), stop them (`stopped`), or refuse them while
                /// the device is full (`disk_full`).
                stateset count "esker_pace_mode" [] in "admission.rs" {
                    pace.mode [];
                }
                /// The rate that writers keep to; 0: there is none.
                gauge rate "esker_pace_limit_bytes_per_second" [] in "admission.rs" {
                    pace.limit [];
                }
                /// Positions of the log, in bytes since the database was made.
                gauge bytes "esker_log_position_bytes" [position] in "commit/pipeline.rs" {
                    /// Memtables need the log from here on.
                    log.start ["start"];
                    /// Everything before this position is on the device.
                    log.synced ["synced"];
                    /// Everything before this position is visible to readers.
                    log.visible ["visible"];
                    /// The next write begins here.
                    log.reserved ["reserved"];
                }
                /// What keeps the log: nothing, the memtable that takes writes, or a full memtable
                /// whose flush is pending or has failed.
                stateset count "esker_log_holder" [] in "stats/gather.rs" {
                    log.holder [];
                }
                /// The time since the database was opened.
                gauge seconds "esker_uptime_seconds" [] in "admission.rs" {
                    uptime [];
                }
                /// The memory budget.
                gauge bytes "esker_memory_limit_bytes" [] in "options/settings.rs" {
                    memory.limit [];
                }
                /// What blocks, indexes and filters may have of the memory budget: what the others leave.
                gauge bytes "esker_cache_limit_bytes" [] in "admission/governor.rs" {
                    memory.cache_limit [];
                }
                /// Memory in use, by owner.
                gauge bytes "esker_memory_bytes" [owner] in "stats/gather.rs" {
                    /// Memtables that take writes or wait for their flush, and memory that waits for the next ones.
                    memory.memtables ["memtables"];
                    /// Blocks in the cache, evicted blocks that are still being read, and memory that waits for the next blocks and indexes.
                    memory.cache ["cache"];
                    /// Indexes of run segments.
                    memory.indexes ["indexes"];
                    /// Filters of run segments.
                    memory.filters ["filters"];
                    /// Buffers of flushes and compactions.
                    memory.buffers ["buffers"];
                    /// Log files that are mapped: at most so much of them is resident.
                    memory.log ["log"];
                    /// Flushed memtables that iterators and other readers still hold.
                    memory.held ["held"];
                    /// What describes keyspaces, partitions, runs and run segments; about.
                    memory.description ["description"];
                    /// What open transactions wrote, and the keys and ranges that they read; about.
                    memory.transactions ["transactions"];
                    /// Lists of range tombstones: of memtables, and those that were read from run files.
                    memory.tombstones ["tombstones"];
                    /// Iterators and cursors themselves, with their buffers.
                    memory.iterators ["iterators"];
                    /// Batches, what the layer for C handed out and was not freed, and what the one for Python keeps; of the whole process.
                    memory.clients ["clients"];
                }
                /// The most that the buffers of flushes and compactions took.
                gauge bytes "esker_memory_buffers_max_bytes" [] in "budget/mod.rs" {
                    memory.buffers_max [];
                }
                /// Moments that snapshots of this process hold.
                gauge count "esker_snapshots" [] in "state/snapshots.rs" {
                    held.snapshots [];
                }
                /// The age of the oldest moment that a snapshot of this process holds.
                gauge seconds "esker_oldest_snapshot_age_seconds" [] in "state/snapshots.rs" {
                    held.oldest_snapshot [];
                }
                /// Earlier states of the database that iterators and other readers still use.
                gauge count "esker_held_states" [] in "state/retired.rs" {
                    held.states [];
                }
                /// How long ago the oldest of these states was replaced.
                gauge seconds "esker_oldest_held_state_age_seconds" [] in "state/retired.rs" {
                    held.oldest_state [];
                }
                /// Bytes in run files to which only earlier states refer.
                gauge bytes "esker_held_data_bytes" [] in "state/retired.rs" {
                    held.data [];
                }
                /// Iterators that are open.
                gauge count "esker_open_iterators" [] in "state/mod.rs" {
                    held.iterators [];
                }
                /// Bytes of blocks that the cache has evicted and that values or iterators still
                /// use.
                gauge bytes "esker_held_evicted_bytes" [] in "cache/block_cache.rs" {
                    held.evicted [];
                }
                /// Bytes of blocks and indexes that iterators, values in place and readers of values hold, so that
                /// they cannot be evicted. An index that several hold counts for each.
                gauge bytes "esker_held_pinned_bytes" [] in "cache/pins.rs" {
                    held.pinned [];
                }
                /// Transactions that are open.
                gauge count "esker_open_transactions" [] in "txn/mod.rs" {
                    held.transactions [];
                }
                /// How long the oldest transaction has been open.
                gauge seconds "esker_oldest_transaction_age_seconds" [] in "txn/mod.rs" {
                    held.oldest_transaction [];
                }
                /// Bytes of flushed memtables that are kept to check what transactions read.
                gauge bytes "esker_held_transaction_memory_bytes" [] in "txn/mod.rs" {
                    held.transactions_memory [];
                }
            }
            // Fields of what `Stats` lists.
            each {
                SnapshotUse snapshots [position, label] {
                    /// The age of a moment that snapshots of this process hold; the 64 oldest are
                    /// shown.
                    age: gauge seconds "esker_snapshot_age_seconds" in "state/snapshots.rs";
                    /// How many snapshots hold a moment.
                    count: gauge count "esker_snapshot_holders" in "state/snapshots.rs";
                }
                BranchUse branches [branch] {
                    /// Bytes in run files to which only one branch or named snapshot refers; the
                    /// 64 with most are shown.
                    data: gauge bytes "esker_branch_held_bytes" in "stats/branches.rs";
                }
                TreeShape trees [keyspace] {
                    /// Partitions of the keyspace's tree.
                    partitions: gauge count "esker_keyspace_partitions" in "stats/shapes.rs";
                    /// Bytes that compactions of the keyspace which are due have to read.
                    compaction_debt: gauge bytes "esker_keyspace_compaction_debt_bytes"
                        in "compaction/queue.rs";
                }
                LevelShape levels [keyspace, level] {
                    /// Runs of a level: `base`, `delta_0` (the newest), `delta_1` and so on, or
                    /// the pending runs of `tier_1` (above the partitions), `tier_2` and so on.
                    runs: gauge count "esker_level_runs" in "stats/shapes.rs";
                    /// Run segments of a level.
                    segments: gauge count "esker_level_segments" in "stats/shapes.rs";
                    /// Bytes of a level on disk.
                    bytes: gauge bytes "esker_level_bytes" in "stats/shapes.rs";
                    /// Entries of a level, deletes included.
                    entries: gauge count "esker_level_entries" in "stats/shapes.rs";
                    /// Bytes of blocks of a level that are not compressed. In `base` these are
                    /// settled data.
                    raw_bytes: gauge bytes "esker_level_raw_bytes" in "stats/shapes.rs";
                    /// Bytes of blocks of a level that are compressed with LZ4.
                    lz4_bytes: gauge bytes "esker_level_lz4_bytes" in "stats/shapes.rs";
                    /// Bytes of blocks of a level that are compressed with Zstandard.
                    zstd_bytes: gauge bytes "esker_level_zstd_bytes" in "stats/shapes.rs";
                    /// Bytes of run segments of a level of which nothing was read since the
                    /// database was opened, so that it is not known how they are compressed.
                    unread_bytes: gauge bytes "esker_level_unread_bytes" in "stats/shapes.rs";
                    /// Bytes of separated values to which a level refers, whatever their
                    /// compression.
                    value_bytes: gauge bytes "esker_level_value_bytes" in "stats/shapes.rs";
                    /// Those of them that lie in value segments which are known to be
                    /// compressed with Zstandard.
                    value_zstd_bytes: gauge bytes "esker_level_value_zstd_bytes"
                        in "stats/shapes.rs";
                }
            }
        }
    };
}
pub(super) use metrics;
