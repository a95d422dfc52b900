/* Long calls that the program ends. */
#include "check.h"

/* Ends the call when it was asked so many times. */
struct patience {
  int asked, last;
};

static bool after(void *context) {
  struct patience *patience = context;
  return ++patience->asked > patience->last;
}

static esker_db *open_small(const char *path) {
  esker_options *options = esker_options_new();
  esker_db *db = NULL;
  OK(esker_options_set(options, ESKER_OPTION_MEMORY, 64 << 20, &error));
  OK(esker_options_set(options, ESKER_OPTION_WORKERS, 1, &error));
  OK(esker_options_set(options, ESKER_OPTION_SEGMENT_BYTES, 64 << 10, &error));
  OK(esker_open(path, ESKER_NUL, options, &db, &error));
  esker_options_free(options);
  return db;
}

/* Entries with values that do not compress: what is written takes far longer than a call that asks once. */
static void fill(const esker_db *db, const esker_keyspace *ks, unsigned seed) {
  enum { COUNT = 1500, LENGTH = 2000 };
  static unsigned char bytes[LENGTH];
  unsigned key, random = seed;
  esker_batch *batch = esker_batch_new();
  size_t i;
  for (key = 0; key < COUNT; key++) {
    for (i = 0; i < LENGTH; i++) {
      random = random * 1664525u + 1013904223u;
      bytes[i] = (unsigned char)(random >> 24);
    }
    OK(esker_batch_put(batch, ks, &key, sizeof key, bytes, LENGTH, &error));
  }
  OK(esker_write(db, batch, ESKER_DURABILITY_PROCESS, NULL, &error));
  esker_batch_free(batch);
}

static size_t entries(const esker_keyspace *ks) {
  esker_iter *iter = NULL;
  size_t count = 0;
  OK(esker_iter_new(ks, NULL, NULL, 0, NULL, 0, &iter, &error));
  OK(esker_iter_first(iter, &error));
  while (esker_iter_valid(iter)) {
    count++;
    OK(esker_iter_next(iter, &error));
  }
  esker_iter_free(iter);
  return count;
}

/* A call that would wait asks first, and ends; one that has patience does the work, and asks now and then. */
static void flushes_and_compactions(const esker_db *db, const esker_keyspace *ks) {
  struct patience none = {0, 0}, all = {0, 1 << 30};
  fill(db, ks, 1);
  FAILS(ESKER_INTERRUPTED, esker_flush_until(db, after, &none, &error));
  CHECK(none.asked == 1);
  OK(esker_flush_until(db, after, &all, &error));
  fill(db, ks, 2);
  /* A compaction begins with a flush. */
  FAILS(ESKER_INTERRUPTED, esker_compact_until(db, after, &none, &error));
  CHECK(none.asked == 2);
  OK(esker_compact_until(db, after, &all, &error));
  fill(db, ks, 3);
  FAILS(ESKER_INTERRUPTED, esker_keyspace_compact_until(ks, NULL, 0, NULL, 0, after, &none, &error));
  CHECK(none.asked == 3);
  OK(esker_keyspace_compact_until(ks, NULL, 0, NULL, 0, after, &all, &error));
  CHECK(all.asked > 0 && entries(ks) == 1500);
  /* What has nothing to wait for does not ask. */
  OK(esker_flush_until(db, after, &none, &error));
  CHECK(none.asked == 3);
}

static void searches_for_damage(const esker_db *db) {
  struct patience none = {0, 0}, some = {0, 2}, all = {0, 1 << 30};
  esker_value *json = NULL;
  size_t problems = 9;
  bool ended = false;
  OK(esker_verify_until(db, after, &some, &ended, &problems, &json, &error));
  CHECK(ended && problems == 0 && some.asked == 3);
  CHECK(strstr(esker_value_data(json, NULL), "\"interrupted\":true") != NULL);
  CHECK(strstr(esker_value_data(json, NULL), "\"entries\":0,") == NULL);
  esker_value_free(json);
  OK(esker_verify_until(db, after, &all, &ended, &problems, &json, &error));
  CHECK(!ended && problems == 0 && all.asked > 3);
  CHECK(strstr(esker_value_data(json, NULL), "\"interrupted\":false") != NULL);
  esker_value_free(json);
  OK(esker_verify_until(db, after, &none, NULL, NULL, NULL, &error));
  CHECK(none.asked == 1);
}

static void mistakes(const esker_db *db, const esker_keyspace *ks) {
  bool ended = true;
  size_t problems = 9;
  FAILS(ESKER_MISUSE, esker_flush_until(db, NULL, NULL, &error));
  FAILS(ESKER_MISUSE, esker_compact_until(db, NULL, NULL, &error));
  FAILS(ESKER_MISUSE, esker_keyspace_compact_until(ks, NULL, 0, NULL, 0, NULL, NULL, &error));
  FAILS(ESKER_MISUSE, esker_verify_until(db, NULL, NULL, &ended, &problems, NULL, &error));
  CHECK(!ended && problems == 0);
}

static esker_db *to_free;

/* Frees the handle of the database whose call it ends. */
static bool frees(void *context) {
  CHECK(context == to_free);
  esker_db_free(to_free);
  return true;
}

int main(int count, char **arguments) {
  esker_db *db;
  esker_keyspace *ks = NULL;
  CHECK(count == 2);
  db = open_small(below(arguments[1], "db"));
  OK(esker_keyspace_open(db, "k", 1, NULL, &ks, &error));
  flushes_and_compactions(db, ks);
  searches_for_damage(db);
  mistakes(db, ks);
  fill(db, ks, 4);
  to_free = db;
  FAILS(ESKER_INTERRUPTED, esker_compact_until(db, frees, db, &error));
  CHECK(entries(ks) == 1500);
  esker_keyspace_free(ks);
  puts("interrupted: ok");
  return 0;
}
