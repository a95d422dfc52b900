//! What C has of the interface of Rust, method by method: `docs/c.md` names what it has not.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use support::{package, workspace};

/// The types whose methods read, write and manage a database.
const TYPES: &[&str] = &[
    "Batch",
    "Cursor",
    "Db",
    "Ingestion",
    "Iter",
    "Keyspace",
    "Observed",
    "Savepoint",
    "Snapshot",
    "Transaction",
    "TransactionIter",
    "ValueReader",
    "repair",
];

/// Methods that belong to traits of the language.
const OF_TRAITS: &[&str] =
    &["clone", "consume", "default", "drop", "eq", "fill_buf", "fmt", "next_back", "next"];

/// Each method that C has, or whose work a function of C does, and that function, without `esker_`.
const IN_C: &[(&str, &str)] = &[
    ("Batch::clear", "batch_clear"),
    ("Batch::insert", "batch_put"),
    ("Batch::insert_with_ttl", "batch_put_ttl"),
    ("Batch::is_empty", "batch_len"),
    ("Batch::len", "batch_len"),
    ("Batch::merge", "batch_merge"),
    ("Batch::new", "batch_new"),
    ("Batch::remove", "batch_delete"),
    ("Batch::remove_prefix", "batch_delete_prefix"),
    ("Batch::remove_range", "batch_delete_range"),
    ("Cursor::error", "iter_error"),
    ("Cursor::key", "iter_key"),
    ("Cursor::next", "iter_next"),
    ("Cursor::prev", "iter_prev"),
    ("Cursor::seek", "iter_seek"),
    ("Cursor::seek_back", "iter_seek_back"),
    ("Cursor::seek_to_first", "iter_first"),
    ("Cursor::seek_to_last", "iter_last"),
    ("Cursor::valid", "iter_valid"),
    ("Cursor::value", "iter_value"),
    ("Db::begin", "txn_begin"),
    ("Db::begin_with", "txn_begin_locking"),
    ("Db::branch", "branch"),
    ("Db::branch_name", "db_branch_name"),
    ("Db::branches", "branches"),
    ("Db::checkpoint", "checkpoint"),
    ("Db::close", "close"),
    ("Db::compact", "compact"),
    ("Db::compact_until", "compact_until"),
    ("Db::contains_key", "contains"),
    ("Db::default_keyspace", "keyspace_open"),
    ("Db::drop_branch", "branch_drop"),
    ("Db::drop_keyspace", "drop_keyspace"),
    ("Db::drop_named_snapshot", "named_snapshot_drop"),
    ("Db::explain_get", "explain_get"),
    ("Db::explain_put", "explain_put"),
    ("Db::explain_scan", "explain_scan"),
    ("Db::flush", "flush"),
    ("Db::flush_until", "flush_until"),
    ("Db::get", "get"),
    ("Db::get_reader", "value_reader_new"),
    ("Db::id", "db_id"),
    ("Db::ingest", "ingestion_begin"),
    ("Db::insert", "put"),
    ("Db::insert_reader", "put_from"),
    ("Db::iter", "iter_new"),
    ("Db::keyspace", "keyspace_open"),
    ("Db::keyspace_ordered", "keyspace_open"),
    ("Db::keyspace_with", "keyspace_open_with"),
    ("Db::keyspaces", "keyspaces"),
    ("Db::made_at", "db_made_at"),
    ("Db::multi_get", "multi_get"),
    ("Db::named_snapshots", "named_snapshots"),
    ("Db::open", "open"),
    ("Db::open_branch", "branch_open"),
    ("Db::open_named_snapshot", "named_snapshot_open"),
    ("Db::open_with", "open"),
    ("Db::openmetrics", "openmetrics"),
    ("Db::path", "db_path"),
    ("Db::prefix", "iter_new_prefix"),
    ("Db::range", "iter_new"),
    ("Db::remove", "delete"),
    ("Db::remove_prefix", "delete_prefix"),
    ("Db::remove_range", "delete_range"),
    ("Db::snapshot", "snapshot_new"),
    ("Db::snapshot_named", "named_snapshot"),
    ("Db::snapshot_with_label", "snapshot_new_with_label"),
    ("Db::stats", "stats"),
    ("Db::sync", "sync"),
    ("Db::transact", "transact"),
    ("Db::transact_as", "transact_locking"),
    ("Db::transact_with", "transact_locking"),
    ("Db::try_insert", "try_put"),
    ("Db::try_remove", "try_delete"),
    ("Db::try_write", "try_write"),
    ("Db::try_write_with", "try_write"),
    ("Db::verify", "verify"),
    ("Db::verify_until", "verify_until"),
    ("Db::wait_durable", "wait_durable"),
    ("Db::wait_until_idle", "wait_until_idle"),
    ("Db::write", "write"),
    ("Db::write_with", "write"),
    ("Ingestion::commit", "ingestion_commit"),
    ("Ingestion::insert", "ingestion_put"),
    ("Ingestion::insert_all", "ingestion_put_many"),
    ("Ingestion::insert_reader", "ingestion_put_from"),
    ("Ingestion::insert_results", "ingestion_put_many"),
    ("Ingestion::insert_with_ttl", "ingestion_put_ttl"),
    ("Ingestion::join", "ingestion_join"),
    ("Ingestion::merge", "ingestion_merge"),
    ("Ingestion::remove", "ingestion_delete"),
    ("Ingestion::remove_range", "ingestion_delete_range"),
    ("Ingestion::sync", "ingestion_sync"),
    ("Iter::next_back_entry", "iter_prev"),
    ("Iter::next_entry", "iter_next"),
    ("Iter::seek", "iter_seek"),
    ("Keyspace::approximate_count", "approximate_count"),
    ("Keyspace::approximate_len", "approximate_count"),
    ("Keyspace::approximate_size", "approximate_size"),
    ("Keyspace::clear", "clear"),
    ("Keyspace::compact", "keyspace_compact"),
    ("Keyspace::compact_range", "keyspace_compact"),
    ("Keyspace::compact_range_until", "keyspace_compact_until"),
    ("Keyspace::comparator_name", "keyspace_comparator"),
    ("Keyspace::compare_and_set", "compare_and_set"),
    ("Keyspace::contains_key", "contains"),
    ("Keyspace::count", "count"),
    ("Keyspace::cursor", "iter_new"),
    ("Keyspace::cursor_in", "iter_new"),
    ("Keyspace::explain_get", "explain_get"),
    ("Keyspace::explain_put", "explain_put"),
    ("Keyspace::explain_scan", "explain_scan"),
    ("Keyspace::get", "get"),
    ("Keyspace::get_into", "get_copy"),
    ("Keyspace::get_pinned", "get"),
    ("Keyspace::get_reader", "value_reader_new"),
    ("Keyspace::get_with", "get_copy"),
    ("Keyspace::ingest", "ingestion_put_many"),
    ("Keyspace::insert", "put"),
    ("Keyspace::insert_if_absent", "insert_if_absent"),
    ("Keyspace::insert_reader", "put_from"),
    ("Keyspace::insert_with", "put"),
    ("Keyspace::insert_with_ttl", "put_ttl"),
    ("Keyspace::iter", "iter_new"),
    ("Keyspace::len", "count"),
    ("Keyspace::merge", "merge"),
    ("Keyspace::merge_operator", "keyspace_merge_operator"),
    ("Keyspace::merge_with", "merge"),
    ("Keyspace::multi_get", "multi_get"),
    ("Keyspace::name", "keyspace_name"),
    ("Keyspace::prefix", "iter_new_prefix"),
    ("Keyspace::range", "iter_new"),
    ("Keyspace::remove", "delete"),
    ("Keyspace::remove_prefix", "delete_prefix"),
    ("Keyspace::remove_range", "delete_range"),
    ("Keyspace::remove_with", "delete"),
    ("Keyspace::segments", "segments"),
    ("Keyspace::set_ttl", "keyspace_set_ttl"),
    ("Keyspace::split_points", "split_points"),
    ("Keyspace::try_insert", "try_put"),
    ("Keyspace::try_remove", "try_delete"),
    ("Keyspace::ttl", "keyspace_ttl"),
    ("Keyspace::update", "update"),
    ("Snapshot::contains_key", "snapshot_contains"),
    ("Snapshot::cursor", "iter_new"),
    ("Snapshot::cursor_in", "iter_new"),
    ("Snapshot::explain_get", "snapshot_explain_get"),
    ("Snapshot::get", "snapshot_get"),
    ("Snapshot::get_pinned", "snapshot_get"),
    ("Snapshot::get_reader", "value_reader_new"),
    ("Snapshot::get_with", "snapshot_get"),
    ("Snapshot::iter", "iter_new"),
    ("Snapshot::multi_get", "snapshot_multi_get"),
    ("Snapshot::position", "snapshot_position"),
    ("Snapshot::prefix", "iter_new_prefix"),
    ("Snapshot::range", "iter_new"),
    ("Transaction::commit", "txn_commit"),
    ("Transaction::contains_key", "txn_contains"),
    ("Transaction::get", "txn_get"),
    ("Transaction::get_for_share", "txn_get_for_share"),
    ("Transaction::get_for_update", "txn_get_for_update"),
    ("Transaction::insert", "txn_put"),
    ("Transaction::insert_with_ttl", "txn_put_ttl"),
    ("Transaction::iter", "txn_iter_new"),
    ("Transaction::merge", "txn_merge"),
    ("Transaction::multi_get", "txn_multi_get"),
    ("Transaction::prefix", "txn_iter_new_prefix"),
    ("Transaction::range", "txn_iter_new"),
    ("Transaction::remove", "txn_delete"),
    ("Transaction::remove_range", "txn_delete_range"),
    ("Transaction::rollback", "txn_rollback"),
    ("Transaction::rollback_to", "txn_rollback_to"),
    ("Transaction::savepoint", "txn_savepoint"),
    ("TransactionIter::next_back_entry", "txn_iter_next_back"),
    ("TransactionIter::next_entry", "txn_iter_next"),
    ("TransactionIter::seek", "txn_iter_seek"),
    ("ValueReader::is_empty", "value_reader_len"),
    ("ValueReader::len", "value_reader_len"),
    ("ValueReader::read", "value_reader_read"),
    ("ValueReader::seek", "value_reader_seek"),
    ("repair::plan", "repair_plan"),
    ("repair::salvage", "repair"),
];

