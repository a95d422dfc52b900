/* Everything that goes wrong: NULL, handles of another kind, closed databases, foreign
 * directories, damaged files, wrong lengths. Each gives a typed error, and nothing is lost. */
#include "check.h"

static const char LONG_KEY[65536];

static void misuse(const esker_db *db, const esker_keyspace *ks) {
  esker_value *value = NULL;
  esker_iter *iter = NULL;
  esker_db *none = (esker_db *)1;
  esker_list *list = NULL;
  esker_batch *batch = esker_batch_new();
  bool found = true;
  size_t length = 7;
  const void *keys[1] = {"k"};
  size_t too_long[1] = {(size_t)-1 / 2 + 2};
  esker_value *values[1] = {(esker_value *)1};

  /* NULL. */
  FAILS(ESKER_MISUSE, esker_put(NULL, "k", 1, "v", 1, 0, &error));
  FAILS(ESKER_MISUSE, esker_put(ks, NULL, 1, "v", 1, 0, &error));
  FAILS(ESKER_MISUSE, esker_put(ks, "k", 1, NULL, 1, 0, &error));
  FAILS(ESKER_MISUSE, esker_get(ks, "k", 1, NULL, &error));
  FAILS(ESKER_MISUSE, esker_get_copy(ks, "k", 1, NULL, 9, &length, &found, &error));
  CHECK(length == 0 && !found);
  FAILS(ESKER_MISUSE, esker_open(NULL, ESKER_NUL, NULL, &none, &error));
  CHECK(none == NULL);
  FAILS(ESKER_MISUSE, esker_open("", 0, NULL, &none, &error));
  FAILS(ESKER_MISUSE, esker_open("x", 1, NULL, NULL, &error));
  FAILS(ESKER_MISUSE, esker_close(NULL, &error));
  FAILS(ESKER_MISUSE, esker_keyspaces(db, NULL, &error));
  FAILS(ESKER_MISUSE, esker_multi_get(ks, NULL, NULL, 3, NULL, &error));
  CHECK(esker_put(NULL, "k", 1, "v", 1, 0, NULL) == ESKER_MISUSE);
  FAILS(ESKER_MISUSE, esker_try_put(ks, NULL, 1, "v", 1, &error));
  FAILS(ESKER_MISUSE, esker_try_delete(NULL, "k", 1, &error));
  FAILS(ESKER_MISUSE, esker_try_write(NULL, batch, 0, NULL, &error));
  CHECK(esker_error_retry_after(NULL) == 0);

  /* A handle of another kind. */
  FAILS(ESKER_MISUSE, esker_flush((const esker_db *)(const void *)ks, &error));
  FAILS(ESKER_MISUSE, esker_get((const esker_keyspace *)(const void *)db, "k", 1, &value, &error));
  FAILS(ESKER_MISUSE, esker_iter_next((esker_iter *)(void *)batch, &error));
  FAILS(ESKER_MISUSE, esker_write(db, (const esker_batch *)(const void *)db, 0, NULL, &error));
  CHECK(!esker_iter_valid((const esker_iter *)(const void *)db));
  CHECK(esker_iter_key((const esker_iter *)(const void *)db, &length) == NULL && length == 0);
  CHECK(esker_value_data((const esker_value *)(const void *)db, &length) == NULL);
  CHECK(esker_batch_len((const esker_batch *)(const void *)db) == 0);
  CHECK(esker_list_len((const esker_list *)(const void *)db) == 0);
  CHECK(esker_list_get((const esker_list *)(const void *)db, 0, NULL) == NULL);
  CHECK(esker_db_path((const esker_db *)(const void *)ks, NULL) == NULL);
  CHECK(esker_keyspace_name((const esker_keyspace *)(const void *)db, NULL) == NULL);
  CHECK(esker_error_code((const esker_error *)(const void *)db) == ESKER_MISUSE);
  CHECK(esker_error_message((const esker_error *)(const void *)db) != NULL);
  /* Freeing as another kind does nothing. */
  esker_iter_free((esker_iter *)(void *)batch);
  CHECK(esker_batch_len(batch) == 0);
  OK(esker_batch_put(batch, ks, "k", 1, "v", 1, &error));

  /* Lengths and numbers that cannot be. */
  FAILS(ESKER_MISUSE, esker_put(ks, "k", (size_t)-1, "v", 1, 0, &error));
  FAILS(ESKER_MISUSE, esker_put(ks, "k", 1, "v", (size_t)-1 / 2 + 1, 0, &error));
  FAILS(ESKER_MISUSE, esker_multi_get(ks, keys, too_long, 1, values, &error));
  CHECK(values[0] == NULL);
  FAILS(ESKER_MISUSE, esker_multi_get(ks, keys, too_long, (size_t)-1 / 4, values, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_put(ks, "k", 1, "v", 1, 17, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_wait_durable(db, UINT64_MAX, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_drop_keyspace(db, "default", 7, NULL, &error));
  FAILS(ESKER_INVALID_ARGUMENT,
        esker_keyspace_open(db, "", 0, NULL, (esker_keyspace **)&list, &error));
  CHECK(list == NULL);
  FAILS(ESKER_INVALID_ARGUMENT,
        esker_keyspace_open(db, "\xff", 1, NULL, (esker_keyspace **)&list, &error));
  FAILS(ESKER_KEY_TOO_LONG, esker_put(ks, LONG_KEY, sizeof LONG_KEY, "v", 1, 0, &error));

  /* Nothing of all this was written. */
  OK(esker_iter_new(ks, NULL, NULL, 0, NULL, 0, &iter, &error));
  OK(esker_iter_first(iter, &error));
  CHECK(!esker_iter_valid(iter));
  esker_iter_free(iter);
  esker_batch_free(batch);
}

static void options(void) {
  esker_options *options = esker_options_new();
  FAILS(ESKER_INVALID_ARGUMENT, esker_options_set(options, 0, 1, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_options_set(options, 999, 1, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_options_set(options, ESKER_OPTION_READ_ONLY, 2, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_options_set(options, ESKER_OPTION_COMPRESSION, 9, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_options_set(options, ESKER_OPTION_LOG, 9, &error));
  FAILS(ESKER_INVALID_ARGUMENT, esker_options_set(options, ESKER_OPTION_RECOVERY, 9, &error));
  FAILS(ESKER_INVALID_ARGUMENT,
        esker_options_set(options, ESKER_OPTION_DURABILITY, UINT64_MAX, &error));
  FAILS(ESKER_INVALID_ARGUMENT,
        esker_options_set(options, ESKER_OPTION_SEGMENT_BYTES, UINT64_MAX, &error));
  FAILS(ESKER_INVALID_ARGUMENT,
        esker_options_set(options, ESKER_OPTION_MAX_SPACE_PERCENT, UINT64_MAX, &error));
  FAILS(ESKER_INVALID_ARGUMENT,
        esker_options_set(options, ESKER_OPTION_SEPARATE_VALUES_FROM, UINT64_MAX, &error));
  FAILS(ESKER_MISUSE, esker_options_set(NULL, ESKER_OPTION_MEMORY, 1, &error));
  FAILS(ESKER_MISUSE, esker_options_add_comparator(options, NULL, &error));
  esker_options_free(options);
}

static void directories(const char *directory) {
  esker_options *options = esker_options_new();
  esker_db *db = NULL, *second = NULL;
  esker_error *error = NULL;
  size_t length = 0;
  uint64_t offset = 5;
  char path[4096];
  FILE *file;

  OK(esker_options_set(options, ESKER_OPTION_CREATE_IF_MISSING, 0, &error));
  FAILS(ESKER_MISSING,
        esker_open(below(directory, "missing"), ESKER_NUL, options, &db, &error));
  OK(esker_options_set(options, ESKER_OPTION_CREATE_IF_MISSING, 1, &error));
  OK(esker_options_set(options, ESKER_OPTION_ERROR_IF_EXISTS, 1, &error));
  snprintf(path, sizeof path, "%s", below(directory, "held"));
  OK(esker_open(path, ESKER_NUL, options, &db, &error));

  /* Locked: the error names the directory, and has none of the other details. */
  CHECK(esker_open(path, ESKER_NUL, NULL, &second, &error) == ESKER_LOCKED);
  CHECK(second == NULL && esker_error_code(error) == ESKER_LOCKED);
  CHECK(strcmp(esker_error_path(error, &length), path) == 0 && length == strlen(path));
  CHECK(!esker_error_offset(error, &offset) && offset == 0);
  CHECK(esker_error_keyspace(error, &length) == NULL && length == 0);
  CHECK(esker_error_section(error, NULL) == NULL && esker_error_cause(error) == NULL);
  CHECK(esker_error_low_key(error, NULL) == NULL && esker_error_high_key(error, NULL) == NULL);
  CHECK(esker_error_os_code(error) == 0);
  esker_error_free(error);
  OK(esker_close(db, &error));
  esker_db_free(db);
  FAILS(ESKER_EXISTS, esker_open(path, ESKER_NUL, options, &db, &error));
  esker_options_free(options);

  /* A directory of something else, and a path that cannot be one. */
  snprintf(path, sizeof path, "%s", below(directory, "plain-file"));
  file = fopen(path, "w");
  CHECK(file != NULL && fputs("something else", file) >= 0 && fclose(file) == 0);
  FAILS(ESKER_NOT_A_DATABASE, esker_open(directory, ESKER_NUL, NULL, &db, &error));
  error = NULL;
  strcat(path, "/db");
  CHECK(esker_open(path, ESKER_NUL, NULL, &db, &error) != ESKER_OK);
  CHECK(esker_error_path(error, NULL) != NULL);
  CHECK(esker_error_code(error) != ESKER_IO || esker_error_os_code(error) != 0);
  esker_error_free(error);
  FAILS(ESKER_MISSING, esker_repair_plan(below(directory, "nothing"), ESKER_NUL, NULL, NULL, NULL,
                                         &error));
}

static void closed(const char *directory) {
  esker_db *db = NULL;
  esker_keyspace *ks = NULL;
  esker_snapshot *snapshot = NULL, *late = NULL;
  esker_iter *iter = NULL, *late_iter = NULL;
  esker_batch *batch = esker_batch_new();
  esker_value *kept = NULL, *value = NULL;
  esker_list *list = NULL;
  bool found = true;
  const char *data;
  size_t length = 0;
  OK(esker_open(below(directory, "closed"), ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "k", 1, NULL, &ks, &error));
  OK(esker_put(ks, T("key"), T("value"), 0, &error));
  OK(esker_batch_put(batch, ks, T("b"), T("2"), &error));
  OK(esker_snapshot_new(db, &snapshot, &error));
  OK(esker_iter_new(ks, NULL, NULL, 0, NULL, 0, &iter, &error));
  OK(esker_iter_first(iter, &error));
  OK(esker_get(ks, T("key"), &kept, &error));
  OK(esker_close(db, &error));

  FAILS(ESKER_CLOSED, esker_put(ks, T("key"), T("v"), 0, &error));
  FAILS(ESKER_CLOSED, esker_get(ks, T("key"), &value, &error));
  FAILS(ESKER_CLOSED, esker_delete(ks, T("key"), 0, &error));
  FAILS(ESKER_CLOSED, esker_contains(ks, T("key"), &found, &error));
  FAILS(ESKER_CLOSED, esker_write(db, batch, 0, NULL, &error));
  FAILS(ESKER_CLOSED, esker_snapshot_get(snapshot, ks, T("key"), &value, &error));
  FAILS(ESKER_CLOSED, esker_snapshot_new(db, &late, &error));
  FAILS(ESKER_CLOSED, esker_iter_new(ks, NULL, NULL, 0, NULL, 0, &late_iter, &error));
  FAILS(ESKER_CLOSED, esker_keyspaces(db, &list, &error));
  FAILS(ESKER_CLOSED, esker_flush(db, &error));
  FAILS(ESKER_CLOSED, esker_compact(db, &error));
  FAILS(ESKER_CLOSED, esker_sync(db, &error));
  FAILS(ESKER_CLOSED, esker_verify(db, NULL, NULL, &error));
  /* An iterator fails, keeps its error, and is on no entry. */
  FAILS(ESKER_CLOSED, esker_iter_next(iter, &error));
  FAILS(ESKER_CLOSED, esker_iter_next(iter, &error));
  FAILS(ESKER_CLOSED, esker_iter_error(iter, &error));
  CHECK(!esker_iter_valid(iter) && esker_iter_value(iter, &length) == NULL && length == 0);
  FAILS(ESKER_CLOSED, esker_iter_seek(iter, T("key"), &error));
  CHECK(!found && value == NULL && late == NULL && late_iter == NULL && list == NULL);
  /* A value that was handed out stays. */
  data = esker_value_data(kept, &length);
  CHECK(same(data, length, "value"));

  /* The database may go before what hangs on it. */
  esker_db_free(db);
  FAILS(ESKER_CLOSED, esker_get(ks, T("key"), &value, &error));
  esker_iter_free(iter);
  esker_snapshot_free(snapshot);
  esker_batch_free(batch);
  esker_keyspace_free(ks);
  data = esker_value_data(kept, &length);
  CHECK(same(data, length, "value"));
  esker_value_free(kept);
}

static void dropped_and_read_only(const char *directory) {
  esker_options *options = esker_options_new();
  esker_db *db = NULL;
  esker_keyspace *ks = NULL, *again = NULL;
  esker_error *error = NULL;
  size_t length = 0;
  char path[4096];
  snprintf(path, sizeof path, "%s", below(directory, "dropped"));
  OK(esker_open(path, ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "old", 3, NULL, &ks, &error));
  OK(esker_drop_keyspace(db, "old", 3, NULL, &error));
  CHECK(esker_put(ks, "k", 1, "v", 1, 0, &error) == ESKER_KEYSPACE_DROPPED);
  CHECK(same(esker_error_keyspace(error, &length), 3, "old") && length == 3);
  esker_error_free(error);
  esker_keyspace_free(ks);
  OK(esker_keyspace_open(db, "new", 3, NULL, &ks, &error));
  OK(esker_put(ks, "k", 1, "v", 1, 0, &error));
  esker_keyspace_free(ks);
  OK(esker_close(db, &error));
  esker_db_free(db);

  OK(esker_options_set(options, ESKER_OPTION_READ_ONLY, 1, &error));
  OK(esker_open(path, ESKER_NUL, options, &db, &error));
  OK(esker_keyspace_open(db, "new", 3, NULL, &again, &error));
  FAILS(ESKER_READ_ONLY, esker_put(again, "k", 1, "v", 1, 0, &error));
  CHECK(holds(again, "k", "v"));
  esker_keyspace_free(again);
  esker_db_free(db);
  esker_options_free(options);
}

static void names_of_codes(void) {
  int32_t code;
  CHECK(strcmp(esker_code_name(ESKER_OK), "ok") == 0);
  CHECK(strcmp(esker_code_name(ESKER_NOT_A_DATABASE), "not-a-database") == 0);
  for (code = -5; code < 300; code++) {
    CHECK(strlen(esker_code_name(code)) > 1);
  }
  CHECK(strcmp(esker_code_name(77), "unknown") == 0);
  CHECK(esker_error_code(NULL) == ESKER_OK && esker_error_message(NULL) != NULL);
}

int main(int count, char **arguments) {
  esker_db *db = NULL;
  esker_keyspace *ks = NULL;
  CHECK(count == 2);
  OK(esker_open(below(arguments[1], "db"), ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "default", ESKER_NUL, NULL, &ks, &error));
  misuse(db, ks);
  esker_keyspace_free(ks);
  esker_db_free(db);
  options();
  directories(arguments[1]);
  closed(arguments[1]);
  dropped_and_read_only(arguments[1]);
  names_of_codes();
  puts("errors: ok");
  return 0;
}
