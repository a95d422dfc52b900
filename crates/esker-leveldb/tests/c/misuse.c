/* Wrong calls, which LevelDB leaves undefined and Esker's library bears: `misuse DIR`. */
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks, failures;

#define CHECK(condition)                                                     \
    do {                                                                     \
        checks++;                                                            \
        if (!(condition)) {                                                  \
            failures++;                                                      \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
        }                                                                    \
    } while (0)

static char *err;

static int failed_with(const char *text) {
    int found = err && strstr(err, text) != NULL;
    if (!found) {
        printf("the error is: %s\n", err ? err : "(none)");
    }
    leveldb_free(err);
    err = NULL;
    return found;
}

static void nothing_at_all(void) {
    leveldb_options_t *options = leveldb_options_create();
    leveldb_iterator_t *iterator;
    const char *key = "k";
    size_t one = 1, len = 7;
    uint64_t size = 7;
    CHECK(!leveldb_open(NULL, "x", &err) && failed_with("Invalid argument: "));
    CHECK(!leveldb_open(options, NULL, &err) && failed_with("Invalid argument: "));
    CHECK(!leveldb_open(options, "", &err) && failed_with(": "));
    CHECK(!leveldb_open(NULL, NULL, NULL));
    leveldb_put(NULL, NULL, "k", 1, "v", 1, &err);
    CHECK(failed_with("the database is NULL"));
    leveldb_delete(NULL, NULL, "k", 1, &err);
    CHECK(failed_with("the database is NULL"));
    leveldb_write(NULL, NULL, NULL, &err);
    CHECK(failed_with("is NULL"));
    CHECK(!leveldb_get(NULL, NULL, "k", 1, &len, &err) && len == 0);
    CHECK(failed_with("the database is NULL"));
    CHECK(!leveldb_create_snapshot(NULL));
    CHECK(!leveldb_property_value(NULL, "leveldb.stats"));
    leveldb_approximate_sizes(NULL, 1, &key, &one, &key, &one, &size);
    CHECK(size == 0);
    leveldb_approximate_sizes(NULL, -1, NULL, NULL, NULL, NULL, NULL);
    leveldb_compact_range(NULL, NULL, 0, NULL, 0);
    leveldb_destroy_db(NULL, NULL, &err);
    CHECK(failed_with("is NULL"));
    leveldb_repair_db(NULL, NULL, &err);
    CHECK(failed_with("is NULL"));
    iterator = leveldb_create_iterator(NULL, NULL);
    CHECK(iterator && !leveldb_iter_valid(iterator));
    leveldb_iter_seek_to_first(iterator);
    leveldb_iter_next(iterator);
    CHECK(!leveldb_iter_valid(iterator) && !leveldb_iter_key(iterator, &len) && len == 0);
    leveldb_iter_get_error(iterator, &err);
    CHECK(failed_with("the database is NULL"));
    leveldb_iter_destroy(iterator);
    CHECK(!leveldb_iter_valid(NULL));
    leveldb_iter_seek(NULL, NULL, 0);
    leveldb_iter_prev(NULL);
    leveldb_iter_get_error(NULL, NULL);
    leveldb_writebatch_put(NULL, "k", 1, "v", 1);
    leveldb_writebatch_delete(NULL, "k", 1);
    leveldb_writebatch_clear(NULL);
    leveldb_writebatch_append(NULL, NULL);
    leveldb_writebatch_iterate(NULL, NULL, NULL, NULL);
    leveldb_options_set_comparator(NULL, NULL);
    leveldb_options_set_cache(options, NULL);
    leveldb_options_set_env(options, NULL);
    leveldb_options_set_filter_policy(options, NULL);
    leveldb_options_set_comparator(options, NULL);
    leveldb_readoptions_set_snapshot(NULL, NULL);
    leveldb_writeoptions_set_sync(NULL, 1);
    leveldb_close(NULL);
    leveldb_iter_destroy(NULL);
    leveldb_release_snapshot(NULL, NULL);
    leveldb_writebatch_destroy(NULL);
    leveldb_options_destroy(NULL);
    leveldb_readoptions_destroy(NULL);
    leveldb_writeoptions_destroy(NULL);
    leveldb_comparator_destroy(NULL);
    leveldb_filterpolicy_destroy(NULL);
    leveldb_cache_destroy(NULL);
    leveldb_env_destroy(NULL);
    leveldb_options_destroy(options);
}

static void too_large(leveldb_t *db, leveldb_writeoptions_t *writing) {
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    size_t len = 7;
    char *key = calloc(1, 70000);
    leveldb_put(db, writing, key, 70000, "v", 1, &err);
    CHECK(failed_with("Invalid argument: the key has 70000 bytes"));
    leveldb_put(db, writing, key, 65535, "v", 1, &err);
    CHECK(!err);
    leveldb_writebatch_put(batch, "whole", 5, "v", 1);
    leveldb_writebatch_put(batch, key, 65536, "v", 1);
    leveldb_write(db, writing, batch, &err);
    CHECK(failed_with("Invalid argument: the key has 65536 bytes"));
    CHECK(!leveldb_get(db, reading, "whole", 5, &len, &err) && !err && len == 0);
    CHECK(!leveldb_get(db, reading, key, 70000, NULL, &err));
    leveldb_free(err);
    err = NULL;
    leveldb_writebatch_append(batch, batch);
    leveldb_writebatch_destroy(batch);
    leveldb_readoptions_destroy(reading);
    free(key);
}