/// The options that C has under a name of its own.
const OPTIONS: &[(&str, &str)] = &[
    ("Options::clock", "esker_options_set_clock("),
    ("Options::cold_after", "ESKER_OPTION_COLD_AFTER_MS"),
    ("Options::comparators", "esker_options_add_comparator("),
    ("Options::compaction_filters", "esker_options_add_compaction_filter("),
    ("Options::log_file_bytes", "ESKER_OPTION_LOG_SEGMENT_BYTES"),
    ("Options::max_space_amplification", "ESKER_OPTION_MAX_SPACE_PERCENT"),
    ("Options::merge_operators", "esker_options_add_merge_operator("),
    ("Options::on_event", "esker_options_set_event_callback("),
    ("Options::sync_interval", "ESKER_OPTION_SYNC_INTERVAL_MS"),
    ("KeyspaceOptions::comparator", "esker_keyspace_options_set_comparator("),
    ("KeyspaceOptions::compaction_filter", "esker_keyspace_options_set_compaction_filter("),
    ("KeyspaceOptions::merge_operator", "esker_keyspace_options_set_merge_operator("),
    ("KeyspaceOptions::ttl", "esker_keyspace_options_set_ttl("),
    ("TransactionOptions::durability", "int32_t durability"),
    ("TransactionOptions::lock_timeout", "uint64_t lock_timeout_ms"),
    ("TransactionOptions::pessimistic", "esker_txn_begin_locking("),
];

