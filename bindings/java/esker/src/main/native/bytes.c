/* Bytes from Java and to Java. */

#include "glue.h"

bool take(JNIEnv *env, jbyteArray array, void *room, size_t room_len, bytes *out) {
  *out = (bytes){NULL, 0, NULL};
  if (array == NULL) return true;
  jsize len = (*env)->GetArrayLength(env, array);
  void *place = room;
  if ((size_t)len > room_len) {
    place = malloc((size_t)len);
    if (place == NULL) {
      throw_no_memory(env);
      return false;
    }
    out->heap = place;
  }
  (*env)->GetByteArrayRegion(env, array, 0, len, place);
  out->data = place;
  out->len = (size_t)len;
  return true;
}

/* Measures before it copies, so that all lie in one piece of memory. Another thread may replace an
 * element in between, so the second look is at the same length only. */
static bool measure(JNIEnv *env, jobjectArray arrays, many *out, size_t *total) {
  for (size_t i = 0; i < out->count; i++) {
    jbyteArray array = (*env)->GetObjectArrayElement(env, arrays, (jsize)i);
    if (array == NULL) {
      jclass type = (*env)->FindClass(env, "java/lang/NullPointerException");
      if (type != NULL) (*env)->ThrowNew(env, type, "an element is null");
      return false;
    }
    out->lens[i] = (size_t)(*env)->GetArrayLength(env, array);
    *total += out->lens[i];
    (*env)->DeleteLocalRef(env, array);
  }
  return true;
}

static bool copy(JNIEnv *env, jobjectArray arrays, many *out) {
  char *at = out->room;
  for (size_t i = 0; i < out->count; i++) {
    jbyteArray array = (*env)->GetObjectArrayElement(env, arrays, (jsize)i);
    if (array == NULL || (size_t)(*env)->GetArrayLength(env, array) < out->lens[i]) {
      jclass type = (*env)->FindClass(env, "java/util/ConcurrentModificationException");
      if (type != NULL) (*env)->ThrowNew(env, type, "an element was replaced during the call");
      return false;
    }
    (*env)->GetByteArrayRegion(env, array, 0, (jsize)out->lens[i], (jbyte *)at);
    out->data[i] = at;
    at += out->lens[i];
    (*env)->DeleteLocalRef(env, array);
  }
  return true;
}

bool take_many(JNIEnv *env, jobjectArray arrays, many *out) {
  *out = (many){(size_t)(*env)->GetArrayLength(env, arrays), NULL, NULL, NULL};
  // One more than needed: none of them is of the size 0, for which NULL would be an answer.
  out->data = malloc((out->count + 1) * sizeof *out->data);
  out->lens = malloc((out->count + 1) * sizeof *out->lens);
  size_t total = 0;
  if (out->data == NULL || out->lens == NULL) {
    throw_no_memory(env);
    return false;
  }
  if (!measure(env, arrays, out, &total)) return false;
  out->room = malloc(total + 1);
  if (out->room == NULL) {
    throw_no_memory(env);
    return false;
  }
  return copy(env, arrays, out);
}

void drop_many(many *taken) {
  free(taken->data);
  free(taken->lens);
  free(taken->room);
}

jbyteArray give(JNIEnv *env, const char *data, size_t len) {
  if (data == NULL) return NULL;
  if (len > INT32_MAX) {
    throw_no_memory(env);
    return NULL;
  }
  jbyteArray array = (*env)->NewByteArray(env, (jsize)len);
  if (array != NULL && len > 0) {
    (*env)->SetByteArrayRegion(env, array, 0, (jsize)len, (const jbyte *)data);
  }
  return array;
}

jbyteArray give_value(JNIEnv *env, esker_value *value) {
  if (value == NULL) return NULL;
  size_t len = 0;
  const char *data = esker_value_data(value, &len);
  jbyteArray array = give(env, data, len);
  esker_value_free(value);
  return array;
}

/* Puts one array into its place, and lets go of it: there may be more than a frame has room for. */
static bool set(JNIEnv *env, jobjectArray arrays, size_t index, jbyteArray array) {
  if (array == NULL) return !(*env)->ExceptionCheck(env);
  (*env)->SetObjectArrayElement(env, arrays, (jsize)index, array);
  (*env)->DeleteLocalRef(env, array);
  return true;
}

bool take_asked(JNIEnv *env, jobjectArray keys, asked *out) {
  out->values = NULL;
  if (!take_many(env, keys, &out->keys)) return false;
  // One more than needed, as there.
  out->values = calloc(out->keys.count + 1, sizeof *out->values);
  if (out->values == NULL) throw_no_memory(env);
  return out->values != NULL;
}

/* The values are released. */
static jobjectArray give_values(JNIEnv *env, esker_value **values, size_t count) {
  jobjectArray arrays = (*env)->NewObjectArray(env, (jsize)count, java.bytes_class, NULL);
  bool going = arrays != NULL;
  for (size_t i = 0; i < count; i++) {
    if (!going) {
      esker_value_free(values[i]);
      continue;
    }
    going = set(env, arrays, i, give_value(env, values[i]));
  }
  return going ? arrays : NULL;
}

jobjectArray give_asked(JNIEnv *env, bool read, asked *of) {
  jobjectArray result = read ? give_values(env, of->values, of->keys.count) : NULL;
  drop_many(&of->keys);
  free(of->values);
  return result;
}

jobjectArray give_list(JNIEnv *env, esker_list *list) {
  size_t count = esker_list_len(list);
  jobjectArray arrays = (*env)->NewObjectArray(env, (jsize)count, java.bytes_class, NULL);
  bool going = arrays != NULL;
  for (size_t i = 0; going && i < count; i++) {
    size_t len = 0;
    const char *data = esker_list_get(list, i, &len);
    going = set(env, arrays, i, give(env, data, len));
  }
  esker_list_free(list);
  return going ? arrays : NULL;
}
