/* The one place where errors of the engine become exceptions. */

#include "glue.h"

void throw_no_memory(JNIEnv *env) {
  (*env)->ThrowNew(env, java.no_memory_class, "no memory for an argument or a result");
}

/* The exception for an error, whose cause is made before it. NULL if there is no memory. */
static jobject exception_of(JNIEnv *env, esker_code code, const esker_error *error) {
  if ((*env)->PushLocalFrame(env, 16) != 0) return NULL;
  jobject cause = NULL;
  if (error != NULL) {
    const esker_error *earlier = esker_error_cause(error);
    if (earlier != NULL) cause = exception_of(env, esker_error_code(earlier), earlier);
  }
  const char *message = error == NULL ? esker_code_name(code) : esker_error_message(error);
  jbyteArray text = give(env, message, strlen(message));
  jbyteArray part[5] = {NULL, NULL, NULL, NULL, NULL};
  uint64_t offset = 0;
  bool has_offset = false;
  if (error != NULL) {
    const char *(*parts[5])(const esker_error *, size_t *) = {
        esker_error_path, esker_error_section, esker_error_keyspace, esker_error_branch, esker_error_low_key};
    for (int i = 0; i < 5 && !(*env)->ExceptionCheck(env); i++) {
      size_t len = 0;
      const char *data = parts[i](error, &len);
      part[i] = give(env, data, len);
    }
    has_offset = esker_error_offset(error, &offset);
  }
  jbyteArray high = NULL;
  if (error != NULL && !(*env)->ExceptionCheck(env)) {
    size_t len = 0;
    const char *data = esker_error_high_key(error, &len);
    high = give(env, data, len);
  }
  jobject made = NULL;
  if (!(*env)->ExceptionCheck(env)) {
    made = (*env)->CallStaticObjectMethod(
        env, java.exception_class, java.exception_make, (jint)code, text, part[0],
        (jboolean)has_offset, (jlong)offset, part[1], part[2], part[3], part[4], high,
        (jint)(error == NULL ? 0 : esker_error_os_code(error)),
        (jlong)(error == NULL ? 0 : esker_error_retry_after(error)), cause);
  }
  return (*env)->PopLocalFrame(env, made);
}

void throw_error(JNIEnv *env, esker_code code, esker_error *error) {
  if (!(*env)->ExceptionCheck(env)) {
    jobject exception = exception_of(env, code, error);
    if (exception != NULL && !(*env)->ExceptionCheck(env)) (*env)->Throw(env, exception);
  }
  esker_error_free(error);
}
