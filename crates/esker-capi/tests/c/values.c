/* Values stay as they were read until they are freed, whatever becomes of their keys and of the database. */
#include "check.h"

enum { LONG = 20000, COUNT = 400, MEMORY = 16 << 20 };

static esker_db *open_at(const char *path, uint64_t block_bytes, uint64_t separate_from) {
  esker_options *options = esker_options_new();
  esker_db *db = NULL;
  OK(esker_options_set(options, ESKER_OPTION_MEMORY, MEMORY, &error));
  OK(esker_options_set(options, ESKER_OPTION_BLOCK_BYTES, block_bytes, &error));
  OK(esker_options_set(options, ESKER_OPTION_SEPARATE_VALUES_FROM, separate_from, &error));
  OK(esker_open(path, ESKER_NUL, options, &db, &error));
  esker_options_free(options);
  return db;
}

static esker_keyspace *keyspace_of(const esker_db *db) {
  esker_keyspace *ks = NULL;
  OK(esker_keyspace_open(db, "values", ESKER_NUL, NULL, &ks, &error));
  return ks;
}

/* The bytes of the value with a number, as far as `length`. */
static const char *bytes_of(unsigned number, size_t length) {
  static char bytes[LONG];
  size_t i;
  CHECK(length <= LONG);
  for (i = 0; i < length; i++) bytes[i] = (char)(number * 31 + i * 7 + i / 256);
  return bytes;
}

static void put(const esker_keyspace *ks, unsigned number, size_t length) {
  OK(esker_put(ks, &number, sizeof number, bytes_of(number, length), length,
               ESKER_DURABILITY_DEFAULT, &error));
}

static esker_value *get(const esker_keyspace *ks, const esker_snapshot *snapshot, unsigned number) {
  esker_value *value = NULL;
  if (snapshot == NULL) {
    OK(esker_get(ks, &number, sizeof number, &value, &error));
  } else {
    OK(esker_snapshot_get(snapshot, ks, &number, sizeof number, &value, &error));
  }
  CHECK(value != NULL);
  return value;
}

/* Whether a value is where it was, and what was put. */
static bool stays(const esker_value *value, const char *data, unsigned number, size_t length) {
  size_t found = 0;
  return esker_value_data(value, &found) == data && found == length &&
         memcmp(data, bytes_of(number, length), length) == 0;
}

/* The bytes that the statistics have under a name: `pinned` are those of blocks that readers keep, `clients`
 * those of copies, among others. */
static long bytes_under(const esker_db *db, const char *name) {
  esker_value *json = NULL;
  const char *text;
  long bytes;
  OK(esker_stats(db, &json, &error));
  text = strstr(esker_value_data(json, NULL), name);
  CHECK(text != NULL);
  bytes = atol(text + strlen(name));
  esker_value_free(json);
  return bytes;
}

static long pinned(const esker_db *db) { return bytes_under(db, "\"pinned\":"); }

