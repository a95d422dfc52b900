/* Puts, gets, and seeks with ten steps, over LevelDB's C interface alone:
 *
 *   bench DIR ENTRIES GETS SEEKS
 *
 * Keys have 16 bytes, values 100. It prints what one operation of each kind took, in nanoseconds.
 * The same work through Esker's own interface is in
 * crates/esker-leveldb/benches/puts_gets_seeks.rs; the two are to be changed together. */
#define _POSIX_C_SOURCE 200809L
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEY 16
#define VALUE 100
#define STEPS 10

static char *err;

static void check(void) {
    if (err) {
        fprintf(stderr, "%s\n", err);
        exit(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The key of a number, scattered over all keys. */
static void name(char *key, uint64_t number) {
    static const char digits[] = "0123456789abcdef";
    uint64_t scattered = number * 0x9e3779b97f4a7c15u;
    int i;
    for (i = 0; i < KEY; i++) {
        key[i] = digits[scattered >> (60 - 4 * i) & 15];
    }
}

static void report(const char *what, double start, long count) {
    if (count > 0) {
        printf("%s %.1f\n", what, (now() - start) / (double)count);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    leveldb_options_t *options = leveldb_options_create();
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    long entries, gets, seeks, i;
    uint64_t dice = 88172645463325252u;
    char key[KEY], value[VALUE];
    size_t seen = 0, len;
    leveldb_t *db;
    double start;
    int step;
    if (argc != 5) {
        fprintf(stderr, "usage: bench DIR ENTRIES GETS SEEKS\n");
        return 2;
    }
    entries = atol(argv[2]), gets = atol(argv[3]), seeks = atol(argv[4]);
    leveldb_options_set_create_if_missing(options, 1);
    db = leveldb_open(options, argv[1], &err);
    check();

    start = now();
    for (i = 0; i < entries; i++) {
        name(key, (uint64_t)i);
        memset(value, (int)(next(&dice) & 127), VALUE);
        leveldb_put(db, writing, key, KEY, value, VALUE, &err);
        check();
    }
    report("put", start, entries);

    leveldb_compact_range(db, NULL, 0, NULL, 0);

    start = now();
    for (i = 0; i < gets; i++) {
        char *found;
        name(key, next(&dice) % (uint64_t)entries);
        found = leveldb_get(db, reading, key, KEY, &len, &err);
        check();
        seen += found ? len : 0;
        leveldb_free(found);
    }
    report("get", start, gets);

    start = now();
    for (i = 0; i < seeks; i++) {
        leveldb_iterator_t *at = leveldb_create_iterator(db, reading);
        name(key, next(&dice) % (uint64_t)entries);
        leveldb_iter_seek(at, key, KEY);
        for (step = 0; step < STEPS && leveldb_iter_valid(at); step++) {
            leveldb_iter_key(at, &len);
            seen += len;
            leveldb_iter_value(at, &len);
            seen += len;
            leveldb_iter_next(at);
        }
        leveldb_iter_destroy(at);
    }
    report("seek+10", start, seeks);

    leveldb_close(db);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    leveldb_options_destroy(options);
    return seen == 0 && gets > 0;
}