/// `Type::method` of the methods that the engine offers, and `Type::field` of what its options say.
fn in_rust() -> BTreeSet<String> {
    let listing = fs::read_to_string(workspace().join("crates/esker/api.txt")).unwrap();
    let name = |line: &str| {
        let method =
            line.strip_prefix("pub fn esker::").map(|rest| rest.split(['<', '(']).next().unwrap());
        if let Some((of, method)) = method.and_then(|method| method.rsplit_once("::")) {
            // A cursor is no iterator of the language.
            let own = !OF_TRAITS.contains(&method) || (of, method) == ("Cursor", "next");
            return (own && TYPES.contains(&of)).then(|| format!("{of}::{method}"));
        }
        let field = line.strip_prefix("pub esker::")?.split(": ").next()?;
        field.split_once("::").filter(|(of, _)| of.ends_with("Options")).map(|_| field.to_owned())
    };
    listing.lines().filter_map(name).collect()
}

/// What the section of the page names.
fn on_the_page() -> BTreeSet<String> {
    let page = fs::read_to_string(workspace().join("docs/c.md")).unwrap();
    let (_, section) = page.split_once("## What only Rust has\n").unwrap();
    let table =
        section.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| "));
    let first = table.filter_map(|line| line.split(" | ").next());
    let names = first.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

#[test]
fn the_page_names_each_method_that_only_rust_has() {
    let header = fs::read_to_string(package().join("include/esker.h")).unwrap();
    let (rust, page) = (in_rust(), on_the_page());
    let methods = IN_C.iter().map(|(rust, c)| (*rust, format!("esker_{c}(")));
    let fields = OPTIONS.iter().map(|(rust, c)| (*rust, (*c).to_owned()));
    let mut in_c: BTreeSet<String> = BTreeSet::new();
    for (rust, c) in methods.chain(fields) {
        assert!(header.contains(&c), "the header has no {c} for {rust}");
        assert!(in_c.insert(rust.to_owned()), "{rust} stands here twice");
    }
    // Most options have the same name.
    let same = |name: &&String| {
        let field = name.strip_prefix("Options::");
        field.is_some_and(|field| {
            header.contains(&format!("ESKER_OPTION_{} =", field.to_uppercase()))
        })
    };
    in_c.extend(rust.iter().filter(same).cloned());
    let gone: Vec<_> = in_c.union(&page).filter(|name| !rust.contains(*name)).collect();
    assert!(gone.is_empty(), "Rust has no {gone:?}");
    let both: Vec<_> = in_c.intersection(&page).collect();
    assert!(both.is_empty(), "the page says that only Rust has {both:?}");
    let forgotten: Vec<_> = rust.difference(&in_c).filter(|name| !page.contains(*name)).collect();
    assert!(forgotten.is_empty(), "neither is in C nor on the page: {forgotten:?}");
}
