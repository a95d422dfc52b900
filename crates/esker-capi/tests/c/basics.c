/* Everything that goes well: each function does what its documentation says. */
#include "check.h"

static esker_db *open_small(const char *path) {
  esker_options *options = esker_options_new();
  esker_db *db = NULL;
  CHECK(options != NULL);
  OK(esker_options_set(options, ESKER_OPTION_MEMORY, 16 << 20, &error));
  OK(esker_options_set(options, ESKER_OPTION_DURABILITY, ESKER_DURABILITY_PROCESS, &error));
  OK(esker_options_set(options, ESKER_OPTION_CREATE_IF_MISSING, 1, &error));
  OK(esker_options_set(options, ESKER_OPTION_ERROR_IF_EXISTS, 0, &error));
  OK(esker_options_set(options, ESKER_OPTION_READ_ONLY, 0, &error));
  OK(esker_options_set(options, ESKER_OPTION_WORKERS, 1, &error));
  OK(esker_options_set(options, ESKER_OPTION_COMPRESSION, ESKER_COMPRESSION_LZ4, &error));
  OK(esker_options_set(options, ESKER_OPTION_LOG, ESKER_LOG_AUTO, &error));
  OK(esker_options_set(options, ESKER_OPTION_RECOVERY, ESKER_RECOVERY_REFUSE, &error));
  OK(esker_options_set(options, ESKER_OPTION_SYNC_INTERVAL_MS, 1000, &error));
  OK(esker_options_set(options, ESKER_OPTION_MEMTABLE_BYTES, 1 << 20, &error));
  OK(esker_options_set(options, ESKER_OPTION_PARTITION_BYTES, 1 << 20, &error));
  OK(esker_options_set(options, ESKER_OPTION_SEGMENT_BYTES, 64 << 10, &error));
  OK(esker_options_set(options, ESKER_OPTION_BLOCK_BYTES, 4 << 10, &error));
  OK(esker_options_set(options, ESKER_OPTION_LOG_SEGMENT_BYTES, 1 << 20, &error));
  OK(esker_open(path, ESKER_NUL, options, &db, &error));
  esker_options_free(options);
  return db;
}

static esker_keyspace *keyspace_of(const esker_db *db, const char *name) {
  esker_keyspace *keyspace = NULL;
  OK(esker_keyspace_open(db, name, ESKER_NUL, NULL, &keyspace, &error));
  return keyspace;
}

