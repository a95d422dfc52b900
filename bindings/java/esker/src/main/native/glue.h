/* What the files of the glue share: arguments as bytes, errors as exceptions, callbacks.
 *
 * The Java side, Native.java, declares the functions. It hands over pointers of live handles only, and
 * counts the calls that use a handle, so that none is freed under a call. All checks of handles are
 * there; what is here may rely on them. */

#ifndef ESKER_GLUE_H
#define ESKER_GLUE_H

#include "esker.h"

#include <jni.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A function that Native.java declares. */
#define NATIVE(result, name) JNIEXPORT result JNICALL Java_dev_esker_Native_##name

/* The handle behind a number of Java, and the number of a handle. */
#define HANDLE(type, number) ((type *)(intptr_t)(number))
#define NUMBER(pointer) ((jlong)(intptr_t)(pointer))

/* Copies up to these sizes lie on the stack. */
enum { SMALL_ROOM = 256, LARGE_ROOM = 4096 };

/* Bytes of a Java array, copied: the engine may wait while it uses them, and nothing may wait while an
 * array is pinned. A NULL array is NULL with the length 0; an empty one is not NULL. */
typedef struct {
  const void *data;
  size_t len;
  void *heap;
} bytes;

/* A key, a bound or a name. */
typedef struct {
  bytes of;
  char room[SMALL_ROOM];
} small;

/* A value. */
typedef struct {
  bytes of;
  char room[LARGE_ROOM];
} large;

/* Declares one that may be dropped whether or not it was taken. The room is left as it is. */
#define SMALL(name) \
  small name;       \
  name.of = (bytes){NULL, 0, NULL}
#define LARGE(name) \
  large name;       \
  name.of = (bytes){NULL, 0, NULL}

/* Copies an array; false, with an exception pending, if there is no memory. */
bool take(JNIEnv *env, jbyteArray array, void *room, size_t room_len, bytes *out);

static inline bool take_small(JNIEnv *env, jbyteArray array, small *out) {
  return take(env, array, out->room, sizeof out->room, &out->of);
}

static inline bool take_large(JNIEnv *env, jbyteArray array, large *out) {
  return take(env, array, out->room, sizeof out->room, &out->of);
}

static inline void drop(bytes *taken) {
  if (taken->heap != NULL) free(taken->heap);
}

/* Both ends of a range. */
typedef struct {
  small start;
  small end;
} range;

#define RANGE(name)                         \
  range name;                               \
  name.start.of = (bytes){NULL, 0, NULL};   \
  name.end.of = (bytes){NULL, 0, NULL}

static inline bool take_range(JNIEnv *env, jbyteArray start, jbyteArray end, range *out) {
  return take_small(env, start, &out->start) && take_small(env, end, &out->end);
}

static inline void drop_range(range *taken) {
  drop(&taken->start.of);
  drop(&taken->end.of);
}

/* The four arguments of a range in a call of the engine. */
#define RANGE_OF(name) \
  name.start.of.data, name.start.of.len, name.end.of.data, name.end.of.len

/* Arrays of keys or values, copied one behind the other. */
typedef struct {
  size_t count;
  const void **data;
  size_t *lens;
  char *room;
} many;

bool take_many(JNIEnv *env, jobjectArray arrays, many *out);
void drop_many(many *taken);

/* Bytes of the engine as a Java array, NULL for NULL, and with an exception if there is no memory. */
jbyteArray give(JNIEnv *env, const char *data, size_t len);

/* A value or text as a Java array; NULL for NULL. The value is released. */
jbyteArray give_value(JNIEnv *env, esker_value *value);

/* Keys of a read of several, and room for their values. */
typedef struct {
  many keys;
  esker_value **values;
} asked;

/* False, with an exception pending, if they cannot be taken. Either way give_asked drops them. */
bool take_asked(JNIEnv *env, jobjectArray keys, asked *out);

