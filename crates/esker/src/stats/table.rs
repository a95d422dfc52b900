//! The table of counters: the one place to add a counter.
//!
//! A line of the table names a counter and says what it counts. Three things follow from it: the
//! field of [`Stats`](super::Stats), the place where the counter is kept while the database is
//! open, and the counter's place in all outputs that iterate over
//! [`Stats::counters`](super::Stats::counters): JSON, the command line, the C interface and Python.
//! Only the line that counts remains to be written: `counters.add(Counter::Name, 1)` in a call,
//! `counters.background.name.fetch_add(…)` in the background, or the value of a computed counter in
//! `db/admin.rs`.

/// Passes the table to the macro `$with`.
macro_rules! counters {
    ($with:ident) => {
        $with! {
            // Counted by the threads that call the database, each in a stripe of its own.
            calls {
                /// Entries put.
                puts = Puts;
                /// Point deletes.
                deletes = Deletes;
                /// Range deletes.
                range_deletes = RangeDeletes;
                /// Batches committed, single writes included.
                commits = Commits;
                /// Point reads.
                gets = Gets;
                /// Iterators made.
                scans = Scans;
                /// Entries that iterators returned.
                scanned = Scanned;
                /// Entries that iterators skipped: deleted ones, older versions, and entries that
                /// were written after the iterator's moment.
                skipped = Skipped;
                /// How often a Bloom filter said that the key of a point read is not in a run
                /// segment, which saved the search of a block.
                filter_absent = FilterAbsent;
                /// How often a Bloom filter let a point read pass, and the run segment had no
                /// version of the key that the read could see.
                filter_false_positives = FilterFalsePositives;
                /// How often a Bloom filter let a point read pass, and the key was there.
                filter_found = FilterFound;
            }
            // Counted by flushes and compactions, which are rare enough to share a counter.
            background {
                /// Memtables flushed.
                flushes;
                /// Compactions done.
                compactions;
                /// Operands that flushes and compactions applied to a value or combined with
                /// another operand, and the values that they were applied to.
                operands_folded;
                /// Entries that flushes and compactions removed because they had expired.
                entries_expired;
                /// Entries that compaction filters removed or changed.
                entries_filtered;
                /// Run segments that compactions adopted without rewriting them.
                segments_adopted;
            }
            // Computed from other parts of the database when statistics are asked for.
            computed {
                /// Point reads that found a value.
                gets_found;
                /// Log syncs.
                syncs;
                /// Bytes of blocks read from files.
                bytes_read;
                /// Point reads that found their value in a cached block, and blocks that iterators
                /// found in the cache.
                cache_hits;
                /// Blocks read because they were not cached.
                cache_misses;
                /// Reads of blocks and indexes from files that were as fast as the system's page
                /// cache.
                page_cache_reads;
                /// Reads of blocks and indexes from files that were slower, and so came from the
                /// device.
                device_reads;
                /// Bytes that point reads read from files.
                get_bytes_read;
                /// Bytes that iterators read from files.
                scan_bytes_read;
                /// Bytes that flushes and compactions read from files.
                compaction_bytes_read;
                /// Bytes that compactions which are due have to read.
                compaction_debt;
                /// Bytes that run files take on the device.
                data_file_bytes;
                /// Bytes that log files take on the device.
                log_file_bytes;
            }
        }
    };
}
pub(super) use counters;
