/* Ingestions: sorted entries that go into the files of a database directly. */

#include "glue.h"

NATIVE(jlong, ingestionBegin)(JNIEnv *env, jclass type, jlong db) {
  esker_ingestion *ingestion = NULL;
  esker_error *error = NULL;
  succeeded(env, esker_ingestion_begin(HANDLE(esker_db, db), &ingestion, &error), &error);
  return NUMBER(ingestion);
}

NATIVE(void, ingestionFree)(JNIEnv *env, jclass type, jlong ingestion) {
  esker_ingestion_free(HANDLE(esker_ingestion, ingestion));
}

NATIVE(void, ingestionPut)(JNIEnv *env, jclass type, jlong ingestion, jlong keyspace, jbyteArray key,
                           jbyteArray value) {
  WITH_PAIR(key, value,
            esker_ingestion_put(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace), PAIR,
            &error));
}

/* `added` gets how many were, also if an exception is thrown. */
NATIVE(void, ingestionPutMany)(JNIEnv *env, jclass type, jlong ingestion, jlong keyspace, jobjectArray keys,
                               jobjectArray values, jlongArray added) {
  many of;
  many new = {0, NULL, NULL, NULL};
  size_t count = 0;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_many(env, keys, &of) && take_many(env, values, &new)) {
    code = esker_ingestion_put_many(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace),
                                    of.data, of.lens, new.data, new.lens, of.count, &count, &error);
    jlong number = (jlong)count;
    (*env)->SetLongArrayRegion(env, added, 0, 1, &number);
  }
  drop_many(&of);
  drop_many(&new);
  succeeded(env, code, &error);
}

NATIVE(void, ingestionPutTtl)(JNIEnv *env, jclass type, jlong ingestion, jlong keyspace, jbyteArray key,
                              jbyteArray value, jlong milliseconds) {
  WITH_PAIR(key, value,
            esker_ingestion_put_ttl(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace),
            PAIR, (uint64_t)milliseconds, &error));
}

NATIVE(void, ingestionMerge)(JNIEnv *env, jclass type, jlong ingestion, jlong keyspace, jbyteArray key,
                             jbyteArray operand) {
  WITH_PAIR(key, operand,
            esker_ingestion_merge(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace), PAIR,
            &error));
}

NATIVE(void, ingestionDelete)(JNIEnv *env, jclass type, jlong ingestion, jlong keyspace, jbyteArray key) {
  WITH_KEY(key,
           esker_ingestion_delete(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace), KEY,
           &error));
}

NATIVE(void, ingestionDeleteRange)(JNIEnv *env, jclass type, jlong ingestion, jlong keyspace, jbyteArray start,
                                   jbyteArray end) {
  WITH_RANGE(start, end,
             esker_ingestion_delete_range(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace,
             keyspace), ENDS, &error));
}

NATIVE(jlong, ingestionPutFrom)(JNIEnv *env, jclass type, jlong ingestion, jlong keyspace, jbyteArray key,
                                jobject stream) {
  SMALL(of);
  reading from;
  uint64_t len = 0;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of) && begin_reading(env, stream, &from)) {
    code = esker_ingestion_put_from(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace),
                                    of.of.data, of.of.len, read_piece, &from, &len, &error);
  }
  drop(&of.of);
  succeeded(env, code, &error);
  return (jlong)len;
}

NATIVE(void, ingestionSync)(JNIEnv *env, jclass type, jlong ingestion) {
  esker_error *error = NULL;
  succeeded(env, esker_ingestion_sync(HANDLE(esker_ingestion, ingestion), &error), &error);
}

/* The other one is freed whatever happens. */
NATIVE(void, ingestionJoin)(JNIEnv *env, jclass type, jlong ingestion, jlong other) {
  esker_error *error = NULL;
  esker_code code =
      esker_ingestion_join(HANDLE(esker_ingestion, ingestion), HANDLE(esker_ingestion, other), &error);
  // Only after this error it is not freed yet.
  if (code == ESKER_MISUSE) esker_ingestion_free(HANDLE(esker_ingestion, other));
  succeeded(env, code, &error);
}

NATIVE(void, ingestionCommit)(JNIEnv *env, jclass type, jlong ingestion) {
  esker_error *error = NULL;
  succeeded(env, esker_ingestion_commit(HANDLE(esker_ingestion, ingestion), &error), &error);
}
