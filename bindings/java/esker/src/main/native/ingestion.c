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
  SMALL(of);
  LARGE(new);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of) && take_large(env, value, &new)) {
    code = esker_ingestion_put(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace), of.of.data,
                               of.of.len, new.of.data, new.of.len, &error);
  }
  drop(&of.of);
  drop(&new.of);
  succeeded(env, code, &error);
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
  SMALL(of);
  LARGE(new);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of) && take_large(env, value, &new)) {
    code = esker_ingestion_put_ttl(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace),
                                   of.of.data, of.of.len, new.of.data, new.of.len, (uint64_t)milliseconds,
                                   &error);
  }
  drop(&of.of);
  drop(&new.of);
  succeeded(env, code, &error);
}

NATIVE(void, ingestionMerge)(JNIEnv *env, jclass type, jlong ingestion, jlong keyspace, jbyteArray key,
                             jbyteArray operand) {
  SMALL(of);
  LARGE(new);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of) && take_large(env, operand, &new)) {
    code = esker_ingestion_merge(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace),
                                 of.of.data, of.of.len, new.of.data, new.of.len, &error);
  }
  drop(&of.of);
  drop(&new.of);
  succeeded(env, code, &error);
}

NATIVE(void, ingestionDelete)(JNIEnv *env, jclass type, jlong ingestion, jlong keyspace, jbyteArray key) {
  SMALL(of);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of)) {
    code = esker_ingestion_delete(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace),
                                  of.of.data, of.of.len, &error);
  }
  drop(&of.of);
  succeeded(env, code, &error);
}

NATIVE(void, ingestionDeleteRange)(JNIEnv *env, jclass type, jlong ingestion, jlong keyspace, jbyteArray start,
                                   jbyteArray end) {
  RANGE(of);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_range(env, start, end, &of)) {
    code = esker_ingestion_delete_range(HANDLE(esker_ingestion, ingestion), HANDLE(esker_keyspace, keyspace),
                                        RANGE_OF(of), &error);
  }
  drop_range(&of);
  succeeded(env, code, &error);
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
