/* A keyspace: reads and writes of one key. */

#include "glue.h"

NATIVE(void, keyspaceFree)(JNIEnv *env, jclass type, jlong keyspace) {
  esker_keyspace_free(HANDLE(esker_keyspace, keyspace));
}

NATIVE(jbyteArray, keyspaceComparator)(JNIEnv *env, jclass type, jlong keyspace) {
  size_t len = 0;
  const char *name = esker_keyspace_comparator(HANDLE(esker_keyspace, keyspace), &len);
  return give(env, name, len);
}

NATIVE(jbyteArray, keyspaceMergeOperator)(JNIEnv *env, jclass type, jlong keyspace) {
  esker_value *name = NULL;
  esker_error *error = NULL;
  esker_code code = esker_keyspace_merge_operator(HANDLE(esker_keyspace, keyspace), &name, &error);
  if (!succeeded(env, code, &error)) return NULL;
  return give_value(env, name);
}

NATIVE(jlong, keyspaceTtl)(JNIEnv *env, jclass type, jlong keyspace) {
  return (jlong)esker_keyspace_ttl(HANDLE(esker_keyspace, keyspace));
}

NATIVE(void, keyspaceSetTtl)(JNIEnv *env, jclass type, jlong keyspace, jlong milliseconds) {
  esker_error *error = NULL;
  esker_code code = esker_keyspace_set_ttl(HANDLE(esker_keyspace, keyspace), (uint64_t)milliseconds, &error);
  succeeded(env, code, &error);
}

/* How gets take a value: as it was the last time in this thread, or always in one way, for
 * measurements. The numbers are those of NativeLibrary.java. */
enum { GET_AS_LAST = 0, GET_BY_COPY = 1, GET_BY_VALUE = 2 };
static int get_mode = GET_AS_LAST;

/* Whether the last value of this thread was longer than the room of a copy. */
static _Thread_local bool last_was_long;

NATIVE(void, setGetMode)(JNIEnv *env, jclass type, jint mode) { get_mode = mode; }

/* Short values go by way of the stack, with nothing to allocate and free; of long ones the engine hands
 * out a reference or one copy, from which the array is filled. */
NATIVE(jbyteArray, keyspaceGet)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key) {
  SMALL(of);
  if (!take_small(env, key, &of)) return NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  char room[LARGE_ROOM];
  size_t len = 0;
  bool found = false;
  bool by_value = get_mode == GET_BY_VALUE || (get_mode == GET_AS_LAST && last_was_long);
  if (!by_value) {
    code = esker_get_copy(HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len, room, sizeof room, &len,
                          &found, &error);
    by_value = found && len > sizeof room;
  }
  esker_value *value = NULL;
  if (by_value) {
    code = esker_get(HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len, &value, &error);
  }
  drop(&of.of);
  if (!succeeded(env, code, &error)) return NULL;
  if (by_value) {
    if (value != NULL) {
      esker_value_data(value, &len);
      last_was_long = len > sizeof room;
    }
    return give_value(env, value);
  }
  return found ? give(env, room, len) : NULL;
}

/* Copies at most `capacity` bytes into a direct buffer. The length of the value, or -1 without one. */
NATIVE(jint, keyspaceGetInto)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key, jobject buffer,
                              jint at, jint capacity) {
  char *place = (*env)->GetDirectBufferAddress(env, buffer);
  SMALL(of);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  size_t len = 0;
  bool found = false;
  if (take_small(env, key, &of)) {
    code = esker_get_copy(HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len, place + at,
                          (size_t)capacity, &len, &found, &error);
  }
  drop(&of.of);
  succeeded(env, code, &error);
  return found ? (jint)len : -1;
}

/* As keyspaceGetInto, with the key in a direct buffer too. */
NATIVE(jint, keyspaceGetDirect)(JNIEnv *env, jclass type, jlong keyspace, jobject key, jint key_at,
                                jint key_len, jobject buffer, jint at, jint capacity) {
  const char *of = (*env)->GetDirectBufferAddress(env, key);
  char *place = (*env)->GetDirectBufferAddress(env, buffer);
  esker_error *error = NULL;
  size_t len = 0;
  bool found = false;
  esker_code code = esker_get_copy(HANDLE(esker_keyspace, keyspace), of + key_at, (size_t)key_len,
                                   place + at, (size_t)capacity, &len, &found, &error);
  succeeded(env, code, &error);
  return found ? (jint)len : -1;
}

/* A value to be held, or 0 without one. */
NATIVE(jlong, keyspaceGetValue)(JNIEnv *env, jclass type, jlong keyspace, jlong snapshot, jbyteArray key) {
  esker_value *value = NULL;
  WITH_KEY(key,
           snapshot == 0 ? esker_get(HANDLE(esker_keyspace, keyspace), KEY, &value,
           &error) : esker_snapshot_get(HANDLE(esker_snapshot, snapshot), HANDLE(esker_keyspace, keyspace),
           KEY, &value, &error));
  return NUMBER(value);
}