static void left_over(leveldb_options_t *options, const char *path) {
    leveldb_t *db = leveldb_open(options, path, &err);
    leveldb_iterator_t *iterator = leveldb_create_iterator(db, NULL);
    const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
    leveldb_put(db, NULL, "k", 1, "v", 1, &err);
    CHECK(!err);
    leveldb_close(db);
    /* The directory is free although things are left over. */
    db = leveldb_open(options, path, &err);
    CHECK(db && !err);
    leveldb_iter_seek_to_first(iterator);
    CHECK(!leveldb_iter_valid(iterator));
    leveldb_iter_get_error(iterator, &err);
    CHECK(failed_with("closed"));
    leveldb_iter_destroy(iterator);
    leveldb_release_snapshot(db, snapshot);
    leveldb_close(db);
}

static unsigned dice = 1;

static int lawless(void *state, const char *a, size_t a_len, const char *b, size_t b_len) {
    (void)state, (void)a, (void)a_len, (void)b, (void)b_len;
    dice = dice * 1664525u + 1013904223u;
    return (int)(dice >> 30) - 1;
}

static int bytewise(void *state, const char *a, size_t a_len, const char *b, size_t b_len) {
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    (void)state;
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static const char *name(void *state) {
    (void)state;
    return "lawless";
}

static void no_destructor(void *state) { (void)state; }

/* A comparator that answers by dice: nothing is promised of the data, but it ends, and orderly. */
static void broken_laws(leveldb_options_t *options, const char *path) {
    leveldb_comparator_t *order = leveldb_comparator_create(NULL, no_destructor, lawless, name);
    leveldb_iterator_t *iterator;
    leveldb_t *db;
    int i;
    leveldb_destroy_db(options, path, &err);
    CHECK(!err);
    leveldb_options_set_comparator(options, order);
    db = leveldb_open(options, path, &err);
    CHECK(db && !err);
    for (i = 0; i < 3000; i++) {
        char key[16];
        size_t len, key_len = (size_t)snprintf(key, sizeof key, "%d", i);
        leveldb_put(db, NULL, key, key_len, key, key_len, &err);
        leveldb_free(err);
        err = NULL;
        leveldb_free(leveldb_get(db, NULL, key, key_len, &len, &err));
        leveldb_free(err);
        err = NULL;
    }
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    iterator = leveldb_create_iterator(db, NULL);
    leveldb_iter_seek_to_first(iterator);
    for (i = 0; i < 10000 && leveldb_iter_valid(iterator); i++) {
        (i % 3 ? leveldb_iter_next : leveldb_iter_prev)(iterator);
    }
    leveldb_iter_destroy(iterator);
    leveldb_close(db);
    leveldb_destroy_db(options, path, &err);
    CHECK(!err);
    leveldb_options_set_comparator(options, NULL);
    leveldb_comparator_destroy(order);
}

/* A comparator that is destroyed too early is not called any more. */
static void destroyed_early(leveldb_options_t *options, const char *path) {
    leveldb_comparator_t *order = leveldb_comparator_create(NULL, no_destructor, bytewise, name);
    size_t len;
    leveldb_t *db;
    leveldb_options_set_comparator(options, order);
    db = leveldb_open(options, path, &err);
    CHECK(db && !err);
    leveldb_put(db, NULL, "a", 1, "1", 1, &err);
    leveldb_put(db, NULL, "b", 1, "2", 1, &err);
    CHECK(!err);
    leveldb_comparator_destroy(order);
    leveldb_options_set_comparator(options, NULL);
    CHECK(!leveldb_get(db, NULL, "a", 1, &len, &err));
    CHECK(failed_with("comparator \"lawless\""));
    leveldb_put(db, NULL, "c", 1, "3", 1, &err);
    CHECK(failed_with("comparator \"lawless\""));
    leveldb_close(db);
    /* What was written before is still there. */
    order = leveldb_comparator_create(NULL, no_destructor, bytewise, name);
    leveldb_options_set_comparator(options, order);
    db = leveldb_open(options, path, &err);
    CHECK(db && !err);
    leveldb_free(leveldb_get(db, NULL, "b", 1, &len, &err));
    CHECK(!err && len == 1);
    leveldb_close(db);
    leveldb_options_set_comparator(options, NULL);
    leveldb_comparator_destroy(order);
}

int main(int argc, char **argv) {
    leveldb_options_t *options = leveldb_options_create();
    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    leveldb_comparator_t *half;
    char path[4096];
    leveldb_t *db;
    if (argc != 2) {
        fprintf(stderr, "usage: misuse DIR, a directory in which it may do anything\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/misuse", argv[1]);
    nothing_at_all();
    leveldb_options_set_create_if_missing(options, 1);
    half = leveldb_comparator_create(NULL, NULL, NULL, NULL);
    leveldb_options_set_comparator(options, half);
    CHECK(!leveldb_open(options, path, &err) && failed_with("comparator lacks"));
    leveldb_options_set_comparator(options, NULL);
    leveldb_comparator_destroy(half);
    db = leveldb_open(options, path, &err);
    CHECK(db && !err);
    too_large(db, writing);
    leveldb_close(db);
    left_over(options, path);
    broken_laws(options, path);
    destroyed_early(options, path);
    leveldb_writeoptions_destroy(writing);
    leveldb_options_destroy(options);
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0;
}
