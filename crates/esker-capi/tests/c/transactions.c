/* Transactions: their own writes, savepoints, conflicts, iterators, and what has ended. */
#include "check.h"

static bool sees(const esker_txn *txn, const esker_keyspace *ks, const char *key,
                 const char *expected) {
  esker_value *value = NULL;
  bool found = false, result;
  size_t length = 0;
  OK(esker_txn_get(txn, ks, T(key), &value, &error));
  OK(esker_txn_contains(txn, ks, T(key), &found, &error));
  CHECK(found == (value != NULL));
  if (value == NULL) {
    return expected == NULL;
  }
  {
    const char *data = esker_value_data(value, &length);
    result = expected != NULL && same(data, length, expected);
  }
  esker_value_free(value);
  return result;
}

static esker_txn *begin(const esker_db *db) {
  esker_txn *txn = NULL;
  OK(esker_txn_begin(db, ESKER_DURABILITY_DEFAULT, &txn, &error));
  return txn;
}

static void own_writes(const esker_db *db, const esker_keyspace *ks) {
  esker_txn *txn = begin(db);
  esker_value *values[2];
  const void *keys[2] = {"a", "x"};
  size_t lengths[2] = {1, 1};
  uint64_t point = 9, position = 0;
  OK(esker_put(ks, T("a"), T("1"), 0, &error));
  /* What was written after the begin is not seen. */
  CHECK(sees(txn, ks, "a", NULL));
  OK(esker_txn_rollback(txn, &error));
  esker_txn_free(txn);

  txn = begin(db);
  OK(esker_txn_put(txn, ks, T("b"), T("2"), &error));
  OK(esker_txn_savepoint(txn, &point, &error));
  OK(esker_txn_delete(txn, ks, T("a"), &error));
  OK(esker_txn_delete_range(txn, ks, T("b"), T("c"), &error));
  CHECK(sees(txn, ks, "a", NULL) && sees(txn, ks, "b", NULL));
  OK(esker_txn_rollback_to(txn, point, &error));
  CHECK(sees(txn, ks, "a", "1") && sees(txn, ks, "b", "2") && holds(ks, "b", NULL));
  FAILS(ESKER_INVALID_ARGUMENT, esker_txn_rollback_to(txn, 77, &error));
  OK(esker_txn_multi_get(txn, ks, keys, lengths, 2, values, &error));
  CHECK(values[0] != NULL && values[1] == NULL);
  esker_value_free(values[0]);
  OK(esker_txn_commit(txn, &position, &error));
  CHECK(position > 0);
  OK(esker_wait_durable(db, position, &error));
  CHECK(holds(ks, "b", "2"));

  /* It has ended. */
  FAILS(ESKER_MISUSE, esker_txn_commit(txn, NULL, &error));
  FAILS(ESKER_MISUSE, esker_txn_put(txn, ks, T("k"), T("v"), &error));
  FAILS(ESKER_MISUSE, esker_txn_rollback(txn, &error));
  FAILS(ESKER_MISUSE, esker_txn_savepoint(txn, &point, &error));
  FAILS(ESKER_MISUSE, esker_txn_get(txn, ks, T("k"), values, &error));
  esker_txn_free(txn);
  esker_txn_free(NULL);
}

static void conflicts(const esker_db *db, const esker_keyspace *ks) {
  esker_txn *txn = begin(db);
  CHECK(sees(txn, ks, "seat", NULL));
  OK(esker_txn_put(txn, ks, T("seat"), T("ann"), &error));
  OK(esker_put(ks, T("seat"), T("bob"), 0, &error));
  FAILS(ESKER_CONFLICT, esker_txn_commit(txn, NULL, &error));
  CHECK(holds(ks, "seat", "bob"));
  esker_txn_free(txn);
}

static bool took(esker_txn_iter *iter, bool front, const char *expected) {
  bool found = true;
  size_t length = 99, value_length = 99;
  const char *key, *value;
  if (front) {
    OK(esker_txn_iter_next(iter, &found, &error));
  } else {
    OK(esker_txn_iter_next_back(iter, &found, &error));
  }
  key = esker_txn_iter_key(iter, &length);
  value = esker_txn_iter_value(iter, &value_length);
  if (expected == NULL) {
    return !found && key == NULL && value == NULL && length == 0 && value_length == 0;
  }
  return found && same(key, length, expected) && value != NULL;
}

