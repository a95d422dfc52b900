/* A LevelDB directory to import from:
 *
 *   import_source DIR ENTRIES
 *
 * Keys have 16 bytes and come in random order, values have 100 bytes that compress to half. */
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY 16
#define VALUE 100
#define BATCH 1000

static char *err;

static void check(void) {
    if (err) {
        fprintf(stderr, "%s\n", err);
        exit(1);
    }
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "import_source DIR ENTRIES\n");
        return 2;
    }
    uint64_t entries = strtoull(argv[2], NULL, 10), state = 88172645463325252u;
    leveldb_options_t *options = leveldb_options_create();
    leveldb_writeoptions_t *write = leveldb_writeoptions_create();
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_error_if_exists(options, 1);
    leveldb_options_set_compression(options, leveldb_snappy_compression);
    leveldb_options_set_write_buffer_size(options, 16 << 20);
    leveldb_t *db = leveldb_open(options, argv[1], &err);
    check();
    /* Multiplying by a prime that does not divide the number of entries visits each number once. */
    uint64_t prime = entries % 2654435761u ? 2654435761u : 1;
    for (uint64_t at = 0; at < entries; at++) {
        char key[32], value[VALUE];
        snprintf(key, sizeof key, "%016llu",
                 (unsigned long long)((unsigned __int128)at * prime % entries));
        for (int byte = 0; byte < VALUE / 2; byte += 2) {
            uint64_t word = next(&state);
            memcpy(value + byte, &word, 2);
        }
        memcpy(value + VALUE / 2, value, VALUE / 2);
        leveldb_writebatch_put(batch, key, KEY, value, VALUE);
        if (at % BATCH == BATCH - 1 || at + 1 == entries) {
            leveldb_write(db, write, batch, &err);
            check();
            leveldb_writebatch_clear(batch);
        }
    }
    leveldb_writebatch_destroy(batch);
    leveldb_writeoptions_destroy(write);
    leveldb_close(db);
    leveldb_options_destroy(options);
    return 0;
}