/* Long values of files are kept where they are, and short ones, and those in memory, as copies. */
static void long_values_are_not_copied(const char *path) {
  esker_db *db = open_at(path, 4 << 10, 4096);
  esker_keyspace *ks = keyspace_of(db);
  esker_snapshot *before = NULL;
  esker_value *values[5];
  const char *data[5];
  static const size_t LENGTHS[5] = {LONG, 100, 5000, LONG, LONG};
  unsigned i;
  put(ks, 4, LONG);
  values[4] = get(ks, NULL, 4); /* from memory */
  for (i = 0; i < 4; i++) put(ks, i, LENGTHS[i]);
  OK(esker_snapshot_new(db, &before, &error));
  OK(esker_flush(db, &error));
  CHECK(pinned(db) == 0);
  values[1] = get(ks, NULL, 1);
  CHECK(pinned(db) == 0);
  values[0] = get(ks, NULL, 0);
  CHECK(pinned(db) >= LONG && pinned(db) <= 2 * LONG);
  values[2] = get(ks, NULL, 2);
  CHECK(pinned(db) >= LONG + 5000);
  values[3] = get(ks, before, 3);
  CHECK(pinned(db) >= 2 * LONG + 5000);
  for (i = 0; i < 5; i++) data[i] = esker_value_data(values[i], NULL);

  /* Overwritten, deleted, flushed, compacted, dropped. */
  for (i = 0; i < 3; i++) put(ks, i, LENGTHS[i] / 2);
  OK(esker_flush(db, &error));
  OK(esker_clear(ks, ESKER_DURABILITY_DEFAULT, &error));
  esker_snapshot_free(before);
  OK(esker_compact(db, &error));
  for (i = 0; i < 5; i++) CHECK(stays(values[i], data[i], i, LENGTHS[i]));
  OK(esker_drop_keyspace(db, "values", ESKER_NUL, NULL, &error));
  OK(esker_wait_until_idle(db, &error));
  for (i = 0; i < 5; i++) CHECK(stays(values[i], data[i], i, LENGTHS[i]));

  /* One that is freed does not count any more; the others outlive the database. */
  esker_value_free(values[3]);
  CHECK(pinned(db) < 2 * LONG + 5000);
  esker_keyspace_free(ks);
  OK(esker_close(db, &error));
  for (i = 0; i < 3; i++) CHECK(stays(values[i], data[i], i, LENGTHS[i]));
  esker_db_free(db);
  for (i = 0; i < 3; i++) CHECK(stays(values[i], data[i], i, LENGTHS[i]));

  /* They do not keep the directory locked. */
  db = open_at(path, 4 << 10, 4096);
  CHECK(pinned(db) == 0);
  OK(esker_close(db, &error));
  esker_db_free(db);
  for (i = 0; i < 3; i++) {
    CHECK(stays(values[i], data[i], i, LENGTHS[i]));
    esker_value_free(values[i]);
  }
  esker_value_free(values[4]);
}

/* A block that is much larger than the value is not kept for it. */
static void large_blocks_are_not_kept(const char *path) {
  esker_db *db = open_at(path, 32 << 10, 0);
  esker_keyspace *ks = keyspace_of(db);
  esker_value *value;
  unsigned i;
  for (i = 0; i < 40; i++) put(ks, i, 5000);
  OK(esker_flush(db, &error));
  value = get(ks, NULL, 7);
  CHECK(pinned(db) == 0 && stays(value, esker_value_data(value, NULL), 7, 5000));
  esker_value_free(value);
  esker_keyspace_free(ks);
  OK(esker_close(db, &error));
  esker_db_free(db);
}

/* A program that keeps all values gets copies when what it keeps is much. */
static void what_is_kept_in_place_is_bounded(const char *path) {
  static esker_value *values[COUNT];
  const long bound = MEMORY / 8;
  esker_db *db = open_at(path, 4 << 10, 4096);
  esker_keyspace *ks = keyspace_of(db);
  long copies;
  unsigned i;
  for (i = 0; i < COUNT; i++) put(ks, i, LONG);
  OK(esker_flush(db, &error));
  copies = bytes_under(db, "\"clients\":");
  for (i = 0; i < COUNT; i++) values[i] = get(ks, NULL, i);
  CHECK(pinned(db) > bound / 2 && pinned(db) <= bound + 2 * LONG);
  /* The rest is in the account of what the program was handed. */
  copies = bytes_under(db, "\"clients\":") - copies;
  CHECK(copies >= COUNT * (long)LONG - pinned(db) && copies < COUNT * (long)LONG - bound / 2);
  for (i = 0; i < COUNT; i++) {
    CHECK(stays(values[i], esker_value_data(values[i], NULL), i, LONG));
    esker_value_free(values[i]);
  }
  CHECK(pinned(db) == 0);
  esker_keyspace_free(ks);
  OK(esker_close(db, &error));
  esker_db_free(db);
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  long_values_are_not_copied(below(arguments[1], "long"));
  large_blocks_are_not_kept(below(arguments[1], "blocks"));
  what_is_kept_in_place_is_bounded(below(arguments[1], "bound"));
  puts("values: ok");
  return 0;
}
