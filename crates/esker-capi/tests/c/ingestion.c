/* Ingestion: sorted entries that become visible together. */
#include "check.h"

static esker_ingestion *begin(const esker_db *db) {
  esker_ingestion *ingestion = NULL;
  OK(esker_ingestion_begin(db, &ingestion, &error));
  CHECK(ingestion != NULL);
  return ingestion;
}

static void put(esker_ingestion *ingestion, const esker_keyspace *keyspace, int first, int count) {
  int number;
  for (number = first; number < first + count; number++) {
    char key[16];
    snprintf(key, sizeof key, "%06d", number);
    OK(esker_ingestion_put(ingestion, keyspace, T(key), T("ingested"), &error));
  }
}

static void entries(const esker_db *db, const esker_keyspace *stock) {
  esker_ingestion *ingestion = begin(db);
  OK(esker_put(stock, T("000003"), T("old"), 0, &error));
  OK(esker_put(stock, T("999"), T("old"), 0, &error));
  OK(esker_put(stock, T("nails"), T("old"), 0, &error));
  put(ingestion, stock, 0, 1000);
  FAILS(ESKER_OUT_OF_ORDER, esker_ingestion_put(ingestion, stock, T("000999"), "", 0, &error));
  OK(esker_ingestion_delete(ingestion, stock, T("nails"), &error));
  OK(esker_ingestion_delete_range(ingestion, stock, T("9"), T("a"), &error));
  OK(esker_ingestion_put_ttl(ingestion, stock, T("p"), T("later"), 1000000, &error));
  OK(esker_ingestion_put_ttl(ingestion, stock, T("q"), T("gone"), 0, &error));
  FAILS(ESKER_INVALID_ARGUMENT,
        esker_ingestion_merge(ingestion, stock, T("r"), T("x"), &error));
  CHECK(holds(stock, "000003", "old") && holds(stock, "000999", NULL));
  OK(esker_ingestion_commit(ingestion, &error));
  CHECK(holds(stock, "000003", "ingested") && holds(stock, "000999", "ingested"));
  CHECK(holds(stock, "999", NULL) && holds(stock, "nails", NULL));
  CHECK(holds(stock, "p", "later") && holds(stock, "q", NULL));

  /* It has ended. */
  FAILS(ESKER_MISUSE, esker_ingestion_put(ingestion, stock, T("z"), "", 0, &error));
  FAILS(ESKER_MISUSE, esker_ingestion_commit(ingestion, &error));
  esker_ingestion_free(ingestion);
  esker_ingestion_free(NULL);
}

static void many(const esker_db *db, const esker_keyspace *stock) {
  char texts[100][24], expected[100][12];
  const void *keys[100], *values[100];
  size_t key_lens[100], value_lens[100], added = 7;
  esker_ingestion *ingestion = begin(db);
  int number;
  for (number = 0; number < 100; number++) {
    /* Keys and values of different lengths; the first value is empty. */
    snprintf(texts[number], sizeof texts[number], "many%03d%.*s", number, number % 3, "xx");
    snprintf(expected[number], sizeof expected[number], "%d", number);
    keys[number] = texts[number];
    key_lens[number] = strlen(texts[number]);
    value_lens[number] = number ? strlen(expected[number]) : 0;
    values[number] = number ? expected[number] : NULL;
    expected[number][value_lens[number]] = 0;
  }
  OK(esker_ingestion_put_many(ingestion, stock, keys, key_lens, values, value_lens, 40, &added,
                              &error));
  CHECK(added == 40);
  OK(esker_ingestion_put_many(ingestion, stock, NULL, NULL, NULL, NULL, 0, &added, &error));
  CHECK(added == 0);

  /* The first key that is out of order ends the call. */
  keys[60] = texts[59];
  key_lens[60] = key_lens[59];
  FAILS(ESKER_OUT_OF_ORDER,
        esker_ingestion_put_many(ingestion, stock, &keys[40], &key_lens[40], &values[40],
                                 &value_lens[40], 60, &added, &error));
  CHECK(added == 20);

  /* Arguments are looked at before anything is added. */
  keys[99] = NULL;
  FAILS(ESKER_MISUSE, esker_ingestion_put_many(ingestion, stock, &keys[61], &key_lens[61],
                                               &values[61], &value_lens[61], 39, &added, &error));
  CHECK(added == 0);
  FAILS(ESKER_MISUSE, esker_ingestion_put_many(ingestion, stock, &keys[61], &key_lens[61], NULL,
                                               &value_lens[61], 1, NULL, &error));
  FAILS(ESKER_MISUSE, esker_ingestion_put_many(ingestion, stock, &keys[61], &key_lens[61],
                                               &values[61], NULL, 1, NULL, &error));
  FAILS(ESKER_MISUSE, esker_ingestion_put_many(ingestion, stock, NULL, &key_lens[61], &values[61],
                                               &value_lens[61], 1, NULL, &error));
  OK(esker_ingestion_put_many(ingestion, stock, &keys[98], &key_lens[98], &values[98],
                              &value_lens[98], 1, NULL, &error));
  CHECK(holds(stock, "many000", NULL));
  OK(esker_ingestion_commit(ingestion, &error));
  for (number = 0; number < 100; number++) {
    bool is_there = number < 60 || number == 98;
    CHECK(holds(stock, texts[number], is_there ? expected[number] : NULL));
  }
  FAILS(ESKER_MISUSE, esker_ingestion_put_many(ingestion, stock, keys, key_lens, values, value_lens,
                                               1, &added, &error));
  CHECK(added == 0);
  esker_ingestion_free(ingestion);
}

