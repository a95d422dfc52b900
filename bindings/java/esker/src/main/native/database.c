/* A database: open, close, keyspaces, durability, branches, named snapshots, checkpoints, repair. */

#include "glue.h"

NATIVE(jlong, databaseOpen)(JNIEnv *env, jclass type, jbyteArray path, jlong options) {
  SMALL(place);
  esker_db *db = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, path, &place)) {
    code = esker_open(place.of.data, place.of.len, HANDLE(esker_options, options), &db, &error);
  }
  drop(&place.of);
  succeeded(env, code, &error);
  return NUMBER(db);
}

NATIVE(void, databaseClose)(JNIEnv *env, jclass type, jlong db) {
  esker_error *error = NULL;
  succeeded(env, esker_close(HANDLE(esker_db, db), &error), &error);
}

NATIVE(void, databaseFree)(JNIEnv *env, jclass type, jlong db) { esker_db_free(HANDLE(esker_db, db)); }

NATIVE(jbyteArray, databaseId)(JNIEnv *env, jclass type, jlong db) {
  uint8_t id[16];
  esker_error *error = NULL;
  if (!succeeded(env, esker_db_id(HANDLE(esker_db, db), id, &error), &error)) return NULL;
  return give(env, (const char *)id, sizeof id);
}

NATIVE(jbyteArray, databaseBranchName)(JNIEnv *env, jclass type, jlong db) {
  size_t len = 0;
  const char *name = esker_db_branch_name(HANDLE(esker_db, db), &len);
  return give(env, name, len);
}

NATIVE(jlong, databaseMadeAt)(JNIEnv *env, jclass type, jlong db) {
  return (jlong)esker_db_made_at(HANDLE(esker_db, db));
}

NATIVE(jlong, databaseKeyspace)(JNIEnv *env, jclass type, jlong db, jbyteArray name, jlong options) {
  SMALL(text);
  esker_keyspace *keyspace = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, name, &text)) {
    code = esker_keyspace_open_with(HANDLE(esker_db, db), text.of.data, text.of.len,
                                    HANDLE(esker_keyspace_options, options), &keyspace, &error);
  }
  drop(&text.of);
  succeeded(env, code, &error);
  return NUMBER(keyspace);
}

/* What has names: the numbers are those of Names.java. */
enum { KEYSPACES = 0, BRANCHES = 1, NAMED_SNAPSHOTS = 2 };

NATIVE(jobjectArray, databaseNames)(JNIEnv *env, jclass type, jlong db, jint of) {
  esker_list *names = NULL;
  esker_error *error = NULL;
  esker_code code = of == KEYSPACES  ? esker_keyspaces(HANDLE(esker_db, db), &names, &error)
                    : of == BRANCHES ? esker_branches(HANDLE(esker_db, db), &names, &error)
                                     : esker_named_snapshots(HANDLE(esker_db, db), &names, &error);
  if (!succeeded(env, code, &error)) return NULL;
  return give_list(env, names);
}

NATIVE(jboolean, databaseDrop)(JNIEnv *env, jclass type, jlong db, jbyteArray name, jint of) {
  SMALL(text);
  bool dropped = false;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, name, &text)) {
    esker_code (*call)(const esker_db *, const char *, size_t, bool *, esker_error **) =
        of == KEYSPACES  ? esker_drop_keyspace
        : of == BRANCHES ? esker_branch_drop
                         : esker_named_snapshot_drop;
    code = call(HANDLE(esker_db, db), text.of.data, text.of.len, &dropped, &error);
  }
  drop(&text.of);
  succeeded(env, code, &error);
  return dropped;
}

/* How a branch is made or opened: the numbers are those of Database.java. */
enum { BRANCH = 0, OPEN_BRANCH = 1, OPEN_NAMED_SNAPSHOT = 2 };

NATIVE(jlong, databaseBranch)(JNIEnv *env, jclass type, jlong db, jbyteArray name, jint how) {
  SMALL(text);
  esker_db *branch = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, name, &text)) {
    esker_code (*call)(const esker_db *, const char *, size_t, esker_db **, esker_error **) =
        how == BRANCH        ? esker_branch
        : how == OPEN_BRANCH ? esker_branch_open
                             : esker_named_snapshot_open;
    code = call(HANDLE(esker_db, db), text.of.data, text.of.len, &branch, &error);
  }
  drop(&text.of);
  succeeded(env, code, &error);
  return NUMBER(branch);
}

NATIVE(void, databaseNameSnapshot)(JNIEnv *env, jclass type, jlong db, jbyteArray name) {
  SMALL(text);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, name, &text)) {
    code = esker_named_snapshot(HANDLE(esker_db, db), text.of.data, text.of.len, &error);
  }
  drop(&text.of);
  succeeded(env, code, &error);
}

