/* What happens when the virtual machine loads the library, and the threads that call back. */

#include "glue.h"

#include <pthread.h>

cached java;

/* Set in threads that were attached here; its destructor detaches them. */
static pthread_key_t attached;

static void detach(void *vm) { (*(JavaVM *)vm)->DetachCurrentThread(vm); }

JNIEnv *callback_env(void) {
  JNIEnv *env = NULL;
  if ((*java.vm)->GetEnv(java.vm, (void **)&env, JNI_VERSION_10) == JNI_OK) return env;
  char name[] = "esker";
  JavaVMAttachArgs how = {JNI_VERSION_10, name, NULL};
  if ((*java.vm)->AttachCurrentThreadAsDaemon(java.vm, (void **)&env, &how) != JNI_OK) return NULL;
  pthread_setspecific(attached, java.vm);
  return env;
}

static jclass class_of(JNIEnv *env, const char *name) {
  jclass found = (*env)->FindClass(env, name);
  if (found == NULL) return NULL;
  jclass kept = (*env)->NewGlobalRef(env, found);
  (*env)->DeleteLocalRef(env, found);
  return kept;
}

static jmethodID method(JNIEnv *env, const char *of, const char *name, const char *signature) {
  jclass found = (*env)->FindClass(env, of);
  if (found == NULL) return NULL;
  jmethodID id = (*env)->GetMethodID(env, found, name, signature);
  (*env)->DeleteLocalRef(env, found);
  return id;
}

static jobject constant(JNIEnv *env, jclass of, const char *name, const char *signature) {
  jfieldID id = (*env)->GetStaticFieldID(env, of, name, signature);
  if (id == NULL) return NULL;
  jobject value = (*env)->GetStaticObjectField(env, of, id);
  jobject kept = (*env)->NewGlobalRef(env, value);
  (*env)->DeleteLocalRef(env, value);
  return kept;
}

static bool look_up_classes(JNIEnv *env) {
  return (java.bytes_class = class_of(env, "[B")) != NULL &&
         (java.no_memory_class = class_of(env, "java/lang/OutOfMemoryError")) != NULL &&
         (java.exception_class = class_of(env, "dev/esker/EskerException")) != NULL &&
         (java.exception_make = (*env)->GetStaticMethodID(
              env, java.exception_class, "make",
              "(I[B[BZJ[B[B[B[B[BIJLdev/esker/EskerException;)Ldev/esker/EskerException;")) != NULL &&
         (java.callbacks_class = class_of(env, "dev/esker/Callbacks")) != NULL &&
         (java.callbacks_failed = (*env)->GetStaticMethodID(
              env, java.callbacks_class, "failed", "(Ljava/lang/String;Ljava/lang/Throwable;)V")) != NULL &&
         (java.callbacks_event = (*env)->GetStaticMethodID(
              env, java.callbacks_class, "event", "(Ljava/util/function/Consumer;[B)V")) != NULL &&
         (java.keep = constant(env, java.callbacks_class, "KEEP", "[B")) != NULL &&
         (java.removed = constant(env, java.callbacks_class, "REMOVE", "[B")) != NULL;
}

static bool look_up_callbacks(JNIEnv *env) {
  return (java.full_merge = method(env, "dev/esker/MergeOperator", "fullMerge", "([B[B[[B)[B")) != NULL &&
         (java.partial_merge = method(env, "dev/esker/MergeOperator", "partialMerge", "([B[[B)[B")) != NULL &&
         (java.filter = (*env)->GetStaticMethodID(
              env, java.callbacks_class, "filter", "(Ldev/esker/CompactionFilter;[B[B)[B")) != NULL &&
         (java.compare = method(env, "dev/esker/OpenComparator", "compare", "([B[B)I")) != NULL &&
         (java.clock = method(env, "java/util/function/LongSupplier", "getAsLong", "()J")) != NULL &&
         (java.until = method(env, "java/util/function/BooleanSupplier", "getAsBoolean", "()Z")) != NULL &&
         (java.read = method(env, "java/io/InputStream", "read", "([BII)I")) != NULL;
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
  JNIEnv *env = NULL;
  java.vm = vm;
  if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_10) != JNI_OK) return JNI_ERR;
  if (pthread_key_create(&attached, detach) != 0) return JNI_ERR;
  // What is missing is an exception already, which System.load throws.
  if (!look_up_classes(env) || !look_up_callbacks(env)) return JNI_ERR;
  return JNI_VERSION_10;
}

NATIVE(jbyteArray, version)(JNIEnv *env, jclass type) {
  const char *version = esker_version();
  return give(env, version, strlen(version));
}