static void operands(const esker_db *db) {
  esker_keyspace_options *options = esker_keyspace_options_new();
  esker_keyspace *visits = NULL;
  esker_ingestion *ingestion = begin(db);
  OK(esker_keyspace_options_set_merge_operator(options, T("esker.max"), &error));
  OK(esker_keyspace_open_with(db, T("visits"), options, &visits, &error));
  OK(esker_put(visits, T("a"), T("3"), 0, &error));
  OK(esker_ingestion_merge(ingestion, visits, T("a"), T("5"), &error));
  OK(esker_ingestion_commit(ingestion, &error));
  CHECK(holds(visits, "a", "5"));
  esker_ingestion_free(ingestion);
  esker_keyspace_free(visits);
  esker_keyspace_options_free(options);
}

static void parts(const esker_db *db, const esker_keyspace *stock) {
  esker_ingestion *first = begin(db), *other = begin(db), *committed = begin(db);
  put(first, stock, 3000, 10);
  put(other, stock, 2000, 10);
  OK(esker_ingestion_sync(other, &error));
  CHECK(holds(stock, "002000", NULL));
  OK(esker_ingestion_join(first, other, &error));
  other = begin(db);
  put(other, stock, 2005, 1);
  FAILS(ESKER_OUT_OF_ORDER, esker_ingestion_join(first, other, &error));
  OK(esker_ingestion_commit(committed, &error));
  FAILS(ESKER_MISUSE, esker_ingestion_join(first, committed, &error));
  FAILS(ESKER_MISUSE, esker_ingestion_join(first, first, &error));
  FAILS(ESKER_MISUSE, esker_ingestion_join(first, NULL, &error));
  FAILS(ESKER_MISUSE, esker_ingestion_begin(db, NULL, &error));
  OK(esker_ingestion_commit(first, &error));
  CHECK(holds(stock, "002000", "ingested") && holds(stock, "003009", "ingested"));
  esker_ingestion_free(committed);
  esker_ingestion_free(first);
}

int main(int count, char **arguments) {
  const char *path;
  esker_db *db = NULL;
  esker_keyspace *stock = NULL;
  esker_ingestion *lost = NULL;
  CHECK(count == 2);
  path = below(arguments[1], "db");
  OK(esker_open(path, ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "stock", ESKER_NUL, NULL, &stock, &error));
  entries(db, stock);
  many(db, stock);
  operands(db);
  parts(db, stock);
  lost = begin(db);
  put(lost, stock, 5000, 10);
  OK(esker_close(db, &error));
  FAILS(ESKER_CLOSED, esker_ingestion_commit(lost, &error));
  esker_ingestion_free(lost);
  esker_keyspace_free(stock);
  esker_db_free(db);

  OK(esker_open(path, ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "stock", ESKER_NUL, NULL, &stock, &error));
  CHECK(holds(stock, "000500", "ingested") && holds(stock, "005000", NULL));
  esker_keyspace_free(stock);
  esker_db_free(db);
  puts("ingestion: ok");
  return 0;
}
