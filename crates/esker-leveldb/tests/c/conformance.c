/* What LevelDB's C interface promises, checked through its header alone: `conformance DIR`.
 *
 * It is compiled once against whichever leveldb/c.h is found and runs on LevelDB itself and on
 * Esker's library. What only one of them promises is in other programs. Every failed check is
 * told; the last line counts them. */
#define _POSIX_C_SOURCE 200809L
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int checks, failures;

#define CHECK(condition)                                                        \
    do {                                                                        \
        checks++;                                                               \
        if (!(condition)) {                                                     \
            failures++;                                                         \
            printf("%s:%d: %s: not so: %s\n", __FILE__, __LINE__, part, #condition); \
        }                                                                       \
    } while (0)

static const char *part = "";
static char path[4096];
static char *err;
static leveldb_options_t *options;
static leveldb_readoptions_t *reading;
static leveldb_writeoptions_t *writing;
static leveldb_t *db;

static void no_error(int line) {
    checks++;
    if (err) {
        failures++;
        printf("%s: line %d: unexpected error: %s\n", part, line, err);
        leveldb_free(err);
        err = NULL;
    }
}
#define NO_ERROR() no_error(__LINE__)

static int error_contains(const char *text) {
    int found = err && strstr(err, text) != NULL;
    if (!found) {
        printf("the error is: %s\n", err ? err : "(none)");
    }
    leveldb_free(err);
    err = NULL;
    return found;
}

static void reopen(void) {
    if (db) {
        leveldb_close(db);
    }
    db = leveldb_open(options, path, &err);
    NO_ERROR();
    if (!db) {
        printf("%s: it does not open: giving up\n", part);
        exit(1);
    }
}

static void put(const char *key, const char *value) {
    leveldb_put(db, writing, key, strlen(key), value, strlen(value), &err);
    NO_ERROR();
}

static void erase(const char *key) {
    leveldb_delete(db, writing, key, strlen(key), &err);
    NO_ERROR();
}

/* Whether `key` has the value `value`; NULL: none. */
static int has(const char *key, const char *value) {
    size_t len = 77;
    char *found = leveldb_get(db, reading, key, strlen(key), &len, &err);
    int same;
    NO_ERROR();
    if (!value) {
        same = !found && len == 0;
    } else {
        same = found && len == strlen(value) && !memcmp(found, value, len);
    }
    leveldb_free(found);
    return same;
}

static int at(const leveldb_iterator_t *iterator, const char *key, const char *value) {
    size_t key_len = 0, value_len = 0;
    const char *found_key, *found_value;
    if (!leveldb_iter_valid(iterator)) {
        return 0;
    }
    found_key = leveldb_iter_key(iterator, &key_len);
    found_value = leveldb_iter_value(iterator, &value_len);
    return key_len == strlen(key) && !memcmp(found_key, key, key_len) &&
           value_len == strlen(value) && !memcmp(found_value, value, value_len);
}

static void opening(void) {
    char *property;
    part = "opening";
    CHECK(leveldb_major_version() >= 1);
    CHECK(leveldb_minor_version() >= 0);
    CHECK(!leveldb_open(options, path, &err));
    CHECK(error_contains("Invalid argument: "));
    CHECK(!leveldb_open(options, path, &err));
    CHECK(error_contains("does not exist (create_if_missing is false)"));
    leveldb_options_set_create_if_missing(options, 1);
    reopen();
    leveldb_close(db);
    db = NULL;
    leveldb_options_set_error_if_exists(options, 1);
    CHECK(!leveldb_open(options, path, &err));
    CHECK(error_contains("exists (error_if_exists is true)"));
    leveldb_options_set_error_if_exists(options, 0);
    reopen();
    /* An error that stands there is freed and replaced. */
    err = strdup("an error from before");
    CHECK(!leveldb_open(options, path, &err));
    CHECK(err && strncmp(err, "IO error: lock ", 15) == 0);
    CHECK(error_contains("/LOCK"));
    property = leveldb_property_value(db, "no such property");
    CHECK(!property);
}

static void entries(void) {
    size_t len = 77;
    char *value;
    part = "entries";
    CHECK(has("foo", NULL));
    put("foo", "hello");
    CHECK(has("foo", "hello"));
    put("foo", "again");
    CHECK(has("foo", "again"));
    erase("foo");
    CHECK(has("foo", NULL));
    erase("foo");
    put("", "under the empty key");
    CHECK(has("", "under the empty key"));
    leveldb_put(db, writing, NULL, 0, NULL, 0, &err);
    NO_ERROR();
    value = leveldb_get(db, reading, "", 0, &len, &err);
    NO_ERROR();
    CHECK(value && len == 0); /* an empty value is no missing one */
    leveldb_free(value);
    erase("");
    leveldb_writeoptions_set_sync(writing, 1);
    leveldb_put(db, writing, "zero\0byte", 9, "a\0b", 3, &err);
    NO_ERROR();
    leveldb_writeoptions_set_sync(writing, 0);
    CHECK(has("zero", NULL));
    value = leveldb_get(db, reading, "zero\0byte", 9, &len, &err);
    CHECK(value && len == 3 && !memcmp(value, "a\0b", 3));
    leveldb_free(value);
    leveldb_delete(db, writing, "zero\0byte", 9, &err);
    NO_ERROR();
}

static int position;

static void see_put(void *state, const char *key, size_t key_len, const char *value, size_t len) {
    CHECK(state == &position);
    if (position == 0) {
        CHECK(key_len == 3 && !memcmp(key, "bar", 3) && len == 1 && *value == 'b');
    } else {
        CHECK(position == 1 || position == 3);
        CHECK(key_len == 3 && !memcmp(key, "box", 3) && len == 1 && *value == 'c');
    }
    position++;
}

static void see_delete(void *state, const char *key, size_t key_len) {
    CHECK(state == &position);
    CHECK(position == 2 || position == 4);
    CHECK(key_len == 3 && !memcmp(key, "bar", 3));
    position++;
}

static void batches(void) {
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_writebatch_t *more = leveldb_writebatch_create();
    part = "batches";
    put("foo", "hello");
    leveldb_writebatch_put(batch, "foo", 3, "a", 1);
    leveldb_writebatch_clear(batch);
    leveldb_writebatch_put(batch, "bar", 3, "b", 1);
    leveldb_writebatch_put(batch, "box", 3, "c", 1);
    leveldb_writebatch_put(more, "bar", 3, "d", 1);
    leveldb_writebatch_clear(more);
    leveldb_writebatch_delete(more, "bar", 3);
    leveldb_writebatch_append(batch, more);
    leveldb_write(db, writing, batch, &err);
    NO_ERROR();
    CHECK(has("foo", "hello"));
    CHECK(has("bar", NULL));
    CHECK(has("box", "c"));
    position = 0;
    leveldb_writebatch_iterate(batch, &position, see_put, see_delete);
    CHECK(position == 3);
    /* A batch may be written again, and grow. */
    leveldb_writebatch_clear(more);
    leveldb_writebatch_put(more, "box", 3, "c", 1);
    leveldb_writebatch_delete(more, "bar", 3);
    leveldb_writebatch_append(batch, more);
    put("bar", "in between");
    leveldb_writeoptions_set_sync(writing, 1);
    leveldb_write(db, writing, batch, &err);
    NO_ERROR();
    leveldb_writebatch_clear(more);
    leveldb_write(db, writing, more, &err); /* an empty one */
    NO_ERROR();
    leveldb_writeoptions_set_sync(writing, 0);
    CHECK(has("bar", NULL));
    position = 0;
    leveldb_writebatch_iterate(batch, &position, see_put, see_delete);
    CHECK(position == 5);
    leveldb_writebatch_destroy(batch);
    leveldb_writebatch_destroy(more);
}

static void iterators(void) {
    leveldb_iterator_t *iterator;
    part = "iterators";
    iterator = leveldb_create_iterator(db, reading);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_seek_to_first(iterator);
    CHECK(at(iterator, "box", "c"));
    leveldb_iter_next(iterator);
    CHECK(at(iterator, "foo", "hello"));
    leveldb_iter_prev(iterator);
    CHECK(at(iterator, "box", "c"));
    leveldb_iter_prev(iterator);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_seek_to_last(iterator);
    CHECK(at(iterator, "foo", "hello"));
    leveldb_iter_next(iterator);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_seek(iterator, "b", 1);
    CHECK(at(iterator, "box", "c"));
    leveldb_iter_seek(iterator, "boy", 3);
    CHECK(at(iterator, "foo", "hello"));
    leveldb_iter_prev(iterator);
    CHECK(at(iterator, "box", "c"));
    leveldb_iter_seek(iterator, "zzz", 3);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_get_error(iterator, &err);
    NO_ERROR();
    /* It shows the moment at which it was made. */
    put("new", "later");
    leveldb_iter_seek(iterator, "new", 3);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_destroy(iterator);
    erase("new");
}

static void snapshots(void) {
    const leveldb_snapshot_t *snapshot;
    leveldb_iterator_t *iterator;
    part = "snapshots";
    snapshot = leveldb_create_snapshot(db);
    CHECK(snapshot != NULL);
    erase("foo");
    put("newer", "1");
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    leveldb_readoptions_set_snapshot(reading, snapshot);
    CHECK(has("foo", "hello"));
    CHECK(has("newer", NULL));
    iterator = leveldb_create_iterator(db, reading);
    leveldb_iter_seek_to_last(iterator);
    CHECK(at(iterator, "foo", "hello"));
    leveldb_iter_destroy(iterator);
    leveldb_readoptions_set_snapshot(reading, NULL);
    CHECK(has("foo", NULL));
    CHECK(has("newer", "1"));
    leveldb_release_snapshot(db, snapshot);
    erase("newer");
}

static void sizes_and_properties(void) {
    static const char *const names[] = {"leveldb.stats", "leveldb.sstables",
                                        "leveldb.approximate-memory-usage",
                                        "leveldb.num-files-at-level0",
                                        "leveldb.num-files-at-level6"};
    const char *starts[2] = {"a", "k00000000000000010000"};
    const char *limits[2] = {"k00000000000000010000", "z"};
    size_t start_lens[2] = {1, 21}, limit_lens[2] = {21, 1};
    uint64_t sizes[2] = {0, 0};
    char key[100], value[100];
    size_t i;
    part = "sizes and properties";
    for (i = 0; i < 20000; i++) {
        snprintf(key, sizeof key, "k%020d", (int)i);
        snprintf(value, sizeof value, "v%020d", (int)i);
        put(key, value);
    }
    leveldb_approximate_sizes(db, 2, starts, start_lens, limits, limit_lens, sizes);
    CHECK(sizes[0] > 0);
    CHECK(sizes[1] > 0);
    leveldb_compact_range(db, "a", 1, "z", 1);
    leveldb_approximate_sizes(db, 2, starts, start_lens, limits, limit_lens, sizes);
    CHECK(sizes[0] > 10000 && sizes[0] < 1000000);
    CHECK(sizes[1] > 10000 && sizes[1] < 1000000);
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        char *text = leveldb_property_value(db, names[i]);
        CHECK(text && *text);
        leveldb_free(text);
    }
    CHECK(!leveldb_property_value(db, "leveldb.num-files-at-level7"));
    CHECK(!leveldb_property_value(db, "leveldb.num-files-at-level"));
    CHECK(!leveldb_property_value(db, "leveldb.nothing"));
    CHECK(!leveldb_property_value(db, "stats"));
}

