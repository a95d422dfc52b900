/* Options of databases and keyspaces, which live during the call that opens with them. */

#include "glue.h"

NATIVE(jlong, optionsNew)(JNIEnv *env, jclass type) { return NUMBER(esker_options_new()); }

NATIVE(void, optionsFree)(JNIEnv *env, jclass type, jlong options) {
  esker_options_free(HANDLE(esker_options, options));
}

NATIVE(void, optionsSet)(JNIEnv *env, jclass type, jlong options, jint option, jlong value) {
  esker_error *error = NULL;
  succeeded(env, esker_options_set(HANDLE(esker_options, options), option, (uint64_t)value, &error), &error);
}

NATIVE(void, optionsAddComparator)(JNIEnv *env, jclass type, jlong options, jlong comparator) {
  esker_error *error = NULL;
  esker_code code = esker_options_add_comparator(HANDLE(esker_options, options),
                                                 HANDLE(esker_comparator, comparator), &error);
  succeeded(env, code, &error);
}

NATIVE(jlong, keyspaceOptionsNew)(JNIEnv *env, jclass type) { return NUMBER(esker_keyspace_options_new()); }

NATIVE(void, keyspaceOptionsFree)(JNIEnv *env, jclass type, jlong options) {
  esker_keyspace_options_free(HANDLE(esker_keyspace_options, options));
}

NATIVE(void, keyspaceOptionsSetComparator)(JNIEnv *env, jclass type, jlong options, jlong comparator) {
  esker_error *error = NULL;
  esker_code code = esker_keyspace_options_set_comparator(HANDLE(esker_keyspace_options, options),
                                                          HANDLE(esker_comparator, comparator), &error);
  succeeded(env, code, &error);
}

NATIVE(void, keyspaceOptionsSetMergeOperator)(JNIEnv *env, jclass type, jlong options, jbyteArray name) {
  SMALL(text);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, name, &text)) {
    code = esker_keyspace_options_set_merge_operator(HANDLE(esker_keyspace_options, options), text.of.data,
                                                     text.of.len, &error);
  }
  drop(&text.of);
  succeeded(env, code, &error);
}

NATIVE(void, keyspaceOptionsSetCompactionFilter)(JNIEnv *env, jclass type, jlong options, jbyteArray name) {
  SMALL(text);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, name, &text)) {
    code = esker_keyspace_options_set_compaction_filter(HANDLE(esker_keyspace_options, options),
                                                        text.of.data, text.of.len, &error);
  }
  drop(&text.of);
  succeeded(env, code, &error);
}

NATIVE(void, keyspaceOptionsSetTtl)(JNIEnv *env, jclass type, jlong options, jlong milliseconds) {
  esker_error *error = NULL;
  esker_code code = esker_keyspace_options_set_ttl(HANDLE(esker_keyspace_options, options),
                                                   (uint64_t)milliseconds, &error);
  succeeded(env, code, &error);
}
