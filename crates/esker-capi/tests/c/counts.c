/* How many entries a range has, and where to cut it. */
#include "check.h"

enum { COUNT = 20000 };

/* The key with a number: keys ascend as numbers do. A call takes up to four of them. */
static const char *key(unsigned number) {
  static char keys[4][16];
  static unsigned turn;
  char *text = keys[turn++ % 4];
  CHECK(snprintf(text, sizeof keys[0], "key%08u", number) == 11);
  return text;
}

static uint64_t counted(const esker_keyspace *ks, const char *start, const char *end) {
  uint64_t entries = 99, estimate = 99, deviation = 99;
  const size_t start_len = start == NULL ? 0 : strlen(start), end_len = end == NULL ? 0 : strlen(end);
  OK(esker_count(ks, start, start_len, end, end_len, &entries, &error));
  OK(esker_approximate_count(ks, start, start_len, end, end_len, &estimate, &deviation, &error));
  CHECK(estimate + deviation >= entries && estimate <= entries + deviation);
  OK(esker_approximate_count(ks, start, start_len, end, end_len, &estimate, NULL, &error));
  return entries;
}

/* Without anything in memory, a count of everything needs no reading, and an estimate of it is exact. */
static void counts(const esker_db *db, const esker_keyspace *ks) {
  uint64_t entries = 99, deviation = 99;
  unsigned number;
  CHECK(counted(ks, NULL, NULL) == 0);
  for (number = 0; number < COUNT; number++) {
    OK(esker_put(ks, T(key(number)), T("a value that is neither long nor short"), 0, &error));
  }
  CHECK(counted(ks, NULL, NULL) == COUNT);
  OK(esker_compact(db, &error));
  OK(esker_approximate_count(ks, NULL, 0, NULL, 0, &entries, &deviation, &error));
  CHECK(entries == COUNT && deviation == 0);
  CHECK(counted(ks, NULL, NULL) == COUNT);
  CHECK(counted(ks, key(5), NULL) == COUNT - 5 && counted(ks, NULL, key(5)) == 5);
  CHECK(counted(ks, key(100), key(15000)) == 14900 && counted(ks, key(7), key(7)) == 0);
  CHECK(counted(ks, "x", NULL) == 0);
  /* What memory holds counts, too. */
  OK(esker_delete_range(ks, T(key(0)), T(key(1000)), 0, &error));
  OK(esker_put(ks, T("a new key"), T("value"), 0, &error));
  CHECK(counted(ks, NULL, NULL) == COUNT - 1000 + 1);
}

static void split_points(const esker_db *db, const esker_keyspace *ks) {
  esker_list *keys = NULL;
  size_t length, before_length = 0, i;
  const char *before = "", *found;
  uint64_t entries = 0, part, of_all;
  OK(esker_compact(db, &error));
  of_all = counted(ks, key(2000), NULL);
  OK(esker_split_points(ks, T(key(2000)), NULL, 0, 4, &keys, &error));
  CHECK(esker_list_len(keys) == 3);
  for (i = 0; i <= 3; i++) {
    found = esker_list_get(keys, i, &length);
    if (i == 0) {
      before = key(2000);
      before_length = strlen(before);
    }
    /* NULL behind the last: no bound. */
    CHECK((found == NULL) == (i == 3));
    CHECK(found == NULL || (length == before_length && memcmp(before, found, length) < 0));
    OK(esker_count(ks, before, before_length, found, length, &part, &error));
    CHECK(part > of_all / 8 && part < of_all / 2);
    entries += part;
    before = found;
    before_length = length;
  }
  CHECK(entries == of_all);
  esker_list_free(keys);
  OK(esker_split_points(ks, NULL, 0, NULL, 0, 1, &keys, &error));
  CHECK(esker_list_len(keys) == 0);
  esker_list_free(keys);
}

static void mistakes(const esker_db *db, const esker_keyspace *ks) {
  uint64_t entries = 9, deviation = 9;
  esker_list *keys = NULL;
  FAILS(ESKER_MISUSE, esker_count(NULL, NULL, 0, NULL, 0, &entries, &error));
  FAILS(ESKER_MISUSE, esker_count(ks, NULL, 0, NULL, 0, NULL, &error));
  FAILS(ESKER_MISUSE, esker_count(ks, NULL, 1, NULL, 0, &entries, &error));
  FAILS(ESKER_MISUSE, esker_approximate_count(ks, NULL, 0, NULL, 0, NULL, &deviation, &error));
  CHECK(deviation == 0 && entries == 0);
  FAILS(ESKER_MISUSE, esker_split_points(ks, NULL, 0, NULL, 0, 2, NULL, &error));
  OK(esker_close(db, &error));
  FAILS(ESKER_CLOSED, esker_count(ks, NULL, 0, NULL, 0, &entries, &error));
  FAILS(ESKER_CLOSED, esker_approximate_count(ks, NULL, 0, NULL, 0, &entries, NULL, &error));
  FAILS(ESKER_CLOSED, esker_split_points(ks, NULL, 0, NULL, 0, 2, &keys, &error));
  CHECK(keys == NULL);
}

int main(int count, char **arguments) {
  esker_options *options = esker_options_new();
  esker_db *db = NULL;
  esker_keyspace *ks = NULL;
  CHECK(count == 2);
  OK(esker_options_set(options, ESKER_OPTION_MEMORY, 64 << 20, &error));
  OK(esker_options_set(options, ESKER_OPTION_SEGMENT_BYTES, 16 << 10, &error));
  OK(esker_open(below(arguments[1], "db"), ESKER_NUL, options, &db, &error));
  esker_options_free(options);
  OK(esker_keyspace_open(db, "k", 1, NULL, &ks, &error));
  counts(db, ks);
  split_points(db, ks);
  mistakes(db, ks);
  esker_keyspace_free(ks);
  esker_db_free(db);
  puts("counts: ok");
  return 0;
}
