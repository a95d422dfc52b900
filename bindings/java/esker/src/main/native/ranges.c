/* What concerns many keys of a keyspace: ranges, counts, compaction, explanations. */

#include "glue.h"

NATIVE(void, keyspaceDeleteRange)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray start, jbyteArray end,
                                  jint durability) {
  WITH_RANGE(start, end, esker_delete_range(HANDLE(esker_keyspace, keyspace), ENDS, durability, &error));
}

NATIVE(void, keyspaceDeletePrefix)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray prefix,
                                   jint durability) {
  WITH_KEY(prefix, esker_delete_prefix(HANDLE(esker_keyspace, keyspace), KEY, durability, &error));
}

NATIVE(void, keyspaceClear)(JNIEnv *env, jclass type, jlong keyspace, jint durability) {
  esker_error *error = NULL;
  succeeded(env, esker_clear(HANDLE(esker_keyspace, keyspace), durability, &error), &error);
}

NATIVE(jlong, keyspaceCount)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray start, jbyteArray end) {
  uint64_t entries = 0;
  WITH_RANGE(start, end, esker_count(HANDLE(esker_keyspace, keyspace), ENDS, &entries, &error));
  return (jlong)entries;
}

/* `counted` gets the estimate and by how much it may be wrong. */
NATIVE(void, keyspaceApproximateCount)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray start,
                                       jbyteArray end, jlongArray counted) {
  RANGE(of);
  uint64_t entries = 0, deviation = 0;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_range(env, start, end, &of)) {
    code = esker_approximate_count(HANDLE(esker_keyspace, keyspace), RANGE_OF(of), &entries, &deviation, &error);
  }
  drop_range(&of);
  if (!succeeded(env, code, &error) || (*env)->ExceptionCheck(env)) return;
  jlong numbers[2] = {(jlong)entries, (jlong)deviation};
  (*env)->SetLongArrayRegion(env, counted, 0, 2, numbers);
}

NATIVE(jlong, keyspaceApproximateSize)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray start,
                                       jbyteArray end) {
  uint64_t size = 0;
  WITH_RANGE(start, end, esker_approximate_size(HANDLE(esker_keyspace, keyspace), ENDS, &size, &error));
  return (jlong)size;
}

NATIVE(jobjectArray, keyspaceSplitPoints)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray start,
                                          jbyteArray end, jint parts) {
  RANGE(of);
  esker_list *keys = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  bool taken = take_range(env, start, end, &of);
  if (taken) {
    code = esker_split_points(HANDLE(esker_keyspace, keyspace), RANGE_OF(of), (size_t)parts, &keys, &error);
  }
  drop_range(&of);
  if (!taken || !succeeded(env, code, &error)) return NULL;
  return give_list(env, keys);
}

NATIVE(void, keyspaceCompact)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray start, jbyteArray end,
                              jobject until) {
  RANGE(range_of);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  ending of = {env, until};
  if (take_range(env, start, end, &range_of)) {
    code = until == NULL
               ? esker_keyspace_compact(HANDLE(esker_keyspace, keyspace), RANGE_OF(range_of), &error)
               : esker_keyspace_compact_until(HANDLE(esker_keyspace, keyspace), RANGE_OF(range_of), is_to_end,
                                              &of, &error);
  }
  drop_range(&range_of);
  succeeded(env, code, &error);
}

NATIVE(jbyteArray, keyspaceSegments)(JNIEnv *env, jclass type, jlong keyspace) {
  esker_value *json = NULL;
  esker_error *error = NULL;
  if (!succeeded(env, esker_segments(HANDLE(esker_keyspace, keyspace), &json, &error), &error)) return NULL;
  return give_value(env, json);
}

NATIVE(jbyteArray, keyspaceExplainGet)(JNIEnv *env, jclass type, jlong keyspace, jlong snapshot,
                                       jbyteArray key) {
  SMALL(of);
  esker_value *json = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  bool taken = take_small(env, key, &of);
  if (taken) {
    code = snapshot == 0
               ? esker_explain_get(HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len, &json, &error)
               : esker_snapshot_explain_get(HANDLE(esker_snapshot, snapshot), HANDLE(esker_keyspace, keyspace),
                                            of.of.data, of.of.len, &json, &error);
  }
  drop(&of.of);
  if (!taken || !succeeded(env, code, &error)) return NULL;
  return give_value(env, json);
}

NATIVE(jbyteArray, keyspaceExplainScan)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray start,
                                        jbyteArray end, jlong limit) {
  RANGE(of);
  esker_value *json = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  bool taken = take_range(env, start, end, &of);
  if (taken) {
    code = esker_explain_scan(HANDLE(esker_keyspace, keyspace), RANGE_OF(of), (uint64_t)limit, &json, &error);
  }
  drop_range(&of);
  if (!taken || !succeeded(env, code, &error)) return NULL;
  return give_value(env, json);
}

NATIVE(jbyteArray, keyspaceExplainPut)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key,
                                       jbyteArray value) {
  SMALL(of);
  LARGE(new);
  esker_value *json = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  bool taken = take_small(env, key, &of) && take_large(env, value, &new);
  if (taken) {
    code = esker_explain_put(HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len, new.of.data, new.of.len,
                             &json, &error);
  }
  drop(&of.of);
  drop(&new.of);
  if (!taken || !succeeded(env, code, &error)) return NULL;
  return give_value(env, json);
}