static void repairing(void) {
    part = "repairing";
    leveldb_close(db);
    db = NULL;
    leveldb_options_set_create_if_missing(options, 0);
    leveldb_repair_db(options, path, &err);
    NO_ERROR();
    reopen();
    CHECK(has("foo", NULL));
    CHECK(has("bar", NULL));
    CHECK(has("box", "c"));
    CHECK(has("k00000000000000012345", "v00000000000000012345"));
    leveldb_options_set_create_if_missing(options, 1);
}

static int destroyed;

static void destroy_state(void *state) { *(int *)state += 1; }

static char *make_filter(void *state, const char *const *keys, const size_t *lens, int count,
                         size_t *filter_len) {
    (void)state, (void)keys, (void)lens, (void)count;
    *filter_len = 4;
    return memcpy(malloc(4), "fake", 4);
}

static uint8_t may_match(void *state, const char *key, size_t len, const char *filter,
                         size_t filter_len) {
    (void)state, (void)key, (void)len, (void)filter, (void)filter_len;
    return 1;
}

static const char *filter_name(void *state) {
    (void)state;
    return "TestFilter";
}

static void start_over(void) {
    if (db) {
        leveldb_close(db);
        db = NULL;
    }
    leveldb_destroy_db(options, path, &err);
    NO_ERROR();
}

