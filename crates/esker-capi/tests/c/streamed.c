/* Values in pieces: from a function into the database, and back through a reader. */
#include "check.h"

#include <errno.h>

/* A value of so many bytes that gives at most `step` at once, and fails where it says so. */
typedef struct {
  size_t given, size, step, fails_at;
  int lies, interrupted;
} source;

static char byte_at(size_t position) { return (char)(position * 2654435761u >> 16); }

static int give(void *context, void *buffer, size_t capacity, size_t *len) {
  source *from = context;
  size_t count = from->size - from->given;
  size_t i;
  if (from->given >= from->fails_at) {
    return ENXIO;
  }
  if (from->interrupted) {
    from->interrupted = 0;
    return EINTR;
  }
  if (from->lies) {
    *len = capacity + 1;
    return 0;
  }
  if (count > capacity) {
    count = capacity;
  }
  if (count > from->step) {
    count = from->step;
  }
  for (i = 0; i < count; i++) {
    ((char *)buffer)[i] = byte_at(from->given + i);
  }
  from->given += count;
  *len = count;
  return 0;
}

static source of(size_t size, size_t step) {
  source made = {0, size, step, SIZE_MAX, 0, 1};
  return made;
}

/* The bytes of a value from a position on, read `step` at a time, are those of a source. */
static void reads(esker_value_reader *reader, size_t from, size_t size, size_t step) {
  char *buffer = malloc(step);
  size_t len = 0, i;
  CHECK(buffer != NULL && esker_value_reader_len(reader) == size);
  OK(esker_value_reader_seek(reader, from, &error));
  do {
    OK(esker_value_reader_read(reader, buffer, step, &len, &error));
    CHECK(len == (size - from < step ? size - from : step));
    for (i = 0; i < len; i++) {
      CHECK(buffer[i] == byte_at(from + i));
    }
    from += len;
  } while (len == step);
  CHECK(from == size);
  free(buffer);
}

static esker_value_reader *reader_of(const esker_keyspace *keyspace, const esker_snapshot *snapshot,
                                     const char *key) {
  esker_value_reader *reader = NULL;
  OK(esker_value_reader_new(keyspace, snapshot, T(key), &reader, &error));
  return reader;
}

static void sizes(const esker_keyspace *stock) {
  const size_t all[] = {0, 1, 1000, 262144, 262145, 3000001};
  size_t i;
  for (i = 0; i < sizeof all / sizeof *all; i++) {
    source from = of(all[i], all[i] % 2 == 0 ? 100000 : 4099);
    uint64_t len = 7;
    esker_value_reader *reader;
    OK(esker_put_from(stock, T("large"), give, &from, &len, &error));
    CHECK(len == all[i]);
    reader = reader_of(stock, NULL, "large");
    reads(reader, 0, all[i], 65536);
    reads(reader, all[i] / 3, all[i], 300001);
    reads(reader, all[i], all[i], 10);
    esker_value_reader_free(reader);
  }
  CHECK(reader_of(stock, NULL, "none") == NULL);
  esker_value_reader_free(NULL);
  CHECK(esker_value_reader_len(NULL) == 0);
}

/* A reader and a snapshot keep to the value that was there. */
static void moments(const esker_db *db, const esker_keyspace *stock) {
  source before = of(700000, 50000), after = of(10, 10);
  esker_snapshot *snapshot = NULL;
  esker_value_reader *now, *then;
  char buffer[4];
  size_t len = 7;
  OK(esker_put_from(stock, T("moment"), give, &before, NULL, &error));
  OK(esker_snapshot_new(db, &snapshot, &error));
  then = reader_of(stock, NULL, "moment");
  OK(esker_put_from(stock, T("moment"), give, &after, NULL, &error));
  reads(then, 0, 700000, 65536);
  esker_value_reader_free(then);
  then = reader_of(stock, snapshot, "moment");
  esker_snapshot_free(snapshot);
  reads(then, 123456, 700000, 65536);
  now = reader_of(stock, NULL, "moment");
  reads(now, 0, 10, 4);
  OK(esker_value_reader_seek(now, UINT64_MAX, &error));
  OK(esker_value_reader_read(now, buffer, sizeof buffer, &len, &error));
  CHECK(len == 0);
  OK(esker_value_reader_read(now, NULL, 0, &len, &error));
  FAILS(ESKER_MISUSE, esker_value_reader_read(now, NULL, 1, &len, &error));
  FAILS(ESKER_MISUSE, esker_value_reader_read(now, buffer, 1, NULL, &error));
  FAILS(ESKER_MISUSE, esker_value_reader_seek(NULL, 0, &error));
  esker_value_reader_free(then);
  esker_value_reader_free(now);
}

static void failures(const esker_db *db, const esker_keyspace *stock) {
  const size_t where[] = {0, 1000, 1000000};
  esker_ingestion *ingestion = NULL;
  source whole = of(600000, 70000), liar = of(10, 10);
  esker_value_reader *reader;
  esker_error *error_of = NULL;
  size_t i;
  for (i = 0; i < sizeof where / sizeof *where; i++) {
    source from = of(2000000, 1000);
    uint64_t len = 7;
    from.fails_at = where[i];
    CHECK(esker_put_from(stock, T("failed"), give, &from, &len, &error_of) == ESKER_IO);
    CHECK(len == 0 && esker_error_os_code(error_of) == ENXIO);
    esker_error_free(error_of);
    CHECK(reader_of(stock, NULL, "failed") == NULL);
  }
  liar.lies = 1;
  FAILS(ESKER_IO, esker_put_from(stock, T("failed"), give, &liar, NULL, &error));
  FAILS(ESKER_MISUSE, esker_put_from(stock, T("failed"), NULL, NULL, NULL, &error));
  FAILS(ESKER_MISUSE, esker_put_from(NULL, T("failed"), give, &liar, NULL, &error));

  OK(esker_ingestion_begin(db, &ingestion, &error));
  OK(esker_ingestion_put(ingestion, stock, T("i1"), T("small"), &error));
  {
    source from = of(2000000, 1000);
    from.fails_at = 900000;
    FAILS(ESKER_IO,
          esker_ingestion_put_from(ingestion, stock, T("i2"), give, &from, NULL, &error));
  }
  OK(esker_ingestion_put_from(ingestion, stock, T("i3"), give, &whole, NULL, &error));
  OK(esker_ingestion_commit(ingestion, &error));
  FAILS(ESKER_MISUSE,
        esker_ingestion_put_from(ingestion, stock, T("i4"), give, &whole, NULL, &error));
  esker_ingestion_free(ingestion);
  CHECK(holds(stock, "i1", "small") && holds(stock, "i2", NULL));
  reader = reader_of(stock, NULL, "i3");
  reads(reader, 0, 600000, 65536);
  esker_value_reader_free(reader);
}

int main(int count, char **arguments) {
  esker_db *db = NULL;
  esker_keyspace *stock = NULL;
  esker_value_reader *reader;
  char buffer[8];
  size_t len = 7;
  CHECK(count == 2);
  OK(esker_open(below(arguments[1], "streamed"), ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "stock", ESKER_NUL, NULL, &stock, &error));
  sizes(stock);
  moments(db, stock);
  failures(db, stock);
  reader = reader_of(stock, NULL, "i3");
  OK(esker_close(db, &error));
  FAILS(ESKER_CLOSED, esker_value_reader_read(reader, buffer, sizeof buffer, &len, &error));
  CHECK(len == 0);
  esker_value_reader_free(reader);
  esker_keyspace_free(stock);
  esker_db_free(db);
  printf("streamed: ok\n");
  return 0;
}
