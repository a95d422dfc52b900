/* Branches and named snapshots: databases in one directory that share what they have in common. */
#include "check.h"

static esker_keyspace *stock_of(const esker_db *db) {
  esker_keyspace *keyspace = NULL;
  OK(esker_keyspace_open(db, "stock", ESKER_NUL, NULL, &keyspace, &error));
  return keyspace;
}

/* Whether a list has exactly this name, or none. */
static bool lists(esker_list *list, const char *name) {
  size_t length = 0;
  const char *first = esker_list_get(list, 0, &length);
  bool result = name == NULL ? esker_list_len(list) == 0
                             : esker_list_len(list) == 1 && same(first, length, name);
  esker_list_free(list);
  return result;
}

static void branches(const esker_db *db) {
  esker_db *trial = NULL, *again = NULL;
  esker_keyspace *stock = stock_of(db), *other;
  esker_list *names = NULL;
  esker_snapshot *snapshot = NULL;
  esker_batch *batch = esker_batch_new();
  esker_txn *txn = NULL;
  esker_iter *iter = NULL;
  esker_value *value = NULL;
  esker_error *told = NULL;
  size_t length = 0;
  bool dropped = false;
  OK(esker_put(stock, T("nails"), T("100"), 0, &error));
  OK(esker_branch(db, "trial", ESKER_NUL, &trial, &error));
  CHECK(strcmp(esker_db_branch_name(trial, &length), "trial") == 0 && length == 5);
  CHECK(esker_db_branch_name(db, &length) == NULL && length == 0);
  CHECK(esker_db_made_at(trial) > 1600000000000 && esker_db_made_at(db) == 0);
  CHECK(strcmp(esker_db_path(trial, NULL), esker_db_path(db, NULL)) == 0);

  /* Each goes its own way, by writes, batches and transactions, and reads by its own handles. */
  other = stock_of(trial);
  CHECK(holds(other, "nails", "100"));
  OK(esker_put(other, T("nails"), T("90"), 0, &error));
  OK(esker_batch_put(batch, other, T("screws"), T("5"), &error));
  OK(esker_write(trial, batch, 0, NULL, &error));
  OK(esker_snapshot_new(trial, &snapshot, &error));
  OK(esker_txn_begin(trial, 0, &txn, &error));
  OK(esker_txn_put(txn, other, T("pins"), T("1"), &error));
  OK(esker_txn_commit(txn, NULL, &error));
  esker_txn_free(txn);
  CHECK(holds(stock, "nails", "100") && holds(stock, "screws", NULL) && holds(stock, "pins", NULL));
  CHECK(holds(other, "nails", "90") && holds(other, "screws", "5") && holds(other, "pins", "1"));
  OK(esker_snapshot_get(snapshot, other, T("pins"), &value, &error));
  CHECK(value == NULL);
  OK(esker_iter_new(other, snapshot, NULL, 0, NULL, 0, &iter, &error));
  OK(esker_iter_last(iter, &error));
  CHECK(same(esker_iter_key(iter, &length), 6, "screws"));

  OK(esker_branches(trial, &names, &error));
  CHECK(lists(names, "trial"));
  FAILS(ESKER_BRANCH_EXISTS, esker_branch(db, T("trial"), &again, &error));
  CHECK(again == NULL);
  OK(esker_branch_open(db, T("trial"), &again, &error));
  esker_db_free(again);
  FAILS(ESKER_INVALID_ARGUMENT, esker_branch(db, "", 0, &again, &error));
  FAILS(ESKER_MISUSE, esker_branch(db, NULL, ESKER_NUL, &again, &error));
  FAILS(ESKER_MISUSE, esker_branch(NULL, "x", 1, &again, &error));
  FAILS(ESKER_MISUSE, esker_branch(db, "x", 1, NULL, &error));
  CHECK(esker_branch_open(db, T("none"), &again, &told) == ESKER_BRANCH_MISSING);
  CHECK(again == NULL && strcmp(esker_error_branch(told, &length), "none") == 0 && length == 4);
  esker_error_free(told);
  /* A branch is no named snapshot. */
  FAILS(ESKER_BRANCH_MISSING, esker_named_snapshot_open(db, T("trial"), &again, &error));

  OK(esker_branch_drop(db, T("trial"), &dropped, &error));
  CHECK(dropped);
  OK(esker_branch_drop(db, T("trial"), &dropped, &error));
  CHECK(!dropped);
  OK(esker_branch_drop(db, T("trial"), NULL, &error));
  OK(esker_branches(db, &names, &error));
  CHECK(lists(names, NULL));
  CHECK(esker_put(other, T("k"), T("v"), 0, NULL) != ESKER_OK);
  OK(esker_iter_first(iter, &error));
  CHECK(same(esker_iter_key(iter, &length), 5, "nails"));
  CHECK(holds(stock, "nails", "100"));
  esker_iter_free(iter);
  esker_snapshot_free(snapshot);
  esker_batch_free(batch);
  esker_keyspace_free(other);
  esker_keyspace_free(stock);
  esker_db_free(trial);
}