static void filters(void) {
    int run;
    part = "filters";
    for (run = 0; run < 2; run++) {
        leveldb_filterpolicy_t *policy;
        destroyed = 0;
        policy = run == 0 ? leveldb_filterpolicy_create(&destroyed, destroy_state, make_filter,
                                                        may_match, filter_name)
                          : leveldb_filterpolicy_create_bloom(10);
        leveldb_options_set_filter_policy(options, policy);
        start_over();
        reopen();
        put("foo", "foovalue");
        put("bar", "barvalue");
        leveldb_compact_range(db, NULL, 0, NULL, 0);
        CHECK(has("foo", "foovalue"));
        CHECK(has("bar", "barvalue"));
        leveldb_close(db);
        db = NULL;
        leveldb_options_set_filter_policy(options, NULL);
        leveldb_filterpolicy_destroy(policy);
        CHECK(destroyed == (run == 0));
    }
}

/* Numbers as text, the greatest first. */
static int by_number(void *state, const char *a, size_t a_len, const char *b, size_t b_len) {
    char left[32] = {0}, right[32] = {0};
    long difference;
    (void)state;
    memcpy(left, a, a_len);
    memcpy(right, b, b_len);
    difference = atol(right) - atol(left);
    return difference < 0 ? -1 : difference > 0;
}