static void reads_and_writes(const esker_keyspace *ks) {
  char buffer[8];
  size_t length = 0;
  bool found = false;
  esker_value *values[3];
  const void *keys[3] = {"one", "none", "two"};
  size_t lengths[3] = {3, 4, 3};

  OK(esker_put(ks, T("one"), T("1"), ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_put(ks, T("two"), T("22"), ESKER_DURABILITY_BUFFERED, &error));
  OK(esker_put(ks, T("three"), T("333"), ESKER_DURABILITY_PROCESS, &error));
  OK(esker_put(ks, T("empty"), NULL, 0, ESKER_DURABILITY_DISK, &error));
  OK(esker_put(ks, NULL, 0, T("under the empty key"), ESKER_DURABILITY_DEFAULT, &error));
  CHECK(holds(ks, "one", "1") && holds(ks, "two", "22") && holds(ks, "three", "333"));
  CHECK(holds(ks, "empty", "") && holds(ks, "", "under the empty key"));
  CHECK(holds(ks, "four", NULL));

  OK(esker_contains(ks, T("one"), &found, &error));
  CHECK(found);
  OK(esker_contains(ks, T("four"), &found, &error));
  CHECK(!found);

  OK(esker_get_copy(ks, T("three"), buffer, sizeof buffer, &length, &found, &error));
  CHECK(found && same(buffer, length, "333"));
  OK(esker_get_copy(ks, T("three"), buffer, 2, &length, &found, &error));
  CHECK(found && length == 3);
  OK(esker_get_copy(ks, T("three"), NULL, 0, &length, &found, &error));
  CHECK(found && length == 3);
  OK(esker_get_copy(ks, T("four"), buffer, sizeof buffer, &length, &found, &error));
  CHECK(!found && length == 0);

  OK(esker_multi_get(ks, keys, lengths, 3, values, &error));
  CHECK(same(esker_value_data(values[0], &length), 1, "1"));
  CHECK(length == 1 && values[1] == NULL && values[2] != NULL);
  esker_value_free(values[0]);
  esker_value_free(values[1]);
  esker_value_free(values[2]);
  OK(esker_multi_get(ks, NULL, NULL, 0, NULL, &error));

  OK(esker_delete(ks, T("one"), ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_delete(ks, T("one"), ESKER_DURABILITY_PROCESS, &error));
  CHECK(holds(ks, "one", NULL));
  OK(esker_delete_range(ks, T("t"), T("u"), ESKER_DURABILITY_DEFAULT, &error));
  CHECK(holds(ks, "two", NULL) && holds(ks, "three", NULL) && holds(ks, "empty", ""));
  OK(esker_put(ks, T("empty2"), T(""), ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_delete_prefix(ks, T("empty"), ESKER_DURABILITY_PROCESS, &error));
  CHECK(holds(ks, "empty", NULL) && holds(ks, "empty2", NULL) && holds(ks, "", "under the empty key"));
  OK(esker_delete_range(ks, NULL, 0, NULL, 0, ESKER_DURABILITY_PROCESS, &error));
  CHECK(holds(ks, "", NULL));
  OK(esker_put(ks, T("again"), T(""), ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_clear(ks, ESKER_DURABILITY_DEFAULT, &error));
  CHECK(holds(ks, "again", NULL));
}

static void batches(const esker_db *db, const esker_keyspace *a, const esker_keyspace *b) {
  esker_batch *batch = esker_batch_new();
  uint64_t position = 1;
  CHECK(batch != NULL && esker_batch_len(batch) == 0);
  OK(esker_write(db, batch, ESKER_DURABILITY_DEFAULT, &position, &error));
  CHECK(position == 0);
  OK(esker_batch_put(batch, a, T("x"), T("1"), &error));
  OK(esker_batch_put(batch, b, T("y"), T("2"), &error));
  OK(esker_batch_delete(batch, a, T("x"), &error));
  OK(esker_batch_put(batch, a, T("z"), T("3"), &error));
  OK(esker_batch_delete_range(batch, b, T("q"), T("r"), &error));
  OK(esker_batch_delete_prefix(batch, b, T("none"), &error));
  CHECK(esker_batch_len(batch) == 6);
  OK(esker_write(db, batch, ESKER_DURABILITY_DEFAULT, &position, &error));
  CHECK(position > 0);
  OK(esker_wait_durable(db, position, &error));
  CHECK(holds(a, "x", NULL) && holds(a, "z", "3") && holds(b, "y", "2"));
  /* It stays as it is and may be written again. */
  OK(esker_delete(a, T("z"), ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_write(db, batch, ESKER_DURABILITY_PROCESS, NULL, &error));
  CHECK(holds(a, "z", "3"));
  /* Nothing slows writers here, so a write that does not wait does the same. */
  OK(esker_try_put(a, T("try"), T("4"), &error));
  CHECK(holds(a, "try", "4"));
  OK(esker_try_delete(a, T("try"), &error));
  OK(esker_try_delete(a, T("z"), &error));
  CHECK(holds(a, "try", NULL) && holds(a, "z", NULL));
  OK(esker_try_write(db, batch, ESKER_DURABILITY_DEFAULT, &position, &error));
  CHECK(position > 0 && holds(a, "z", "3"));
  OK(esker_batch_clear(batch, &error));
  CHECK(esker_batch_len(batch) == 0);
  esker_batch_free(batch);
}

/* Whether the iterator stands on this key, whose value is the same text. */
static bool stands(const esker_iter *iter, const char *key) {
  size_t key_length = 99, value_length = 99;
  const char *found = esker_iter_key(iter, &key_length);
  const char *value = esker_iter_value(iter, &value_length);
  OK(esker_iter_error(iter, &error));
  if (key == NULL) {
    return !esker_iter_valid(iter) && found == NULL && value == NULL && key_length == 0;
  }
  return esker_iter_valid(iter) && same(found, key_length, key) && same(value, value_length, key);
}

static void iterators(const esker_db *db, const esker_keyspace *ks) {
  static const char *const KEYS[] = {"a", "c", "e", "g"};
  esker_snapshot *snapshot = NULL;
  esker_iter *iter = NULL;
  esker_value *value = NULL;
  bool found = false;
  const void *keys[2] = {"a", "b"};
  size_t lengths[2] = {1, 1};
  esker_value *values[2];
  size_t i;
  for (i = 0; i < 4; i++) {
    OK(esker_put(ks, T(KEYS[i]), T(KEYS[i]), ESKER_DURABILITY_DEFAULT, &error));
  }
  OK(esker_snapshot_new(db, &snapshot, &error));
  OK(esker_put(ks, T("b"), T("b"), ESKER_DURABILITY_DEFAULT, &error));

  OK(esker_iter_new(ks, NULL, NULL, 0, NULL, 0, &iter, &error));
  CHECK(stands(iter, NULL));
  OK(esker_iter_first(iter, &error));
  CHECK(stands(iter, "a"));
  OK(esker_iter_next(iter, &error));
  CHECK(stands(iter, "b"));
  OK(esker_iter_prev(iter, &error));
  CHECK(stands(iter, "a"));
  OK(esker_iter_prev(iter, &error));
  CHECK(stands(iter, NULL));
  OK(esker_iter_last(iter, &error));
  CHECK(stands(iter, "g"));
  OK(esker_iter_next(iter, &error));
  CHECK(stands(iter, NULL));
  OK(esker_iter_seek(iter, T("d"), &error));
  CHECK(stands(iter, "e"));
  OK(esker_iter_seek_back(iter, T("d"), &error));
  CHECK(stands(iter, "c"));
  esker_iter_free(iter);

  /* Within bounds, as of the snapshot. */
  OK(esker_iter_new(ks, snapshot, T("a"), T("e"), &iter, &error));
  OK(esker_iter_first(iter, &error));
  CHECK(stands(iter, "a"));
  OK(esker_iter_next(iter, &error));
  CHECK(stands(iter, "c"));
  OK(esker_iter_next(iter, &error));
  CHECK(stands(iter, NULL));
  esker_iter_free(iter);

  /* Below a prefix. */
  OK(esker_put(ks, T("c\xff"), T("c\xff"), ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_iter_new_prefix(ks, NULL, T("c"), &iter, &error));
  OK(esker_iter_last(iter, &error));
  CHECK(stands(iter, "c\xff"));
  OK(esker_iter_prev(iter, &error));
  CHECK(stands(iter, "c"));
  OK(esker_iter_prev(iter, &error));
  CHECK(stands(iter, NULL));
  esker_iter_free(iter);
  OK(esker_iter_new_prefix(ks, snapshot, NULL, 0, &iter, &error));
  OK(esker_iter_last(iter, &error));
  CHECK(stands(iter, "g"));
  esker_iter_free(iter);
  OK(esker_delete(ks, T("c\xff"), ESKER_DURABILITY_DEFAULT, &error));

  CHECK(esker_snapshot_position(snapshot) > 0 && esker_snapshot_position(NULL) == 0);
  OK(esker_snapshot_contains(snapshot, ks, T("b"), &found, &error));
  CHECK(!found);
  OK(esker_snapshot_get(snapshot, ks, T("b"), &value, &error));
  CHECK(value == NULL);
  OK(esker_snapshot_get(snapshot, ks, T("a"), &value, &error));
  CHECK(value != NULL);
  esker_value_free(value);
  OK(esker_snapshot_multi_get(snapshot, ks, keys, lengths, 2, values, &error));
  CHECK(values[0] != NULL && values[1] == NULL);
  esker_value_free(values[0]);
  esker_snapshot_free(snapshot);
}

static void upkeep(const esker_db *db, const esker_keyspace *ks) {
  esker_value *json = NULL;
  size_t problems = 9, length = 0;
  uint64_t size = 0;
  const char *text;
  OK(esker_flush(db, &error));
  OK(esker_compact(db, &error));
  OK(esker_keyspace_compact(ks, T("a"), NULL, 0, &error));
  OK(esker_wait_until_idle(db, &error));
  OK(esker_sync(db, &error));
  OK(esker_approximate_size(ks, NULL, 0, NULL, 0, &size, &error));
  CHECK(size > 0);
  OK(esker_stats(db, &json, &error));
  text = esker_value_data(json, &length);
  CHECK(strlen(text) == length && text[0] == '{' && text[length - 1] == '}');
  CHECK(strstr(text, "\"puts\":") != NULL && strstr(text, "\"trees\":") != NULL);
  esker_value_free(json);
  OK(esker_openmetrics(db, &json, &error));
  text = esker_value_data(json, &length);
  CHECK(strlen(text) == length && strstr(text, "# TYPE esker_puts counter\n") == text);
  CHECK(length > 6 && strcmp(text + length - 6, "# EOF\n") == 0);
  CHECK(strstr(text, "\nesker_pace_mode{esker_pace_mode=\"open\"} 1\n") != NULL);
  esker_value_free(json);
  OK(esker_segments(ks, &json, &error));
  text = esker_value_data(json, NULL);
  CHECK(strstr(text, "\"smallest\":\"61\"") != NULL && strstr(text, "\"entries\":") != NULL);
  esker_value_free(json);
  OK(esker_verify(db, &problems, &json, &error));
  CHECK(problems == 0);
  text = esker_value_data(json, NULL);
  CHECK(strstr(text, "\"problems\":[]") != NULL);
  esker_value_free(json);
  OK(esker_verify(db, NULL, NULL, &error));
}

static esker_value *json_text;

/* The text that the last call left, which is an object of JSON. */
static const char *object(void) {
  size_t length = 0;
  const char *text = esker_value_data(json_text, &length);
  CHECK(text != NULL && strlen(text) == length && text[0] == '{' && text[length - 1] == '}');
  return text;
}

static bool says(const char *part) { return strstr(object(), part) != NULL; }

/* Each explanation says what was done, and holds no key and no value. */
static void explanations(const esker_db *db) {
  esker_keyspace *ks = keyspace_of(db, "explained");
  esker_snapshot *before = NULL;
  bool dropped = false;
  OK(esker_explain_put(ks, T("secret-key"), T("secret-value"), &json_text, &error));
  CHECK(says("\"operation\":\"put\"") && says("\"keyspace\":\"explained\""));
  CHECK(says("\"source\":\"admission\"") && says("\"source\":\"log\""));
  CHECK(!says("secret"));
  esker_value_free(json_text);
  CHECK(holds(ks, "secret-key", "secret-value"));

  OK(esker_explain_get(ks, T("secret-key"), &json_text, &error));
  CHECK(says("\"operation\":\"get\"") && says("\"found\":true"));
  CHECK(says("\"source\":\"memtable\"") && says("\"outcome\":\"found\""));
  CHECK(!says("secret"));
  esker_value_free(json_text);
  OK(esker_explain_get(ks, T("absent"), &json_text, &error));
  CHECK(says("\"found\":false"));
  esker_value_free(json_text);

  OK(esker_snapshot_new(db, &before, &error));
  OK(esker_put(ks, T("a"), T("1"), ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_put(ks, T("b"), T("2"), ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_snapshot_explain_get(before, ks, T("a"), &json_text, &error));
  CHECK(says("\"found\":false"));
  esker_value_free(json_text);
  OK(esker_snapshot_explain_get(before, ks, T("secret-key"), &json_text, &error));
  CHECK(says("\"found\":true"));
  esker_value_free(json_text);
  esker_snapshot_free(before);

  OK(esker_explain_scan(ks, NULL, 0, NULL, 0, 100, &json_text, &error));
  CHECK(says("\"operation\":\"scan\"") && says("\"entries\":3,\"found\":true"));
  CHECK(!says("secret"));
  esker_value_free(json_text);
  OK(esker_explain_scan(ks, NULL, 0, NULL, 0, 2, &json_text, &error));
  CHECK(says("\"entries\":2,\"found\":true"));
  esker_value_free(json_text);
  OK(esker_explain_scan(ks, T("a"), T("b"), 100, &json_text, &error));
  CHECK(says("\"entries\":1,\"found\":true"));
  esker_value_free(json_text);

  FAILS(ESKER_MISUSE, esker_explain_get(ks, T("a"), NULL, &error));
  FAILS(ESKER_MISUSE, esker_explain_put(ks, T("unwritten"), T("v"), NULL, &error));
  CHECK(holds(ks, "unwritten", NULL));
  OK(esker_drop_keyspace(db, "explained", ESKER_NUL, &dropped, &error));
  esker_keyspace_free(ks);
}

/* Statistics show the label of a snapshot as long as it is held. */
static void labels(const esker_db *db) {
  esker_snapshot *report = NULL, *nightly = NULL;
  const char *text;
  OK(esker_snapshot_new_with_label(db, "report", ESKER_NUL, &report, &error));
  OK(esker_stats(db, &json_text, &error));
  CHECK(says("\"label\":\"report\""));
  esker_value_free(json_text);
  OK(esker_snapshot_new_with_label(db, "nightly run", 7, &nightly, &error));
  OK(esker_openmetrics(db, &json_text, &error));
  text = esker_value_data(json_text, NULL);
  CHECK(strstr(text, "label=\"report, nightly\"") != NULL);
  esker_value_free(json_text);
  esker_snapshot_free(report);
  OK(esker_stats(db, &json_text, &error));
  CHECK(says("\"label\":\"nightly\"") && !says("report"));
  esker_value_free(json_text);
  esker_snapshot_free(nightly);
  FAILS(ESKER_INVALID_ARGUMENT,
        esker_snapshot_new_with_label(db, "\xff", ESKER_NUL, &nightly, &error));
  CHECK(nightly == NULL);
  OK(esker_stats(db, &json_text, &error));
  CHECK(!says("\"label\":\"nightly\""));
  esker_value_free(json_text);
}

static void names(const esker_db *db, const char *path) {
  esker_list *list = NULL;
  size_t length = 0;
  bool dropped = false;
  uint8_t id[16], again[16], nothing[16] = {0};
  OK(esker_keyspaces(db, &list, &error));
  CHECK(esker_list_len(list) == 3);
  CHECK(strcmp(esker_list_get(list, 0, &length), "a") == 0 && length == 1);
  CHECK(strcmp(esker_list_get(list, 2, NULL), "default") == 0);
  CHECK(esker_list_get(list, 3, &length) == NULL && length == 0);
  esker_list_free(list);
  OK(esker_drop_keyspace(db, "a", 1, &dropped, &error));
  CHECK(dropped);
  OK(esker_drop_keyspace(db, "a", ESKER_NUL, &dropped, &error));
  CHECK(!dropped);
  CHECK(strcmp(esker_db_path(db, &length), path) == 0 && length == strlen(path));
  OK(esker_db_id(db, id, &error));
  OK(esker_db_id(db, again, &error));
  CHECK(memcmp(id, again, sizeof id) == 0 && memcmp(id, nothing, sizeof id) != 0);
}

static void repair(const char *path, const char *to) {
  esker_options *options = esker_options_new();
  esker_value *json = NULL;
  bool whole = false;
  OK(esker_repair_plan(path, ESKER_NUL, options, &whole, &json, &error));
  CHECK(whole && strstr(esker_value_data(json, NULL), "\"whole\":true") != NULL);
  esker_value_free(json);
  OK(esker_repair_plan(path, strlen(path), NULL, NULL, NULL, &error));
  OK(esker_repair(path, ESKER_NUL, to, ESKER_NUL, NULL, &json, &error));
  CHECK(strstr(esker_value_data(json, NULL), "\"operations\":") != NULL);
  esker_value_free(json);
  esker_options_free(options);
}

/* A checkpoint is a database of its own. */
static void checkpoint(const esker_db *db, const esker_keyspace *ks, const char *to) {
  esker_db *copy = NULL;
  esker_keyspace *copied;
  OK(esker_put(ks, T("moment"), T("then"), ESKER_DURABILITY_DEFAULT, &error));
  OK(esker_checkpoint(db, to, ESKER_NUL, &error));
  OK(esker_put(ks, T("moment"), T("now"), ESKER_DURABILITY_DEFAULT, &error));
  FAILS(ESKER_EXISTS, esker_checkpoint(db, to, ESKER_NUL, &error));
  OK(esker_open(to, ESKER_NUL, NULL, &copy, &error));
  copied = keyspace_of(copy, "b");
  CHECK(holds(copied, "moment", "then") && holds(ks, "moment", "now"));
  esker_keyspace_free(copied);
  OK(esker_close(copy, &error));
  esker_db_free(copy);
}

int main(int count, char **arguments) {
  char path[4096], to[4096];
  esker_db *db;
  esker_keyspace *a, *b;
  size_t length = 0;
  CHECK(count == 2);
  snprintf(path, sizeof path, "%s", below(arguments[1], "db"));
  snprintf(to, sizeof to, "%s", below(arguments[1], "saved"));
  CHECK(strchr(esker_version(), '.') != NULL);

  db = open_small(path);
  a = keyspace_of(db, "a");
  b = keyspace_of(db, "b");
  CHECK(strcmp(esker_keyspace_name(a, &length), "a") == 0 && length == 1);
  reads_and_writes(a);
  batches(db, a, b);
  OK(esker_delete_range(b, NULL, 0, NULL, 0, ESKER_DURABILITY_DEFAULT, &error));
  iterators(db, b);
  upkeep(db, b);
  checkpoint(db, b, below(arguments[1], "checkpoint"));
  explanations(db);
  labels(db);
  names(db, path);
  esker_keyspace_free(a);
  OK(esker_close(db, &error));
  OK(esker_close(db, &error));
  esker_keyspace_free(b);
  esker_db_free(db);

  repair(path, to);
  OK(esker_open(to, strlen(to), NULL, &db, &error));
  b = keyspace_of(db, "b");
  CHECK(holds(b, "g", "g"));
  esker_keyspace_free(b);
  /* The last handle closes it. */
  esker_db_free(db);

  /* Freeing nothing is fine. */
  esker_db_free(NULL);
  esker_keyspace_free(NULL);
  esker_batch_free(NULL);
  esker_iter_free(NULL);
  esker_snapshot_free(NULL);
  esker_value_free(NULL);
  esker_list_free(NULL);
  esker_options_free(NULL);
  esker_comparator_free(NULL);
  esker_error_free(NULL);
  puts("basics: ok");
  return 0;
}
