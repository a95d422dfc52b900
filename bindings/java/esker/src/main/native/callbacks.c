/* Functions that the engine calls, and that call objects of Java.
 *
 * The context is a global reference. No exception leaves a callback: what Java throws is reported by
 * Callbacks.failed, except in those that run on the thread whose call they serve, where it stays
 * pending and becomes the result of that call. */

#include "glue.h"

#include <errno.h>

bool contained(JNIEnv *env, const char *what) {
  jthrowable thrown = (*env)->ExceptionOccurred(env);
  if (thrown == NULL) return false;
  (*env)->ExceptionClear(env);
  jstring name = (*env)->NewStringUTF(env, what);
  if (name != NULL) {
    (*env)->CallStaticVoidMethod(env, java.callbacks_class, java.callbacks_failed, name, thrown);
    (*env)->DeleteLocalRef(env, name);
  }
  (*env)->ExceptionClear(env);
  (*env)->DeleteLocalRef(env, thrown);
  return true;
}

static void forget(void *context) {
  JNIEnv *env = callback_env();
  if (env != NULL) (*env)->DeleteGlobalRef(env, context);
}

static jobjectArray arrays_of(JNIEnv *env, const char *const *data, const size_t *lens, size_t count) {
  jobjectArray arrays = (*env)->NewObjectArray(env, (jsize)count, java.bytes_class, NULL);
  for (size_t i = 0; arrays != NULL && i < count; i++) {
    jbyteArray array = give(env, data[i], lens[i]);
    if (array == NULL) return NULL;
    (*env)->SetObjectArrayElement(env, arrays, (jsize)i, array);
    (*env)->DeleteLocalRef(env, array);
  }
  return arrays;
}

/* Hands an array to the sink; false if there is no memory. */
static bool put(JNIEnv *env, jbyteArray array, esker_sink *sink) {
  LARGE(value);
  if (!take_large(env, array, &value)) return false;
  bool done = esker_sink_put(sink, value.of.data, value.of.len) == ESKER_OK;
  drop(&value.of);
  return done;
}

static int full_merge(void *context, const char *key, size_t key_len, const char *existing,
                      size_t existing_len, const char *const *operands, const size_t *operand_lens,
                      size_t count, esker_sink *sink) {
  JNIEnv *env = callback_env();
  if (env == NULL) return 1;
  int answer = 1;
  if ((*env)->PushLocalFrame(env, 16) == 0) {
    jbyteArray of = give(env, key, key_len);
    jbyteArray old = of == NULL ? NULL : give(env, existing, existing_len);
    jobjectArray new = (*env)->ExceptionCheck(env) ? NULL : arrays_of(env, operands, operand_lens, count);
    if (new != NULL) {
      jbyteArray made = (*env)->CallObjectMethod(env, context, java.full_merge, of, old, new);
      if (!(*env)->ExceptionCheck(env) && (made == NULL || put(env, made, sink))) answer = 0;
    }
    contained(env, "merge operator");
    (*env)->PopLocalFrame(env, NULL);
  }
  contained(env, "merge operator");
  return answer;
}

static void partial_merge(void *context, const char *key, size_t key_len, const char *const *operands,
                          const size_t *operand_lens, size_t count, esker_sink *sink) {
  JNIEnv *env = callback_env();
  if (env == NULL) return;
  if ((*env)->PushLocalFrame(env, 16) == 0) {
    jbyteArray of = give(env, key, key_len);
    jobjectArray given = of == NULL ? NULL : arrays_of(env, operands, operand_lens, count);
    if (given != NULL) {
      jbyteArray made = (*env)->CallObjectMethod(env, context, java.partial_merge, of, given);
      if (!(*env)->ExceptionCheck(env) && made != NULL) put(env, made, sink);
    }
    contained(env, "merge operator");
    (*env)->PopLocalFrame(env, NULL);
  }
  contained(env, "merge operator");
}

static int filter(void *context, const char *key, size_t key_len, const char *value, size_t value_len,
                  esker_sink *sink) {
  JNIEnv *env = callback_env();
  if (env == NULL) return 0;
  int answer = 0;
  if ((*env)->PushLocalFrame(env, 16) == 0) {
    jbyteArray of = give(env, key, key_len);
    jbyteArray old = of == NULL ? NULL : give(env, value, value_len);
    if (old != NULL) {
      jbyteArray decided =
          (*env)->CallStaticObjectMethod(env, java.callbacks_class, java.filter, context, of, old);
      if ((*env)->ExceptionCheck(env) || (*env)->IsSameObject(env, decided, java.keep)) {
        answer = 0;
      } else if ((*env)->IsSameObject(env, decided, java.removed)) {
        answer = 1;
      } else if (put(env, decided, sink)) {
        answer = 2;
      }
    }
    contained(env, "compaction filter");
    (*env)->PopLocalFrame(env, NULL);
  }
  contained(env, "compaction filter");
  return answer;
}