/* A direct buffer on the bytes of a value, which must outlive it. */
NATIVE(jobject, valueBuffer)(JNIEnv *env, jclass type, jlong value) {
  size_t len = 0;
  const char *data = esker_value_data(HANDLE(esker_value, value), &len);
  return (*env)->NewDirectByteBuffer(env, (void *)(uintptr_t)data, (jlong)len);
}

NATIVE(jint, valueLength)(JNIEnv *env, jclass type, jlong value) {
  size_t len = 0;
  esker_value_data(HANDLE(esker_value, value), &len);
  return (jint)len;
}

/* The bytes of a value as an array. The value is released. */
NATIVE(jbyteArray, valueTake)(JNIEnv *env, jclass type, jlong value) {
  return give_value(env, HANDLE(esker_value, value));
}

NATIVE(void, valueFree)(JNIEnv *env, jclass type, jlong value) { esker_value_free(HANDLE(esker_value, value)); }

NATIVE(jboolean, keyspaceContains)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key) {
  bool found = false;
  WITH_KEY(key, esker_contains(HANDLE(esker_keyspace, keyspace), KEY, &found, &error));
  return found;
}

NATIVE(jobjectArray, keyspaceMultiGet)(JNIEnv *env, jclass type, jlong keyspace, jobjectArray keys) {
  asked of;
  esker_error *error = NULL;
  bool taken = take_asked(env, keys, &of);
  if (taken) {
    esker_code code =
        esker_multi_get(HANDLE(esker_keyspace, keyspace),
                        of.keys.data, of.keys.lens, of.keys.count, of.values, &error);
    taken = succeeded(env, code, &error);
  }
  return give_asked(env, taken, &of);
}

NATIVE(void, keyspacePut)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key, jbyteArray value,
                          jint durability) {
  WITH_PAIR(key, value, esker_put(HANDLE(esker_keyspace, keyspace), PAIR, durability, &error));
}

NATIVE(void, keyspacePutDirect)(JNIEnv *env, jclass type, jlong keyspace, jobject key, jint key_at,
                                jint key_len, jobject value, jint value_at, jint value_len, jint durability) {
  const char *of = (*env)->GetDirectBufferAddress(env, key);
  const char *new = (*env)->GetDirectBufferAddress(env, value);
  esker_error *error = NULL;
  esker_code code = esker_put(HANDLE(esker_keyspace, keyspace), of + key_at, (size_t)key_len, new + value_at,
                              (size_t)value_len, durability, &error);
  succeeded(env, code, &error);
}

NATIVE(void, keyspacePutTtl)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key, jbyteArray value,
                             jlong milliseconds) {
  WITH_PAIR(key, value, esker_put_ttl(HANDLE(esker_keyspace, keyspace), PAIR, (uint64_t)milliseconds, &error));
}

NATIVE(void, keyspaceTryPut)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key, jbyteArray value) {
  WITH_PAIR(key, value, esker_try_put(HANDLE(esker_keyspace, keyspace), PAIR, &error));
}

NATIVE(void, keyspaceMerge)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key, jbyteArray operand,
                            jint durability) {
  WITH_PAIR(key, operand, esker_merge(HANDLE(esker_keyspace, keyspace), PAIR, durability, &error));
}

/* Without `waits`, with the durability of the database. */
NATIVE(void, keyspaceDelete)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key, jint durability,
                             jboolean waits) {
  WITH_KEY(key,
           waits ? esker_delete(HANDLE(esker_keyspace, keyspace), KEY, durability,
           &error) : esker_try_delete(HANDLE(esker_keyspace, keyspace), KEY, &error));
}

NATIVE(jboolean, keyspaceCompareAndSet)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key,
                                        jbyteArray expected, jbyteArray value) {
  SMALL(of);
  LARGE(old);
  LARGE(new);
  bool done = false;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of) && take_large(env, expected, &old) && take_large(env, value, &new)) {
    code = esker_compare_and_set(HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len, old.of.data,
                                 old.of.len, new.of.data, new.of.len, &done, &error);
  }
  drop(&of.of);
  drop(&old.of);
  drop(&new.of);
  succeeded(env, code, &error);
  return done;
}

NATIVE(jboolean, keyspaceInsertIfAbsent)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray key,
                                         jbyteArray value) {
  bool done = false;
  WITH_PAIR(key, value, esker_insert_if_absent(HANDLE(esker_keyspace, keyspace), PAIR, &done, &error));
  return done;
}
