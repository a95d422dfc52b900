/* A sorted list behind the functions that SplinterDB's public headers declare, for one test of the
 * adapter. It aborts where a caller breaks what the headers ask for. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t length;
    const void *data;
} slice;

typedef struct {
    const char *filename;
    uint64_t cache_size;
    uint64_t disk_size;
    void *data_cfg;
    void *heap_handle;
    void *heap_id;
    uint64_t more[20];
} splinterdb_config;

typedef struct {
    uint64_t magic;
    void *functions[5];
} data_config;

typedef struct entry {
    struct entry *before, *behind;
    slice key, value;
} entry;

typedef struct {
    pthread_mutex_t lock;
    data_config *data;
    entry ends;
} splinterdb;

typedef struct {
    splinterdb *db;
    char *value;
    uint64_t length;
    bool found;
    uint64_t room[16];
} lookup;

_Static_assert(sizeof(splinterdb_config) == 208, "as in the headers");
_Static_assert(sizeof(data_config) == 48, "as in the headers");
_Static_assert(sizeof(lookup) == 160, "as in the headers");

typedef struct {
    uint64_t opaque[32];
} notification;

typedef enum { less_than, less_than_or_equal, greater_than, greater_than_or_equal } comparison;

/* At the end of the list it stands behind the last entry, or before the first. */
typedef struct {
    splinterdb *db;
    entry *at;
    bool before;
} iterator;

#define MAGIC 0x53504c494e544552ULL

static void demand(bool kept, const char *what) {
    if (!kept) {
        fprintf(stderr, "stub of SplinterDB: %s\n", what);
        abort();
    }
}

static slice copy(slice from) {
    char *to = malloc(from.length + 1);
    memcpy(to, from.data, from.length);
    return (slice){from.length, to};
}

static int compare(slice a, slice b) {
    uint64_t shorter = a.length < b.length ? a.length : b.length;
    int order = memcmp(a.data, b.data, shorter);
    if (order == 0) order = (a.length > b.length) - (a.length < b.length);
    return order;
}

/* The first entry at or behind the key, or the end. */
static entry *find(splinterdb *db, slice key) {
    entry *at = db->ends.behind;
    while (at != &db->ends && compare(at->key, key) < 0) at = at->behind;
    return at;
}

const char *splinterdb_get_version(void) { return "stub"; }

void default_data_config_init(data_config *out) {
    memset(out, 0, sizeof(*out));
    out->magic = MAGIC;
}

int splinterdb_create(const splinterdb_config *cfg, splinterdb **out) {
    data_config *data = cfg->data_cfg;
    demand(data->magic == MAGIC, "no data_config");
    demand(cfg->filename[0] && cfg->cache_size && cfg->disk_size, "a required field is not set");
    demand(!cfg->heap_handle && !cfg->heap_id, "an optional field is set");
    /* After the two heap fields the numbers of background threads come at 8 and 9. */
    for (int i = 0; i < 20; i++) demand(i == 8 || i == 9 || !cfg->more[i], "an optional field is set");
    demand(cfg->more[8] == 1 && cfg->more[9] >= 2, "background threads are not asked for");
    splinterdb *db = calloc(1, sizeof(*db));
    pthread_mutex_init(&db->lock, NULL);
    db->data = data;
    db->ends.before = db->ends.behind = &db->ends;
    *out = db;
    return 0;
}

int splinterdb_open(const splinterdb_config *cfg, splinterdb **out) {
    return splinterdb_create(cfg, out);
}

void splinterdb_close(splinterdb **db) { *db = NULL; }

static void check(const splinterdb *db, slice key) {
    demand(db->data->magic == MAGIC, "the data_config is gone");
    demand(key.length <= 4096, "a key is too long");
}

int splinterdb_insert(splinterdb *db, slice key, slice value, lookup *old) {
    check(db, key);
    demand(!old, "a result that nobody asked for");
    pthread_mutex_lock(&db->lock);
    entry *at = find(db, key);
    if (at == &db->ends || compare(at->key, key) != 0) {
        entry *made = calloc(1, sizeof(*made));
        made->key = copy(key);
        made->before = at->before;
        made->behind = at;
        at->before->behind = made;
        at->before = made;
        at = made;
    }
    at->value = copy(value);
    pthread_mutex_unlock(&db->lock);
    return 0;
}

