/* What the test programs share: a check that says where it failed, and paths below the directory
 * that the test gives as the first argument. */
#ifndef CHECK_H
#define CHECK_H

#include "esker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                      \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

/* The call must succeed; the place for its error is `error`. */
#define OK(call)                                                                                   \
  do {                                                                                             \
    esker_error *error = NULL;                                                                     \
    esker_code code_ = (call);                                                                     \
    if (code_ != ESKER_OK) {                                                                       \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, esker_code_name(code_),    \
              esker_error_message(error));                                                         \
      exit(1);                                                                                     \
    }                                                                                              \
    CHECK(error == NULL);                                                                          \
  } while (0)

/* The call must fail with this code, and its error must say something and carry the same code. */
#define FAILS(expected, call)                                                                      \
  do {                                                                                             \
    esker_error *error = NULL;                                                                     \
    esker_code code_ = (call);                                                                     \
    if (code_ != (expected)) {                                                                     \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, esker_code_name(code_),    \
              esker_error_message(error));                                                         \
      exit(1);                                                                                     \
    }                                                                                              \
    CHECK(error != NULL);                                                                          \
    CHECK(esker_error_code(error) == (expected));                                                  \
    CHECK(strlen(esker_error_message(error)) > 10);                                                \
    esker_error_free(error);                                                                       \
  } while (0)

/* A text with its length, as two arguments. */
#define T(text) (text), strlen(text)

static inline const char *below(const char *directory, const char *name) {
  static char path[4096];
  int length = snprintf(path, sizeof path, "%s/%s", directory, name);
  CHECK(length > 0 && (size_t)length < sizeof path);
  return path;
}

/* Whether these bytes are this text. */
static inline bool same(const char *bytes, size_t length, const char *text) {
  return bytes != NULL && length == strlen(text) && memcmp(bytes, text, length) == 0;
}

/* Whether a key has this value; NULL: none. */
static inline bool holds(const esker_keyspace *keyspace, const char *key, const char *expected) {
  esker_value *value = NULL;
  bool result;
  OK(esker_get(keyspace, T(key), &value, &error));
  if (value == NULL) {
    result = expected == NULL;
  } else {
    size_t length = 99;
    const char *data = esker_value_data(value, &length);
    result = expected != NULL && same(data, length, expected);
  }
  esker_value_free(value);
  return result;
}

#endif