/* Without an answer of Java it is byte order, as OpenComparator.java says. */
static int byte_order(const char *a, size_t a_len, const char *b, size_t b_len) {
  int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
  return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare(void *context, const char *a, size_t a_len, const char *b, size_t b_len) {
  JNIEnv *env = callback_env();
  if (env == NULL) return byte_order(a, a_len, b, b_len);
  int order = byte_order(a, a_len, b, b_len);
  if ((*env)->PushLocalFrame(env, 16) == 0) {
    jbyteArray one = give(env, a, a_len);
    jbyteArray other = one == NULL ? NULL : give(env, b, b_len);
    if (other != NULL) {
      jint answer = (*env)->CallIntMethod(env, context, java.compare, one, other);
      if (!(*env)->ExceptionCheck(env)) order = answer;
    }
    contained(env, "comparator");
    (*env)->PopLocalFrame(env, NULL);
  }
  contained(env, "comparator");
  return order;
}

static uint64_t now(void *context) {
  JNIEnv *env = callback_env();
  if (env == NULL) return 0;
  jlong time = (*env)->CallLongMethod(env, context, java.clock);
  return contained(env, "clock") || time < 0 ? 0 : (uint64_t)time;
}

static void event(void *context, const char *json, size_t len) {
  JNIEnv *env = callback_env();
  if (env == NULL) return;
  if ((*env)->PushLocalFrame(env, 16) == 0) {
    jbyteArray text = give(env, json, len);
    if (text != NULL) {
      (*env)->CallStaticVoidMethod(env, java.callbacks_class, java.callbacks_event, context, text);
    }
    contained(env, "event listener");
    (*env)->PopLocalFrame(env, NULL);
  }
  contained(env, "event listener");
}

bool is_to_end(void *context) {
  ending *of = context;
  if ((*of->env)->ExceptionCheck(of->env)) return true;
  jboolean ends = (*of->env)->CallBooleanMethod(of->env, of->until, java.until);
  return (*of->env)->ExceptionCheck(of->env) || ends;
}

/* A piece of the engine is 256 KiB; more at a time would only take memory. */
enum { PIECE = 64 << 10 };

bool begin_reading(JNIEnv *env, jobject stream, reading *out) {
  *out = (reading){env, stream, (*env)->NewByteArray(env, PIECE)};
  return out->piece != NULL;
}

int read_piece(void *context, void *buffer, size_t capacity, size_t *len) {
  reading *from = context;
  JNIEnv *env = from->env;
  *len = 0;
  if ((*env)->ExceptionCheck(env)) return EIO;
  jint most = capacity < PIECE ? (jint)capacity : PIECE;
  jint got = (*env)->CallIntMethod(env, from->stream, java.read, from->piece, (jint)0, most);
  if ((*env)->ExceptionCheck(env) || got > most) return EIO;
  // The end is -1. A stream that gives nothing, against its contract, ends too.
  if (got <= 0) return 0;
  (*env)->GetByteArrayRegion(env, from->piece, 0, got, buffer);
  *len = (size_t)got;
  return 0;
}

/* Keeps an object for the engine; NULL, with an exception pending, if there is no memory. */
static jobject keep(JNIEnv *env, jobject object) {
  jobject kept = (*env)->NewGlobalRef(env, object);
  if (kept == NULL && !(*env)->ExceptionCheck(env)) throw_no_memory(env);
  return kept;
}

/* The end of each function below: what failed has not taken the context. */
static void settle(JNIEnv *env, jobject kept, esker_code code, esker_error *error) {
  if (code != ESKER_OK && kept != NULL) (*env)->DeleteGlobalRef(env, kept);
  succeeded(env, code, &error);
}

NATIVE(void, optionsAddMergeOperator)(JNIEnv *env, jclass type, jlong options, jbyteArray name, jobject operator) {
  SMALL(text);
  if (!take_small(env, name, &text)) return;
  jobject kept = keep(env, operator);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (kept != NULL) {
    code = esker_options_add_merge_operator(HANDLE(esker_options, options), text.of.data, text.of.len,
                                            full_merge, partial_merge, kept, forget, &error);
  }
  drop(&text.of);
  settle(env, kept, code, error);
}

NATIVE(void, optionsAddCompactionFilter)(JNIEnv *env, jclass type, jlong options, jbyteArray name, jobject of) {
  SMALL(text);
  if (!take_small(env, name, &text)) return;
  jobject kept = keep(env, of);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (kept != NULL) {
    code = esker_options_add_compaction_filter(HANDLE(esker_options, options), text.of.data, text.of.len,
                                               filter, kept, forget, &error);
  }
  drop(&text.of);
  settle(env, kept, code, error);
}

NATIVE(void, optionsSetClock)(JNIEnv *env, jclass type, jlong options, jobject clock) {
  jobject kept = keep(env, clock);
  esker_error *error = NULL;
  if (kept == NULL) return;
  esker_code code = esker_options_set_clock(HANDLE(esker_options, options), now, kept, forget, &error);
  settle(env, kept, code, error);
}

NATIVE(void, optionsSetListener)(JNIEnv *env, jclass type, jlong options, jobject listener) {
  jobject kept = keep(env, listener);
  esker_error *error = NULL;
  if (kept == NULL) return;
  esker_code code =
      esker_options_set_event_callback(HANDLE(esker_options, options), event, kept, forget, &error);
  settle(env, kept, code, error);
}

NATIVE(jlong, comparatorNew)(JNIEnv *env, jclass type, jbyteArray name, jobject comparator) {
  SMALL(text);
  if (!take_small(env, name, &text)) return 0;
  jobject kept = keep(env, comparator);
  esker_error *error = NULL;
  esker_comparator *made = NULL;
  esker_code code = ESKER_OK;
  if (kept != NULL) {
    code = esker_comparator_new(text.of.data, text.of.len, compare, kept, forget, &made, &error);
  }
  drop(&text.of);
  settle(env, kept, code, error);
  return NUMBER(made);
}

NATIVE(void, comparatorFree)(JNIEnv *env, jclass type, jlong comparator) {
  esker_comparator_free(HANDLE(esker_comparator, comparator));
}
