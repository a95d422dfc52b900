/* Snapshots, and readers of values in pieces. */

#include "glue.h"

NATIVE(jlong, snapshotNew)(JNIEnv *env, jclass type, jlong db, jbyteArray label) {
  SMALL(text);
  esker_snapshot *snapshot = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, label, &text)) {
    code = label == NULL ? esker_snapshot_new(HANDLE(esker_db, db), &snapshot, &error)
                         : esker_snapshot_new_with_label(HANDLE(esker_db, db), text.of.data, text.of.len,
                                                         &snapshot, &error);
  }
  drop(&text.of);
  succeeded(env, code, &error);
  return NUMBER(snapshot);
}

NATIVE(void, snapshotFree)(JNIEnv *env, jclass type, jlong snapshot) {
  esker_snapshot_free(HANDLE(esker_snapshot, snapshot));
}

NATIVE(jlong, snapshotPosition)(JNIEnv *env, jclass type, jlong snapshot) {
  return (jlong)esker_snapshot_position(HANDLE(esker_snapshot, snapshot));
}

NATIVE(jbyteArray, snapshotGet)(JNIEnv *env, jclass type, jlong snapshot, jlong keyspace, jbyteArray key) {
  SMALL(of);
  esker_value *value = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  bool taken = take_small(env, key, &of);
  if (taken) {
    code = esker_snapshot_get(HANDLE(esker_snapshot, snapshot), HANDLE(esker_keyspace, keyspace), of.of.data,
                              of.of.len, &value, &error);
  }
  drop(&of.of);
  if (!taken || !succeeded(env, code, &error)) return NULL;
  return give_value(env, value);
}

NATIVE(jboolean, snapshotContains)(JNIEnv *env, jclass type, jlong snapshot, jlong keyspace, jbyteArray key) {
  bool found = false;
  WITH_KEY(key,
           esker_snapshot_contains(HANDLE(esker_snapshot, snapshot), HANDLE(esker_keyspace, keyspace), KEY,
           &found, &error));
  return found;
}

NATIVE(jobjectArray, snapshotMultiGet)(JNIEnv *env, jclass type, jlong snapshot, jlong keyspace,
                                       jobjectArray keys) {
  asked of;
  esker_error *error = NULL;
  bool taken = take_asked(env, keys, &of);
  if (taken) {
    esker_code code =
        esker_snapshot_multi_get(HANDLE(esker_snapshot, snapshot), HANDLE(esker_keyspace, keyspace),
                                 of.keys.data, of.keys.lens, of.keys.count, of.values, &error);
    taken = succeeded(env, code, &error);
  }
  return give_asked(env, taken, &of);
}

NATIVE(jlong, readerNew)(JNIEnv *env, jclass type, jlong keyspace, jlong snapshot, jbyteArray key) {
  esker_value_reader *reader = NULL;
  WITH_KEY(key,
           esker_value_reader_new(HANDLE(esker_keyspace, keyspace), HANDLE(esker_snapshot, snapshot), KEY,
           &reader, &error));
  return NUMBER(reader);
}

NATIVE(void, readerFree)(JNIEnv *env, jclass type, jlong reader) {
  esker_value_reader_free(HANDLE(esker_value_reader, reader));
}

NATIVE(jlong, readerLength)(JNIEnv *env, jclass type, jlong reader) {
  return (jlong)esker_value_reader_len(HANDLE(esker_value_reader, reader));
}

NATIVE(void, readerSeek)(JNIEnv *env, jclass type, jlong reader, jlong offset) {
  esker_error *error = NULL;
  esker_code code = esker_value_reader_seek(HANDLE(esker_value_reader, reader), (uint64_t)offset, &error);
  succeeded(env, code, &error);
}

/* Reads into a part of an array, which Java has checked, by way of the stack: at most its room. */
NATIVE(jint, readerRead)(JNIEnv *env, jclass type, jlong reader, jbyteArray into, jint at, jint most) {
  char room[LARGE_ROOM * 2];
  size_t len = 0;
  esker_error *error = NULL;
  size_t capacity = (size_t)most < sizeof room ? (size_t)most : sizeof room;
  esker_code code = esker_value_reader_read(HANDLE(esker_value_reader, reader), room, capacity, &len, &error);
  if (succeeded(env, code, &error)) (*env)->SetByteArrayRegion(env, into, at, (jsize)len, (const jbyte *)room);
  return (jint)len;
}

/* Reads into a part of a direct buffer. */
NATIVE(jint, readerReadDirect)(JNIEnv *env, jclass type, jlong reader, jobject buffer, jint at, jint most) {
  char *place = (*env)->GetDirectBufferAddress(env, buffer);
  size_t len = 0;
  esker_error *error = NULL;
  esker_code code = esker_value_reader_read(HANDLE(esker_value_reader, reader), place + at, (size_t)most, &len,
                                            &error);
  succeeded(env, code, &error);
  return (jint)len;
}

NATIVE(jlong, keyspacePutFrom)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key, jobject stream) {
  SMALL(of);
  reading from;
  uint64_t len = 0;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of) && begin_reading(env, stream, &from)) {
    code = esker_put_from(HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len, read_piece, &from, &len,
                          &error);
  }
  drop(&of.of);
  succeeded(env, code, &error);
  return (jlong)len;
}