static void iterators(const esker_db *db, const esker_keyspace *ks) {
  esker_txn *txn = begin(db);
  esker_txn_iter *iter = NULL;
  OK(esker_delete_range(ks, NULL, 0, NULL, 0, 0, &error));
  esker_txn_free(txn);
  OK(esker_put(ks, T("b"), T("stored"), 0, &error));
  OK(esker_put(ks, T("d"), T("stored"), 0, &error));
  txn = begin(db);
  OK(esker_txn_put(txn, ks, T("a"), T("own"), &error));
  OK(esker_txn_put(txn, ks, T("c"), T("own"), &error));
  OK(esker_txn_put(txn, ks, T("e"), T("own"), &error));
  OK(esker_txn_iter_new(txn, ks, NULL, 0, T("e"), &iter, &error));
  CHECK(esker_txn_iter_key(iter, NULL) == NULL);
  CHECK(took(iter, true, "a") && took(iter, true, "b") && took(iter, false, "d"));
  CHECK(took(iter, true, "c") && took(iter, true, NULL) && took(iter, false, NULL));
  OK(esker_txn_iter_seek(iter, T("b"), &error));
  CHECK(took(iter, true, "b"));
  {
    esker_txn_iter *below_prefix = NULL;
    OK(esker_txn_iter_new_prefix(txn, ks, T("d"), &below_prefix, &error));
    CHECK(took(below_prefix, true, "d") && took(below_prefix, true, NULL));
    esker_txn_iter_free(below_prefix);
  }
  /* It outlives its transaction. */
  OK(esker_txn_rollback(txn, &error));
  esker_txn_free(txn);
  CHECK(took(iter, true, "c"));
  esker_txn_iter_free(iter);
  esker_txn_iter_free(NULL);
}

/* Locks: the second writer of a key waits in vain, and the first one commits. */
static void locking(const esker_db *db, const esker_keyspace *ks) {
  esker_txn *first = NULL, *second = NULL;
  esker_value *value = NULL;
  OK(esker_txn_begin_locking(db, ESKER_DURABILITY_DEFAULT, 1, &first, &error));
  OK(esker_txn_begin_locking(db, ESKER_DURABILITY_DEFAULT, 1, &second, &error));
  OK(esker_txn_get_for_update(first, ks, T("locked"), &value, &error));
  CHECK(value == NULL);
  FAILS(ESKER_LOCK_TIMEOUT, esker_txn_get_for_share(second, ks, T("locked"), &value, &error));
  OK(esker_txn_get_for_share(first, ks, T("shared"), &value, &error));
  OK(esker_txn_get_for_share(second, ks, T("shared"), &value, &error));
  FAILS(ESKER_LOCK_TIMEOUT, esker_txn_put(second, ks, T("shared"), T("v"), &error));
  FAILS(ESKER_LOCK_TIMEOUT, esker_txn_get_for_update(second, ks, T("locked"), &value, &error));
  OK(esker_txn_put(first, ks, T("locked"), T("first"), &error));
  OK(esker_txn_rollback(second, &error));
  OK(esker_txn_commit(first, NULL, &error));
  CHECK(holds(ks, "locked", "first"));
  esker_txn_free(first);
  esker_txn_free(second);
}

/* What the function of a transaction shall do. */
struct Plan {
  const esker_keyspace *ks;
  int calls, conflicts;
  int answer;
  esker_txn *seen;
};

/* Counts under "n"; somebody else writes first, as often as the plan says. */
static int32_t count_one(void *context, esker_txn *txn, esker_error **error) {
  struct Plan *plan = context;
  esker_value *value = NULL;
  char number[2] = "0";
  esker_code code = esker_txn_get_for_update(txn, plan->ks, T("n"), &value, error);
  if (code != ESKER_OK) {
    return code;
  }
  if (value != NULL) {
    number[0] = (char)(esker_value_data(value, NULL)[0] + 1);
    esker_value_free(value);
  }
  plan->calls++;
  plan->seen = txn;
  if (plan->calls <= plan->conflicts) {
    OK(esker_put(plan->ks, T("n"), T("5"), 0, &error));
  }
  /* It is not the function's to end. */
  FAILS(ESKER_MISUSE, esker_txn_commit(txn, NULL, &error));
  FAILS(ESKER_MISUSE, esker_txn_rollback(txn, &error));
  esker_txn_free(txn);
  OK(esker_txn_put(txn, plan->ks, T("n"), number, 1, &error));
  return plan->answer;
}

/* Fails with the error of a call. */
static int32_t fail(void *context, esker_txn *txn, esker_error **error) {
  struct Plan *plan = context;
  plan->calls++;
  OK(esker_txn_put(txn, plan->ks, T("n"), T("x"), &error));
  return esker_txn_put(txn, plan->ks, NULL, 7, T("x"), error);
}