int splinterdb_delete(splinterdb *db, slice key, lookup *old) {
    check(db, key);
    demand(!old, "a result that nobody asked for");
    pthread_mutex_lock(&db->lock);
    entry *at = find(db, key);
    if (at != &db->ends && compare(at->key, key) == 0) {
        at->before->behind = at->behind;
        at->behind->before = at->before;
    }
    pthread_mutex_unlock(&db->lock);
    return 0;
}

void splinterdb_notification_init_blocking(notification *done) { done->opaque[31] = MAGIC; }

void splinterdb_notification_deinit(notification *done) { done->opaque[31] = 0; }

int splinterdb_optimize(splinterdb *db, slice min, slice max, bool full, notification *done) {
    check(db, min);
    demand(!min.data && !min.length && !max.data && !max.length && full, "not all is asked for");
    demand(done->opaque[31] == MAGIC, "a notification that is not set up");
    return 0;
}

void splinterdb_lookup_result_init(const splinterdb *db, lookup *result, uint64_t flags,
                                   uint64_t length, char *buffer) {
    demand(flags == 0, "a lookup without a value");
    demand(length == 0 && buffer == NULL, "a buffer that nobody gave");
    memset(result, 0, sizeof(*result));
    result->db = (splinterdb *)db;
}

void splinterdb_lookup_result_deinit(lookup *result) {
    free(result->value);
    result->db = NULL;
}

bool splinterdb_lookup_found(const lookup *result) { return result->found; }

int splinterdb_lookup_result_value(const lookup *result, slice *value) {
    demand(result->found, "the value of a key that was not found");
    *value = (slice){result->length, result->value};
    return 0;
}

int splinterdb_lookup(splinterdb *db, slice key, lookup *result) {
    check(db, key);
    demand(result->db == db, "a result of another database");
    pthread_mutex_lock(&db->lock);
    entry *at = find(db, key);
    result->found = at != &db->ends && compare(at->key, key) == 0;
    free(result->value);
    result->value = NULL;
    if (result->found) {
        slice value = copy(at->value);
        result->value = (char *)value.data;
        result->length = value.length;
    }
    pthread_mutex_unlock(&db->lock);
    return 0;
}

int splinterdb_iterator_init(splinterdb *db, iterator **out, comparison begin, slice start) {
    bool back = begin == less_than_or_equal;
    demand(back || begin == greater_than_or_equal, "an unknown comparison");
    iterator *made = malloc(sizeof(*made));
    check(db, start);
    pthread_mutex_lock(&db->lock);
    entry *at = start.data ? find(db, start) : back ? &db->ends : db->ends.behind;
    bool exact = start.data && at != &db->ends && compare(at->key, start) == 0;
    if (back && !exact) at = at->before;
    *made = (iterator){db, at, back};
    pthread_mutex_unlock(&db->lock);
    *out = made;
    return 0;
}

void splinterdb_iterator_deinit(iterator *it) { free(it); }

bool splinterdb_iterator_valid(iterator *it) { return it->at != &it->db->ends; }

bool splinterdb_iterator_can_prev(iterator *it) {
    return splinterdb_iterator_valid(it) || (!it->before && it->at->before != it->at);
}

bool splinterdb_iterator_can_next(iterator *it) {
    return splinterdb_iterator_valid(it) || (it->before && it->at->behind != it->at);
}

void splinterdb_iterator_next(iterator *it) {
    demand(splinterdb_iterator_can_next(it), "an iterator is moved beyond its end");
    it->at = it->at->behind;
    it->before = false;
}

void splinterdb_iterator_prev(iterator *it) {
    demand(splinterdb_iterator_can_prev(it), "an iterator is moved before its beginning");
    it->at = it->at->before;
    it->before = true;
}

void splinterdb_iterator_get_current(iterator *it, slice *key, slice *value) {
    demand(splinterdb_iterator_valid(it), "the entry of an iterator at its end");
    *key = it->at->key;
    *value = it->at->value;
}

int splinterdb_iterator_status(const iterator *it) {
    (void)it;
    return 0;
}
