/* A small tool over LevelDB's C interface: looks at a database and changes it, one step a call.
 *
 *   tool open DIR             opens the database that is there
 *   tool create DIR           makes it if it is not there
 *   tool put DIR KEY VALUE    tool get DIR KEY       tool fill DIR COUNT
 *   tool dump DIR             prints every entry
 *   tool repair DIR           tool destroy DIR       tool property DIR NAME
 *
 * Errors go to the standard output, so that callers see them; the exit code is then 1. */
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(char *err) {
    if (!err) {
        return 0;
    }
    printf("%s\n", err);
    leveldb_free(err);
    return 1;
}

int main(int argc, char **argv) {
    const char *command = argc > 1 ? argv[1] : "";
    const char *dir = argc > 2 ? argv[2] : "";
    const char *key = argc > 3 ? argv[3] : "";
    const char *value = argc > 4 ? argv[4] : "";
    leveldb_options_t *options = leveldb_options_create();
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    char *err = NULL;
    leveldb_t *db;

    if (!strcmp(command, "repair") || !strcmp(command, "destroy")) {
        (*command == 'r' ? leveldb_repair_db : leveldb_destroy_db)(options, dir, &err);
        return failed(err);
    }
    leveldb_options_set_create_if_missing(options, strcmp(command, "open") && *command != 'd');
    db = leveldb_open(options, dir, &err);
    if (failed(err)) {
        return 1;
    }
    if (!strcmp(command, "put")) {
        leveldb_put(db, writing, key, strlen(key), value, strlen(value), &err);
    } else if (!strcmp(command, "fill")) {
        int i;
        for (i = 0; i < atoi(key) && !err; i++) {
            char name[32], text[64];
            int name_len = snprintf(name, sizeof name, "key%08d", i);
            int text_len = snprintf(text, sizeof text, "value %d %x", i, i * 2654435761u);
            leveldb_put(db, writing, name, (size_t)name_len, text, (size_t)text_len, &err);
        }
        leveldb_compact_range(db, NULL, 0, NULL, 0);
    } else if (!strcmp(command, "get")) {
        size_t len;
        char *found = leveldb_get(db, reading, key, strlen(key), &len, &err);
        if (found) {
            printf("%.*s\n", (int)len, found);
        }
        leveldb_free(found);
    } else if (!strcmp(command, "property")) {
        char *text = leveldb_property_value(db, key);
        printf("%s\n", text ? text : "(none)");
        leveldb_free(text);
    } else if (!strcmp(command, "dump")) {
        leveldb_iterator_t *iterator = leveldb_create_iterator(db, reading);
        for (leveldb_iter_seek_to_first(iterator); leveldb_iter_valid(iterator);
             leveldb_iter_next(iterator)) {
            size_t key_len, value_len;
            const char *k = leveldb_iter_key(iterator, &key_len);
            const char *v = leveldb_iter_value(iterator, &value_len);
            printf("%.*s = %.*s\n", (int)key_len, k, (int)value_len, v);
        }
        leveldb_iter_get_error(iterator, &err);
        leveldb_iter_destroy(iterator);
    }
    leveldb_close(db);
    leveldb_options_destroy(options);
    leveldb_readoptions_destroy(reading);
    leveldb_writeoptions_destroy(writing);
    return failed(err);
}