NATIVE(void, databaseCheckpoint)(JNIEnv *env, jclass type, jlong db, jbyteArray path) {
  SMALL(place);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, path, &place)) {
    code = esker_checkpoint(HANDLE(esker_db, db), place.of.data, place.of.len, &error);
  }
  drop(&place.of);
  succeeded(env, code, &error);
}

NATIVE(void, databaseSync)(JNIEnv *env, jclass type, jlong db) {
  esker_error *error = NULL;
  succeeded(env, esker_sync(HANDLE(esker_db, db), &error), &error);
}

NATIVE(void, databaseWaitDurable)(JNIEnv *env, jclass type, jlong db, jlong position) {
  esker_error *error = NULL;
  succeeded(env, esker_wait_durable(HANDLE(esker_db, db), (uint64_t)position, &error), &error);
}

NATIVE(void, databaseWaitUntilIdle)(JNIEnv *env, jclass type, jlong db) {
  esker_error *error = NULL;
  succeeded(env, esker_wait_until_idle(HANDLE(esker_db, db), &error), &error);
}

NATIVE(void, databaseFlush)(JNIEnv *env, jclass type, jlong db, jobject until) {
  esker_error *error = NULL;
  ending of = {env, until};
  esker_code code = until == NULL
                        ? esker_flush(HANDLE(esker_db, db), &error)
                        : esker_flush_until(HANDLE(esker_db, db), is_to_end, &of, &error);
  succeeded(env, code, &error);
}

NATIVE(void, databaseCompact)(JNIEnv *env, jclass type, jlong db, jobject until) {
  esker_error *error = NULL;
  ending of = {env, until};
  esker_code code = until == NULL
                        ? esker_compact(HANDLE(esker_db, db), &error)
                        : esker_compact_until(HANDLE(esker_db, db), is_to_end, &of, &error);
  succeeded(env, code, &error);
}

NATIVE(jbyteArray, databaseStats)(JNIEnv *env, jclass type, jlong db) {
  esker_value *text = NULL;
  esker_error *error = NULL;
  if (!succeeded(env, esker_stats(HANDLE(esker_db, db), &text, &error), &error)) return NULL;
  return give_value(env, text);
}

NATIVE(jbyteArray, databaseOpenMetrics)(JNIEnv *env, jclass type, jlong db) {
  esker_value *text = NULL;
  esker_error *error = NULL;
  if (!succeeded(env, esker_openmetrics(HANDLE(esker_db, db), &text, &error), &error)) return NULL;
  return give_value(env, text);
}

/* The report. `found` gets the number of problems, and 1 behind it if the call was ended. */
NATIVE(jbyteArray, databaseVerify)(JNIEnv *env, jclass type, jlong db, jobject until, jlongArray found) {
  esker_value *json = NULL;
  esker_error *error = NULL;
  size_t problems = 0;
  bool ended = false;
  ending of = {env, until};
  esker_code code = until == NULL ? esker_verify(HANDLE(esker_db, db), &problems, &json, &error)
                                  : esker_verify_until(HANDLE(esker_db, db), is_to_end, &of, &ended,
                                                       &problems, &json, &error);
  if (!succeeded(env, code, &error)) return NULL;
  // What `until` threw: the call took it for an end.
  if ((*env)->ExceptionCheck(env)) {
    esker_value_free(json);
    return NULL;
  }
  jlong numbers[2] = {(jlong)problems, ended};
  (*env)->SetLongArrayRegion(env, found, 0, 2, numbers);
  return give_value(env, json);
}

NATIVE(jlong, databaseWrite)(JNIEnv *env, jclass type, jlong db, jlong batch, jint durability, jboolean waits) {
  esker_error *error = NULL;
  uint64_t position = 0;
  esker_code code = (waits ? esker_write : esker_try_write)(
      HANDLE(esker_db, db), HANDLE(esker_batch, batch), durability, &position, &error);
  succeeded(env, code, &error);
  return (jlong)position;
}

/* The report; `whole` gets whether nothing is damaged. Without `to` it is only planned. */
NATIVE(jbyteArray, repair)(JNIEnv *env, jclass type, jbyteArray path, jbyteArray to, jlong options,
                           jbooleanArray whole) {
  SMALL(from);
  SMALL(place);
  esker_value *json = NULL;
  esker_error *error = NULL;
  bool intact = false;
  esker_code code = ESKER_OK;
  if (take_small(env, path, &from) && take_small(env, to, &place)) {
    code = to == NULL ? esker_repair_plan(from.of.data, from.of.len, HANDLE(esker_options, options),
                                          &intact, &json, &error)
                      : esker_repair(from.of.data, from.of.len, place.of.data, place.of.len,
                                     HANDLE(esker_options, options), &json, &error);
  }
  drop(&from.of);
  drop(&place.of);
  if (!succeeded(env, code, &error)) return NULL;
  jboolean answer = intact;
  if (whole != NULL) (*env)->SetBooleanArrayRegion(env, whole, 0, 1, &answer);
  return give_value(env, json);
}
