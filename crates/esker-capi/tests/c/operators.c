/* Merge operators and compaction filters of a C program, and times to live. */
#include "check.h"

static int destroyed;

static void destroy(void *context) {
  CHECK(context == &destroyed);
  destroyed++;
}

/* Joins with commas; the operand "bad" cannot be applied, and "clear" removes the value. */
static int join(void *context, const char *key, size_t key_len, const char *existing,
                size_t existing_len, const char *const *operands, const size_t *operand_lens,
                size_t count, esker_sink *sink) {
  char joined[256];
  size_t length = existing_len, i;
  bool there = existing != NULL;
  CHECK(context == &destroyed && key_len > 0 && key[0] != 0 && count > 0);
  CHECK(existing_len < sizeof joined);
  if (there && existing_len > 0) {
    memcpy(joined, existing, existing_len);
  }
  for (i = 0; i < count; i++) {
    if (same(operands[i], operand_lens[i], "bad")) {
      return 7;
    }
    if (same(operands[i], operand_lens[i], "clear")) {
      there = false;
      length = 0;
      continue;
    }
    CHECK(length + operand_lens[i] + 1 < sizeof joined);
    if (there) {
      joined[length++] = ',';
    }
    memcpy(joined + length, operands[i], operand_lens[i]);
    length += operand_lens[i];
    there = true;
  }
  if (there) {
    CHECK(esker_sink_put(sink, joined, length) == ESKER_OK);
  }
  return 0;
}

static void join_some(void *context, const char *key, size_t key_len, const char *const *operands,
                      const size_t *operand_lens, size_t count, esker_sink *sink) {
  size_t i;
  for (i = 0; i < count; i++) {
    if (same(operands[i], operand_lens[i], "clear")) {
      return;
    }
  }
  join(context, key, key_len, NULL, 0, operands, operand_lens, count, sink);
}

static int filter(void *context, const char *key, size_t key_len, const char *value,
                  size_t value_len, esker_sink *sink) {
  CHECK(context == &destroyed && key_len > 0 && (value != NULL || value_len == 0));
  switch (key[0]) {
  case 'r':
    return 1;
  case 'c':
    CHECK(esker_sink_put(sink, "changed", 7) == ESKER_OK);
    return 2;
  default:
    return 0;
  }
}