static void begun_anew(const esker_db *db, const esker_keyspace *ks) {
  struct Plan plan = {NULL, 0, 2, 0, NULL};
  esker_error *told = NULL;
  plan.ks = ks;
  OK(esker_transact(db, ESKER_DURABILITY_PROCESS, count_one, &plan, &error));
  CHECK(plan.calls == 3 && holds(ks, "n", "6"));
  plan.calls = plan.conflicts = 0;
  OK(esker_transact_locking(db, ESKER_DURABILITY_DEFAULT, 1000, count_one, &plan, &error));
  CHECK(plan.calls == 1 && holds(ks, "n", "7"));
  /* A number of its own, a code, and the code of a call: given up. */
  plan.answer = 4711;
  FAILS(ESKER_ABORTED, esker_transact(db, 0, count_one, &plan, &error));
  plan.answer = -1;
  FAILS(ESKER_ABORTED, esker_transact(db, 0, count_one, &plan, &error));
  plan.answer = ESKER_READ_ONLY;
  FAILS(ESKER_READ_ONLY, esker_transact(db, 0, count_one, &plan, &error));
  plan.calls = 0;
  CHECK(esker_transact(db, 0, fail, &plan, &told) == ESKER_MISUSE && plan.calls == 1);
  CHECK(strstr(esker_error_message(told), "key is NULL") != NULL);
  esker_error_free(told);
  CHECK(holds(ks, "n", "7"));
  /* It begins anew 1000 times, not for ever. */
  plan.calls = 0;
  plan.conflicts = 100000;
  plan.answer = 0;
  FAILS(ESKER_CONFLICT, esker_transact(db, 0, count_one, &plan, &error));
  CHECK(plan.calls == 1000 && holds(ks, "n", "5"));
  plan.calls = plan.conflicts = 0;
  plan.answer = ESKER_DEADLOCK;
  FAILS(ESKER_DEADLOCK, esker_transact(db, 0, count_one, &plan, &error));
  CHECK(plan.calls == 1000);
  FAILS(ESKER_MISUSE, esker_transact(db, 0, NULL, &plan, &error));
  FAILS(ESKER_MISUSE, esker_transact(NULL, 0, count_one, &plan, &error));
}

/* Adds an x; removes the value that has three. */
static void add_x(void *context, const char *existing, size_t existing_len, esker_sink *sink) {
  char longer[4] = "xxx";
  (*(int *)context)++;
  CHECK(existing != NULL || existing_len == 0);
  if (existing_len < 3) {
    CHECK(esker_sink_put(sink, longer, existing_len + 1) == ESKER_OK);
  }
}

static void conditional_writes(const esker_keyspace *ks) {
  bool done = false;
  esker_value *value = NULL;
  size_t length = 0;
  int calls = 0, turn;
  OK(esker_insert_if_absent(ks, T("c"), T("1"), &done, &error));
  CHECK(done);
  OK(esker_insert_if_absent(ks, T("c"), T("2"), &done, &error));
  CHECK(!done && holds(ks, "c", "1"));
  OK(esker_compare_and_set(ks, T("c"), T("2"), T("3"), &done, &error));
  CHECK(!done && holds(ks, "c", "1"));
  OK(esker_compare_and_set(ks, T("c"), T("1"), T("3"), &done, &error));
  CHECK(done && holds(ks, "c", "3"));
  OK(esker_compare_and_set(ks, T("c"), T("3"), NULL, 0, &done, &error));
  CHECK(done && holds(ks, "c", NULL));
  OK(esker_compare_and_set(ks, T("c"), NULL, 0, T(""), &done, &error));
  CHECK(done && holds(ks, "c", ""));
  for (turn = 1; turn <= 3; turn++) {
    OK(esker_update(ks, T("u"), add_x, &calls, &value, &error));
    CHECK(same(esker_value_data(value, &length), (size_t)turn, "xxx" + 3 - turn));
    esker_value_free(value);
  }
  OK(esker_update(ks, T("u"), add_x, &calls, &value, &error));
  CHECK(value == NULL && holds(ks, "u", NULL) && calls >= 4);
  OK(esker_update(ks, T("u"), add_x, &calls, NULL, &error));
  CHECK(holds(ks, "u", "x"));
  FAILS(ESKER_MISUSE, esker_update(ks, T("u"), NULL, NULL, &value, &error));
}

int main(int count, char **arguments) {
  esker_db *db = NULL;
  esker_keyspace *ks = NULL;
  esker_txn *txn, *late = NULL;
  esker_txn_iter *iter = NULL;
  bool found = true;
  CHECK(count == 2);
  OK(esker_open(below(arguments[1], "db"), ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "k", 1, NULL, &ks, &error));
  own_writes(db, ks);
  conflicts(db, ks);
  locking(db, ks);
  begun_anew(db, ks);
  conditional_writes(ks);
  iterators(db, ks);

  /* Closed under an open transaction. */
  txn = begin(db);
  OK(esker_txn_put(txn, ks, T("lost"), T("v"), &error));
  OK(esker_txn_iter_new(txn, ks, NULL, 0, NULL, 0, &iter, &error));
  OK(esker_close(db, &error));
  FAILS(ESKER_CLOSED, esker_txn_begin(db, 0, &late, &error));
  CHECK(late == NULL);
  FAILS(ESKER_CLOSED, esker_txn_iter_next(iter, &found, &error));
  CHECK(!found);
  FAILS(ESKER_CLOSED, esker_txn_commit(txn, NULL, &error));
  esker_txn_free(txn);
  esker_txn_iter_free(iter);
  esker_keyspace_free(ks);
  esker_db_free(db);
  puts("transactions: ok");
  return 0;
}
