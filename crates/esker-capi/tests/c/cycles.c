/* Handles of every kind are made and freed again, as often as the second argument says; run under
 * AddressSanitizer, which counts what is lost. */
#include "check.h"

static int compare(void *context, const char *a, size_t a_len, const char *b, size_t b_len) {
  size_t shorter = a_len < b_len ? a_len : b_len;
  int result = shorter == 0 ? 0 : memcmp(a, b, shorter);
  (void)context;
  return result != 0 ? result : a_len < b_len ? -1 : a_len > b_len;
}

static void destroy(void *context) {
  free(context);
}

/* One handle of the kind that the turn says. Answers false behind the last kind. */
static bool cycle(const esker_db *db, const esker_keyspace *ks, unsigned kind, uint64_t turn) {
  esker_error *error = NULL;
  switch (kind) {
  case 0: {
    esker_value *value = NULL;
    OK(esker_get(ks, T("key"), &value, &error));
    CHECK(value != NULL);
    esker_value_free(value);
    return true;
  }
  case 1: {
    esker_batch *batch = esker_batch_new();
    OK(esker_batch_put(batch, ks, &turn, sizeof turn, T("value"), &error));
    OK(esker_batch_delete(batch, ks, &turn, sizeof turn, &error));
    if (turn % 64 == 0) {
      OK(esker_write(db, batch, ESKER_DURABILITY_DEFAULT, NULL, &error));
    }
    esker_batch_free(batch);
    return true;
  }
  case 2: {
    esker_snapshot *snapshot = NULL;
    OK(esker_snapshot_new(db, &snapshot, &error));
    esker_snapshot_free(snapshot);
    return true;
  }
  case 3: {
    esker_iter *iter = NULL;
    OK(esker_iter_new(ks, NULL, NULL, 0, NULL, 0, &iter, &error));
    OK(esker_iter_seek(iter, T("key"), &error));
    CHECK(esker_iter_valid(iter));
    esker_iter_free(iter);
    return true;
  }
  case 4: {
    esker_keyspace *keyspace = NULL;
    OK(esker_keyspace_open(db, "default", ESKER_NUL, NULL, &keyspace, &error));
    esker_keyspace_free(keyspace);
    return true;
  }
  case 5: {
    esker_comparator *comparator = NULL;
    esker_options *options = esker_options_new();
    OK(esker_comparator_new("c", 1, compare, malloc(8), destroy, &comparator, &error));
    OK(esker_options_add_comparator(options, comparator, &error));
    esker_comparator_free(comparator);
    esker_options_free(options);
    return true;
  }
  case 6: {
    esker_list *list = NULL;
    OK(esker_keyspaces(db, &list, &error));
    esker_list_free(list);
    return true;
  }
  case 7:
    CHECK(esker_put(ks, NULL, 1, NULL, 0, 0, &error) == ESKER_MISUSE);
    esker_error_free(error);
    return true;
  case 8: {
    /* Texts are values too, but statistics take long to gather. */
    esker_value *json = NULL;
    if (turn % 64 == 0) {
      OK(esker_stats(db, &json, &error));
      esker_value_free(json);
    }
    return true;
  }
  case 9: {
    esker_txn *txn = NULL;
    esker_txn_iter *iter = NULL;
    bool found = false;
    uint64_t point = 0;
    OK(esker_txn_begin(db, ESKER_DURABILITY_DEFAULT, &txn, &error));
    OK(esker_txn_savepoint(txn, &point, &error));
    OK(esker_txn_put(txn, ks, T("own"), T("value"), &error));
    OK(esker_txn_iter_new(txn, ks, NULL, 0, NULL, 0, &iter, &error));
    OK(esker_txn_iter_next(iter, &found, &error));
    CHECK(found);
    if (turn % 64 == 0) {
      OK(esker_txn_commit(txn, NULL, &error));
    }
    esker_txn_free(txn);
    esker_txn_iter_free(iter);
    return true;
  }
  default:
    return false;
  }
}

static void open_and_close(const char *path, bool and_free_first) {
  esker_db *db = NULL;
  esker_keyspace *ks = NULL;
  OK(esker_open(path, ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "default", ESKER_NUL, NULL, &ks, &error));
  OK(esker_put(ks, T("key"), T("value"), 0, &error));
  if (and_free_first) {
    esker_db_free(db);
    esker_keyspace_free(ks);
  } else {
    OK(esker_close(db, &error));
    esker_keyspace_free(ks);
    esker_db_free(db);
  }
}

int main(int count, char **arguments) {
  esker_db *db = NULL;
  esker_keyspace *ks = NULL;
  uint64_t cycles, turn, done = 0;
  char path[4096];
  CHECK(count == 3);
  cycles = strtoull(arguments[2], NULL, 10);
  snprintf(path, sizeof path, "%s", below(arguments[1], "db"));
  open_and_close(path, false);
  OK(esker_open(path, ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "default", ESKER_NUL, NULL, &ks, &error));
  for (turn = 0; done < cycles; turn++) {
    unsigned kind;
    for (kind = 0; cycle(db, ks, kind, turn); kind++) {
      done++;
    }
  }
  esker_keyspace_free(ks);
  OK(esker_close(db, &error));
  esker_db_free(db);
  /* Whole databases take longer, so one in a thousand cycles is one. */
  for (turn = 0; turn * 1000 < cycles; turn++) {
    open_and_close(path, turn % 2 == 0);
  }
  printf("cycles: ok: %llu\n", (unsigned long long)(done + turn));
  return 0;
}