static esker_db *open_with_callbacks(const char *path) {
  esker_options *options = esker_options_new();
  esker_db *db = NULL;
  OK(esker_options_add_merge_operator(options, "join", ESKER_NUL, join, join_some, &destroyed,
                                      destroy, &error));
  OK(esker_options_add_compaction_filter(options, "tidy", ESKER_NUL, filter, &destroyed, destroy,
                                         &error));
  FAILS(ESKER_MISUSE, esker_options_add_merge_operator(options, "x", 1, NULL, NULL, &destroyed,
                                                       destroy, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_options_add_compaction_filter(options, "", 0, filter,
                                                                    &destroyed, destroy, &error));
  OK(esker_open(path, ESKER_NUL, options, &db, &error));
  esker_options_free(options);
  return db;
}

static void merges(const esker_db *db) {
  esker_keyspace_options *options = esker_keyspace_options_new();
  esker_keyspace *ks = NULL, *plain = NULL;
  esker_batch *batch = esker_batch_new();
  esker_value *value = NULL;
  OK(esker_keyspace_options_set_merge_operator(options, "join", ESKER_NUL, &error));
  OK(esker_keyspace_open_with(db, "lists", ESKER_NUL, options, &ks, &error));
  esker_keyspace_options_free(options);
  OK(esker_merge(ks, T("k"), T("a"), ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_merge(ks, T("k"), T("b"), ESKER_DURABILITY_PROCESS, &error));
  CHECK(holds(ks, "k", "a,b"));
  OK(esker_batch_merge(batch, ks, T("k"), T("c"), &error));
  OK(esker_batch_put(batch, ks, T("l"), T("x"), &error));
  OK(esker_batch_merge(batch, ks, T("l"), T("y"), &error));
  OK(esker_write(db, batch, ESKER_DURABILITY_DEFAULT, NULL, &error));
  CHECK(holds(ks, "k", "a,b,c") && holds(ks, "l", "x,y"));
  OK(esker_compact(db, &error));
  CHECK(holds(ks, "k", "a,b,c"));
  OK(esker_merge(ks, T("k"), T("clear"), ESKER_DURABILITY_DEFAULT, &error));
  CHECK(holds(ks, "k", NULL));
  OK(esker_merge(ks, T("k"), T("bad"), ESKER_DURABILITY_DEFAULT, &error));
  FAILS(ESKER_MERGE_FAILED, esker_get(ks, T("k"), &value, &error));
  CHECK(value == NULL && holds(ks, "l", "x,y"));
  OK(esker_put(ks, T("k"), T("new"), ESKER_DURABILITY_DEFAULT, &error));
  CHECK(holds(ks, "k", "new"));
  OK(esker_keyspace_open(db, "plain", ESKER_NUL, NULL, &plain, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_merge(plain, T("k"), T("v"), 0, &error));
  esker_keyspace_free(plain);
  esker_keyspace_free(ks);
  esker_batch_free(batch);
  CHECK(esker_sink_put(NULL, "x", 1) == ESKER_MISUSE);
}

/* Operands and times to live within transactions. */
static void in_transactions(const esker_db *db) {
  esker_keyspace *ks = NULL, *plain = NULL;
  esker_txn *txn = NULL;
  esker_value *value = NULL;
  size_t length = 0;
  OK(esker_keyspace_open(db, "lists", ESKER_NUL, NULL, &ks, &error));
  OK(esker_keyspace_merge_operator(ks, &value, &error));
  CHECK(strcmp(esker_value_data(value, NULL), "join") == 0);
  esker_value_free(value);
  OK(esker_put(ks, T("tx"), T("stored"), 0, &error));
  OK(esker_txn_begin(db, ESKER_DURABILITY_DEFAULT, &txn, &error));
  OK(esker_txn_merge(txn, ks, T("tx"), T("own"), &error));
  /* Whoever only merges conflicts with nobody. */
  OK(esker_merge(ks, T("tx"), T("other"), 0, &error));
  OK(esker_txn_merge(txn, ks, T("new"), T("a"), &error));
  OK(esker_txn_merge(txn, ks, T("new"), T("b"), &error));
  OK(esker_txn_put_ttl(txn, ks, T("gone"), T("v"), 0, &error));
  OK(esker_txn_put_ttl(txn, ks, T("stays"), T("v"), 3600 * 1000, &error));
  OK(esker_txn_get(txn, ks, T("new"), &value, &error));
  CHECK(same(esker_value_data(value, &length), 3, "a,b") && length == 3);
  esker_value_free(value);
  OK(esker_txn_get(txn, ks, T("gone"), &value, &error));
  CHECK(value != NULL);
  esker_value_free(value);
  CHECK(holds(ks, "new", NULL) && holds(ks, "stays", NULL));
  OK(esker_txn_commit(txn, NULL, &error));
  esker_txn_free(txn);
  CHECK(holds(ks, "tx", "stored,other,own") && holds(ks, "new", "a,b"));
  CHECK(holds(ks, "gone", NULL) && holds(ks, "stays", "v"));
  /* Whoever reads the key, too, does. */
  OK(esker_txn_begin(db, ESKER_DURABILITY_DEFAULT, &txn, &error));
  OK(esker_txn_merge(txn, ks, T("tx"), T("lost"), &error));
  OK(esker_txn_get(txn, ks, T("tx"), &value, &error));
  esker_value_free(value);
  OK(esker_merge(ks, T("tx"), T("won"), 0, &error));
  FAILS(ESKER_CONFLICT, esker_txn_commit(txn, NULL, &error));
  CHECK(holds(ks, "tx", "stored,other,own,won"));
  esker_txn_free(txn);
  OK(esker_keyspace_open(db, "plain", ESKER_NUL, NULL, &plain, &error));
  OK(esker_txn_begin(db, ESKER_DURABILITY_DEFAULT, &txn, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_txn_merge(txn, plain, T("k"), T("v"), &error));
  FAILS(ESKER_MISUSE, esker_txn_merge(NULL, ks, T("k"), T("v"), &error));
  FAILS(ESKER_MISUSE, esker_txn_put_ttl(txn, ks, NULL, 3, T("v"), 1, &error));
  esker_txn_free(txn);
  esker_keyspace_free(plain);
  esker_keyspace_free(ks);
}

static uint64_t now;

static uint64_t tell_time(void *context) {
  CHECK(context == &destroyed);
  return now;
}

/* What expires is gone when its time has come by the clock of the program. */
static void clocks(const char *path) {
  esker_options *options = esker_options_new();
  esker_keyspace *ks = NULL;
  esker_txn *txn = NULL;
  esker_db *db = NULL;
  esker_value *value = NULL;
  int before = destroyed;
  now = 1000;
  FAILS(ESKER_MISUSE, esker_options_set_clock(options, NULL, &destroyed, destroy, &error));
  OK(esker_options_set_clock(options, tell_time, &destroyed, destroy, &error));
  OK(esker_open(path, ESKER_NUL, options, &db, &error));
  esker_options_free(options);
  OK(esker_keyspace_open(db, "k", 1, NULL, &ks, &error));
  CHECK(esker_keyspace_ttl(ks) == 0 && esker_keyspace_ttl(NULL) == 0);
  CHECK(esker_keyspace_comparator(ks, NULL) == NULL);
  OK(esker_keyspace_merge_operator(ks, &value, &error));
  CHECK(value == NULL);
  OK(esker_put(ks, T("forever"), T("v"), 0, &error));
  OK(esker_keyspace_set_ttl(ks, 500, &error));
  CHECK(esker_keyspace_ttl(ks) == 500);
  OK(esker_put(ks, T("short"), T("v"), 0, &error));
  OK(esker_txn_begin(db, ESKER_DURABILITY_DEFAULT, &txn, &error));
  OK(esker_txn_put_ttl(txn, ks, T("long"), T("v"), 2000, &error));
  now = 2000;
  OK(esker_txn_commit(txn, NULL, &error));
  esker_txn_free(txn);
  CHECK(holds(ks, "short", NULL) && holds(ks, "long", "v") && holds(ks, "forever", "v"));
  now = 4001;
  CHECK(holds(ks, "long", NULL) && holds(ks, "forever", "v"));
  OK(esker_keyspace_set_ttl(ks, 0, &error));
  CHECK(esker_keyspace_ttl(ks) == 0);
  esker_keyspace_free(ks);
  OK(esker_close(db, &error));
  esker_db_free(db);
  CHECK(destroyed == before + 1);
}

static int events_told;
static int closed_told;

static void tell_event(void *context, const char *json, size_t len) {
  char text[8192];
  CHECK(context == &destroyed && len > 2 && len < sizeof text);
  CHECK(json[0] == '{' && json[len - 1] == '}' && memchr(json, '\n', len) == NULL);
  memcpy(text, json, len);
  text[len] = 0;
  events_told++;
  closed_told += strstr(text, "\"event\":\"database_closed\"") != NULL;
}

/* The callback is told about each event, the last one before close returns. */
static void events(const char *path) {
  esker_options *options = esker_options_new();
  esker_db *db = NULL;
  int before = destroyed;
  FAILS(ESKER_MISUSE, esker_options_set_event_callback(options, NULL, &destroyed, destroy, &error));
  OK(esker_options_set_event_callback(options, tell_event, &destroyed, destroy, &error));
  OK(esker_open(path, ESKER_NUL, options, &db, &error));
  esker_options_free(options);
  OK(esker_flush(db, &error));
  OK(esker_close(db, &error));
  /* Manifest read, log replayed, opened, closed. */
  CHECK(events_told >= 4 && closed_told == 1);
  esker_db_free(db);
  CHECK(destroyed == before + 1);
}

static int backwards(void *context, const char *a, size_t a_len, const char *b, size_t b_len) {
  size_t shorter = a_len < b_len ? a_len : b_len;
  int result = shorter == 0 ? 0 : memcmp(b, a, shorter);
  (void)context;
  return result != 0 ? result : a_len < b_len ? 1 : -(a_len > b_len);
}

static void filters_and_times(const esker_db *db) {
  esker_keyspace_options *options = esker_keyspace_options_new();
  esker_comparator *comparator = NULL;
  esker_batch *batch = esker_batch_new();
  esker_keyspace *ks = NULL;
  esker_iter *iter = NULL;
  size_t length = 0;
  OK(esker_keyspace_options_set_compaction_filter(options, "tidy", ESKER_NUL, &error));
  OK(esker_keyspace_open_with(db, "filtered", ESKER_NUL, options, &ks, &error));
  OK(esker_put(ks, T("remove"), T("v"), 0, &error));
  OK(esker_put(ks, T("change"), T("v"), 0, &error));
  OK(esker_put(ks, T("keep"), T("v"), 0, &error));
  OK(esker_compact(db, &error));
  CHECK(holds(ks, "remove", NULL) && holds(ks, "change", "changed") && holds(ks, "keep", "v"));
  esker_keyspace_free(ks);
  esker_keyspace_options_free(options);

  options = esker_keyspace_options_new();
  OK(esker_comparator_new("back", ESKER_NUL, backwards, NULL, NULL, &comparator, &error));
  OK(esker_keyspace_options_set_comparator(options, comparator, &error));
  esker_comparator_free(comparator);
  OK(esker_keyspace_options_set_ttl(options, 3600 * 1000, &error));
  OK(esker_keyspace_open_with(db, "sessions", ESKER_NUL, options, &ks, &error));
  OK(esker_put(ks, T("ann"), T("hour"), 0, &error));
  OK(esker_put_ttl(ks, T("bob"), T("gone"), 0, &error));
  OK(esker_put_ttl(ks, T("eve"), T("day"), 86400 * 1000, &error));
  OK(esker_batch_put_ttl(batch, ks, T("dan"), T("gone"), 0, &error));
  OK(esker_write(db, batch, ESKER_DURABILITY_DEFAULT, NULL, &error));
  CHECK(strcmp(esker_keyspace_comparator(ks, &length), "back") == 0 && length == 4);
  CHECK(esker_keyspace_ttl(ks) == 3600 * 1000);
  CHECK(holds(ks, "ann", "hour") && holds(ks, "bob", NULL));
  FAILS(ESKER_INVALID_ARGUMENT, esker_iter_new_prefix(ks, NULL, T("a"), &iter, &error));
  CHECK(holds(ks, "eve", "day") && holds(ks, "dan", NULL));
  esker_keyspace_free(ks);
  OK(esker_keyspace_options_set_ttl(options, 0, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_keyspace_open_with(db, "never", 5, options, &ks, &error));
  esker_keyspace_options_free(options);
  esker_batch_free(batch);
}

int main(int count, char **arguments) {
  char path[4096];
  esker_db *db;
  esker_keyspace *ks = NULL;
  esker_error *error = NULL;
  CHECK(count == 2);
  snprintf(path, sizeof path, "%s", below(arguments[1], "db"));
  db = open_with_callbacks(path);
  merges(db);
  in_transactions(db);
  filters_and_times(db);
  OK(esker_close(db, &error));
  esker_db_free(db);
  CHECK(destroyed == 2);
  clocks(below(arguments[1], "clock"));
  events(below(arguments[1], "events"));

  /* Without the operator, its keyspace says what is missing when it is read. */
  OK(esker_open(path, ESKER_NUL, NULL, &db, &error));
  if (esker_keyspace_open(db, "lists", ESKER_NUL, NULL, &ks, &error) == ESKER_OK) {
    CHECK(esker_merge(ks, T("k"), T("v"), 0, &error) == ESKER_MERGE_OPERATOR_MISSING);
  }
  CHECK(esker_error_code(error) == ESKER_MERGE_OPERATOR_MISSING);
  CHECK(strcmp(esker_error_keyspace(error, NULL), "lists") == 0);
  esker_error_free(error);
  esker_keyspace_free(ks);
  OK(esker_close(db, &error));
  esker_db_free(db);
  puts("operators: ok");
  return 0;
}