static const char *order_name(void *state) { return *(int *)state >= 100 ? "other" : "by number"; }

static void comparators(void) {
    leveldb_comparator_t *order, *other;
    leveldb_iterator_t *iterator;
    int other_state = 100;
    char key[32];
    int i;
    part = "comparators";
    start_over();
    destroyed = 0;
    order = leveldb_comparator_create(&destroyed, destroy_state, by_number, order_name);
    other = leveldb_comparator_create(&other_state, destroy_state, by_number, order_name);
    leveldb_options_set_comparator(options, order);
    reopen();
    for (i = 1; i <= 2000; i++) {
        snprintf(key, sizeof key, "%d", i);
        put(key, key);
    }
    CHECK(has("0100", "100")); /* equal in this order */
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    reopen();
    iterator = leveldb_create_iterator(db, reading);
    leveldb_iter_seek_to_first(iterator);
    CHECK(at(iterator, "2000", "2000"));
    leveldb_iter_seek(iterator, "150", 3);
    CHECK(at(iterator, "150", "150"));
    leveldb_iter_next(iterator);
    CHECK(at(iterator, "149", "149"));
    leveldb_iter_prev(iterator);
    leveldb_iter_prev(iterator);
    CHECK(at(iterator, "151", "151"));
    leveldb_iter_seek_to_last(iterator);
    CHECK(at(iterator, "1", "1"));
    leveldb_iter_destroy(iterator);
    leveldb_close(db);
    db = NULL;
    leveldb_options_set_comparator(options, other);
    CHECK(!leveldb_open(options, path, &err));
    CHECK(error_contains("Invalid argument: by number does not match existing comparator"));
    leveldb_options_destroy(options);
    options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    CHECK(!leveldb_open(options, path, &err));
    CHECK(error_contains("by number does not match existing comparator : "
                         "leveldb.BytewiseComparator"));
    leveldb_options_set_comparator(options, order);
    reopen();
    CHECK(has("77", "77"));
    start_over();
    /* An empty database in byte order does not take a comparator either. */
    leveldb_options_destroy(options);
    options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    reopen();
    leveldb_close(db);
    db = NULL;
    leveldb_options_set_comparator(options, order);
    CHECK(!leveldb_open(options, path, &err));
    CHECK(error_contains("leveldb.BytewiseComparator does not match existing comparator"));
    leveldb_options_destroy(options);
    options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    CHECK(destroyed == 0);
    leveldb_comparator_destroy(order);
    CHECK(destroyed == 1);
    leveldb_comparator_destroy(other);
    CHECK(other_state == 101);
}

