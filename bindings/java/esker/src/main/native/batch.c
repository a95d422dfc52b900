/* Batches: writes that are committed together. */

#include "glue.h"

NATIVE(jlong, batchNew)(JNIEnv *env, jclass type) { return NUMBER(esker_batch_new()); }

NATIVE(void, batchFree)(JNIEnv *env, jclass type, jlong batch) { esker_batch_free(HANDLE(esker_batch, batch)); }

NATIVE(jlong, batchLength)(JNIEnv *env, jclass type, jlong batch) {
  return (jlong)esker_batch_len(HANDLE(esker_batch, batch));
}

NATIVE(void, batchClear)(JNIEnv *env, jclass type, jlong batch) {
  esker_error *error = NULL;
  succeeded(env, esker_batch_clear(HANDLE(esker_batch, batch), &error), &error);
}

NATIVE(void, batchPut)(JNIEnv *env, jclass type, jlong batch, jlong keyspace, jbyteArray key, jbyteArray value) {
  WITH_PAIR(key, value,
            esker_batch_put(HANDLE(esker_batch, batch), HANDLE(esker_keyspace, keyspace), PAIR, &error));
}

NATIVE(void, batchPutDirect)(JNIEnv *env, jclass type, jlong batch, jlong keyspace, jobject key, jint key_at,
                             jint key_len, jobject value, jint value_at, jint value_len) {
  const char *of = (*env)->GetDirectBufferAddress(env, key);
  const char *new = (*env)->GetDirectBufferAddress(env, value);
  esker_error *error = NULL;
  esker_code code = esker_batch_put(HANDLE(esker_batch, batch), HANDLE(esker_keyspace, keyspace), of + key_at,
                                    (size_t)key_len, new + value_at, (size_t)value_len, &error);
  succeeded(env, code, &error);
}

NATIVE(void, batchPutTtl)(JNIEnv *env, jclass type, jlong batch, jlong keyspace, jbyteArray key,
                          jbyteArray value, jlong milliseconds) {
  WITH_PAIR(key, value,
            esker_batch_put_ttl(HANDLE(esker_batch, batch), HANDLE(esker_keyspace, keyspace), PAIR,
            (uint64_t)milliseconds, &error));
}

NATIVE(void, batchMerge)(JNIEnv *env, jclass type, jlong batch, jlong keyspace, jbyteArray key,
                         jbyteArray operand) {
  WITH_PAIR(key, operand,
            esker_batch_merge(HANDLE(esker_batch, batch), HANDLE(esker_keyspace, keyspace), PAIR, &error));
}

NATIVE(void, batchDelete)(JNIEnv *env, jclass type, jlong batch, jlong keyspace, jbyteArray key) {
  WITH_KEY(key, esker_batch_delete(HANDLE(esker_batch, batch), HANDLE(esker_keyspace, keyspace), KEY, &error));
}

NATIVE(void, batchDeleteRange)(JNIEnv *env, jclass type, jlong batch, jlong keyspace, jbyteArray start,
                               jbyteArray end) {
  WITH_RANGE(start, end,
             esker_batch_delete_range(HANDLE(esker_batch, batch), HANDLE(esker_keyspace, keyspace), ENDS,
             &error));
}

NATIVE(void, batchDeletePrefix)(JNIEnv *env, jclass type, jlong batch, jlong keyspace, jbyteArray prefix) {
  WITH_KEY(prefix,
           esker_batch_delete_prefix(HANDLE(esker_batch, batch), HANDLE(esker_keyspace, keyspace), KEY,
           &error));
}