/* The values as an array of arrays if the read succeeded, else NULL. */
jobjectArray give_asked(JNIEnv *env, bool read, asked *of);

/* A list as an array of arrays. The list is freed. */
jobjectArray give_list(JNIEnv *env, esker_list *list);

/* Throws the exception for a code, which is not ESKER_OK, and frees the error. If an exception is
 * pending, because a callback threw it during the call, that one stays. */
void throw_error(JNIEnv *env, esker_code code, esker_error *error);

/* Whether a call succeeded; if not, an exception is pending afterwards. It gets the place of the error,
 * because the call may stand in the same list of arguments, which C evaluates in any order. */
static inline bool succeeded(JNIEnv *env, esker_code code, esker_error **error) {
  if (code == ESKER_OK) return true;
  throw_error(env, code, *error);
  return false;
}

/* Calls of the engine with what was taken from arrays, which is dropped afterwards; an exception is
 * pending if it could not be taken or the call failed. The call names what was taken KEY, PAIR or ENDS,
 * and ends with the place of its error, `&error`. */
#define WITH_KEY(key_array, call)                        \
  do {                                                   \
    SMALL(of);                                           \
    esker_error *error = NULL;                           \
    esker_code code = ESKER_OK;                          \
    if (take_small(env, key_array, &of)) code = call;    \
    drop(&of.of);                                        \
    succeeded(env, code, &error);                        \
  } while (0)
#define KEY of.of.data, of.of.len

#define WITH_PAIR(key_array, value_array, call)                                                        \
  do {                                                                                                 \
    SMALL(of);                                                                                         \
    LARGE(new);                                                                                        \
    esker_error *error = NULL;                                                                         \
    esker_code code = ESKER_OK;                                                                        \
    if (take_small(env, key_array, &of) && take_large(env, value_array, &new)) code = call;            \
    drop(&of.of);                                                                                      \
    drop(&new.of);                                                                                     \
    succeeded(env, code, &error);                                                                      \
  } while (0)
#define PAIR KEY, new.of.data, new.of.len

#define WITH_RANGE(start_array, end_array, call)                         \
  do {                                                                   \
    RANGE(of);                                                           \
    esker_error *error = NULL;                                           \
    esker_code code = ESKER_OK;                                          \
    if (take_range(env, start_array, end_array, &of)) code = call;       \
    drop_range(&of);                                                     \
    succeeded(env, code, &error);                                        \
  } while (0)
#define ENDS RANGE_OF(of)

/* Throws OutOfMemoryError. */
void throw_no_memory(JNIEnv *env);

/* The environment of a thread in which the engine calls back; NULL if it cannot have one, because the
 * virtual machine is ending. Threads of the engine become daemon threads of the virtual machine, and
 * cease to be with their end. */
JNIEnv *callback_env(void);

/* Reports an exception that a callback threw, and clears it; false if there is none. */
bool contained(JNIEnv *env, const char *what);

/* For calls that can be ended: `until` is a BooleanSupplier or NULL. */
typedef struct {
  JNIEnv *env;
  jobject until;
} ending;

bool is_to_end(void *context);

/* What a call of put_from reads. */
typedef struct {
  JNIEnv *env;
  jobject stream;
  jbyteArray piece;
} reading;

/* False, with an exception pending, if there is no memory. */
bool begin_reading(JNIEnv *env, jobject stream, reading *out);
int read_piece(void *context, void *buffer, size_t capacity, size_t *len);

/* Classes and methods that are looked up once. */
typedef struct {
  JavaVM *vm;
  jclass bytes_class;
  jclass exception_class;
  jmethodID exception_make;
  jclass no_memory_class;
  jclass callbacks_class;
  jmethodID callbacks_failed;
  jmethodID callbacks_event;
  jmethodID full_merge;
  jmethodID partial_merge;
  jmethodID filter;
  jmethodID compare;
  jmethodID clock;
  jmethodID until;
  jmethodID read;
  jobject keep;
  jobject removed;
} cached;

extern cached java;

#endif
