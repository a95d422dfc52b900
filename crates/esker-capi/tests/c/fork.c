/* A forked child: every call says so, freeing harms nothing, and the parent goes on. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
  esker_db *db = NULL;
  esker_keyspace *ks = NULL;
  esker_snapshot *snapshot = NULL;
  esker_iter *iter = NULL;
  esker_value *value = NULL, *kept = NULL;
  static char bytes[10000];
  size_t length = 0;
  pid_t child;
  int status = -1;
  CHECK(count == 2);
  OK(esker_open(below(arguments[1], "db"), ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "k", 1, NULL, &ks, &error));
  OK(esker_put(ks, T("key"), T("value"), 0, &error));
  OK(esker_put(ks, T("long"), bytes, sizeof bytes, 0, &error));
  OK(esker_flush(db, &error));
  /* It lies in a block of the parent's. */
  OK(esker_get(ks, T("long"), &kept, &error));
  OK(esker_snapshot_new(db, &snapshot, &error));
  OK(esker_iter_new(ks, snapshot, NULL, 0, NULL, 0, &iter, &error));
  OK(esker_iter_first(iter, &error));
  fflush(NULL);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    FAILS(ESKER_FORKED, esker_put(ks, T("key"), T("of the child"), 0, &error));
    FAILS(ESKER_FORKED, esker_get(ks, T("key"), &value, &error));
    FAILS(ESKER_FORKED, esker_snapshot_get(snapshot, ks, T("key"), &value, &error));
    FAILS(ESKER_FORKED, esker_iter_next(iter, &error));
    FAILS(ESKER_FORKED, esker_keyspaces(db, (esker_list **)&value, &error));
    FAILS(ESKER_FORKED, esker_stats(db, &value, &error));
    FAILS(ESKER_FORKED, esker_verify(db, NULL, NULL, &error));
    FAILS(ESKER_FORKED, esker_close(db, &error));
    CHECK(memcmp(esker_value_data(kept, &length), bytes, sizeof bytes) == 0);
    esker_iter_free(iter);
    esker_snapshot_free(snapshot);
    esker_keyspace_free(ks);
    esker_db_free(db);
    esker_value_free(kept);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(holds(ks, "key", "value"));
  CHECK(memcmp(esker_value_data(kept, &length), bytes, sizeof bytes) == 0 && length == sizeof bytes);
  esker_value_free(kept);
  OK(esker_put(ks, T("key"), T("of the parent"), 0, &error));
  CHECK(holds(ks, "key", "of the parent"));
  esker_iter_free(iter);
  esker_snapshot_free(snapshot);
  esker_keyspace_free(ks);
  OK(esker_close(db, &error));
  esker_db_free(db);
  puts("fork: ok");
  return 0;
}