static void destroying(void) {
    char other[5000];
    FILE *file;
    part = "destroying";
    reopen();
    put("k", "v");
    snprintf(other, sizeof other, "%s/kept.txt", path);
    file = fopen(other, "w");
    CHECK(file != NULL);
    if (file) {
        fclose(file);
    }
    leveldb_destroy_db(options, path, &err);
    CHECK(error_contains("lock"));
    CHECK(has("k", "v"));
    leveldb_close(db);
    db = NULL;
    leveldb_destroy_db(options, path, &err);
    NO_ERROR();
    file = fopen(other, "r");
    CHECK(file != NULL); /* not the database's, so it stays */
    if (file) {
        fclose(file);
    }
    CHECK(remove(other) == 0);
    leveldb_options_set_create_if_missing(options, 0);
    CHECK(!leveldb_open(options, path, &err));
    CHECK(error_contains("does not exist"));
    leveldb_destroy_db(options, path, &err);
    NO_ERROR();
    leveldb_destroy_db(options, path, &err); /* nothing is there, which is no error */
    NO_ERROR();
    snprintf(other, sizeof other, "%s-empty", path);
    CHECK(mkdir(other, 0700) == 0);
    leveldb_destroy_db(options, other, &err); /* an empty directory goes */
    NO_ERROR();
    CHECK(access(other, F_OK) != 0);
    leveldb_options_set_create_if_missing(options, 1);
    snprintf(other, sizeof other, "%s-missing/database", path);
    CHECK(!leveldb_open(options, other, &err)); /* no parent is made */
    CHECK(error_contains("NotFound: "));
    leveldb_options_set_create_if_missing(options, 0);
}

int main(int argc, char **argv) {
    leveldb_cache_t *cache = leveldb_cache_create_lru(100000);
    leveldb_env_t *env = leveldb_create_default_env();
    char *directory = leveldb_env_get_test_directory(env);
    if (argc != 2) {
        fprintf(stderr, "usage: conformance DIR, a directory in which it may do anything\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/conformance", argv[1]);
    CHECK(directory && *directory);
    leveldb_free(directory);
    options = leveldb_options_create();
    leveldb_options_set_cache(options, cache);
    leveldb_options_set_env(options, env);
    leveldb_options_set_info_log(options, NULL);
    leveldb_options_set_write_buffer_size(options, 100000);
    leveldb_options_set_paranoid_checks(options, 1);
    leveldb_options_set_max_open_files(options, 10);
    leveldb_options_set_block_size(options, 1024);
    leveldb_options_set_block_restart_interval(options, 8);
    leveldb_options_set_max_file_size(options, 3 << 20);
    leveldb_options_set_compression(options, leveldb_no_compression);
    reading = leveldb_readoptions_create();
    leveldb_readoptions_set_verify_checksums(reading, 1);
    leveldb_readoptions_set_fill_cache(reading, 1);
    writing = leveldb_writeoptions_create();

    opening();
    entries();
    batches();
    iterators();
    snapshots();
    sizes_and_properties();
    repairing();
    filters();
    comparators();
    destroying();

    leveldb_options_destroy(options);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    leveldb_cache_destroy(cache);
    leveldb_env_destroy(env);
    /* What takes NULL in LevelDB. */
    leveldb_free(NULL);
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0;
}