static void named_snapshots(const esker_db *db) {
  esker_keyspace *stock = stock_of(db);
  OK(esker_put(stock, T("nails"), T("monday's"), 0, &error));
  OK(esker_named_snapshot(db, "monday", ESKER_NUL, &error));
  FAILS(ESKER_BRANCH_EXISTS, esker_named_snapshot(db, "monday", ESKER_NUL, &error));
  FAILS(ESKER_MISUSE, esker_named_snapshot(db, NULL, 3, &error));
  OK(esker_put(stock, T("nails"), T("tuesday's"), 0, &error));
  esker_keyspace_free(stock);
}

/* In the next life of the database. */
static void what_stays(const esker_db *db) {
  esker_db *monday = NULL, *trial = NULL;
  esker_keyspace *stock = stock_of(db), *then, *changed;
  esker_list *names = NULL;
  bool dropped = false;
  OK(esker_named_snapshots(db, &names, &error));
  CHECK(lists(names, "monday"));
  OK(esker_named_snapshot_open(db, "monday", ESKER_NUL, &monday, &error));
  then = stock_of(monday);
  CHECK(holds(then, "nails", "monday's") && holds(stock, "nails", "tuesday's"));
  FAILS(ESKER_READ_ONLY, esker_put(then, T("nails"), T("no"), 0, &error));
  OK(esker_branch(monday, "trial", ESKER_NUL, &trial, &error));
  changed = stock_of(trial);
  OK(esker_put(changed, T("nails"), T("changed"), 0, &error));
  CHECK(holds(changed, "nails", "changed") && holds(then, "nails", "monday's"));
  OK(esker_named_snapshot_drop(db, T("monday"), &dropped, &error));
  CHECK(dropped && holds(changed, "nails", "changed"));
  OK(esker_named_snapshot_drop(db, T("monday"), &dropped, &error));
  CHECK(!dropped);
  esker_keyspace_free(changed);
  esker_keyspace_free(then);
  esker_keyspace_free(stock);
  esker_db_free(trial);
  esker_db_free(monday);
}

int main(int count, char **arguments) {
  const char *path;
  esker_db *db = NULL, *branch = NULL;
  esker_keyspace *stock;
  esker_list *names = NULL;
  CHECK(count == 2);
  path = below(arguments[1], "db");
  OK(esker_open(path, ESKER_NUL, NULL, &db, &error));
  branches(db);
  named_snapshots(db);
  OK(esker_close(db, &error));
  esker_db_free(db);

  OK(esker_open(path, ESKER_NUL, NULL, &db, &error));
  what_stays(db);
  /* To close a branch is to close the directory. */
  OK(esker_branch_open(db, "trial", ESKER_NUL, &branch, &error));
  stock = stock_of(db);
  OK(esker_close(branch, &error));
  FAILS(ESKER_CLOSED, esker_put(stock, T("k"), T("v"), 0, &error));
  FAILS(ESKER_CLOSED, esker_branches(db, &names, &error));
  CHECK(names == NULL);
  esker_keyspace_free(stock);
  esker_db_free(branch);
  esker_db_free(db);
  puts("branches: ok");
  return 0;
}
