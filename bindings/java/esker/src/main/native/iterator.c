/* Iterators: each call moves and fills a direct buffer with as many entries as Java asks for.
 *
 * An entry in the buffer is the length of the key and of the value, each 4 bytes in the order of the
 * processor, the key and the value. */

#include "glue.h"

/* An iterator, and what a call that filled a buffer came upon behind the last entry that it delivered. */
typedef struct {
  esker_iter *iter;
  /* The iterator is on an entry that was not delivered, for want of room. */
  bool held;
  /* The next move fails with this; ESKER_OK: it does not. */
  esker_code kept_code;
  esker_error *kept;
} cursor;

/* Where an iterator goes before it fills: the numbers are those of Cursor.java. */
enum { FIRST = 0, LAST = 1, SEEK = 2, SEEK_BACK = 3, NEXT = 4, PREV = 5, AFTER = 6, BEFORE = 7 };

/* In the result, beside the number of entries: the iterator has come to its end. */
#define AT_END (INT64_C(1) << 32)

static bool is_on(esker_iter *iter, const bytes *key) {
  size_t len = 0;
  const char *at = esker_iter_key(iter, &len);
  return at != NULL && len == key->len && memcmp(at, key->data, len) == 0;
}

static esker_code move(esker_iter *iter, int how, const bytes *key, esker_error **error) {
  esker_code code = ESKER_OK;
  switch (how) {
    case FIRST: return esker_iter_first(iter, error);
    case LAST: return esker_iter_last(iter, error);
    case SEEK: return esker_iter_seek(iter, key->data, key->len, error);
    case SEEK_BACK: return esker_iter_seek_back(iter, key->data, key->len, error);
    case NEXT: return esker_iter_next(iter, error);
    case PREV: return esker_iter_prev(iter, error);
    case AFTER:
      code = esker_iter_seek(iter, key->data, key->len, error);
      return code == ESKER_OK && is_on(iter, key) ? esker_iter_next(iter, error) : code;
    case BEFORE:
      code = esker_iter_seek_back(iter, key->data, key->len, error);
      return code == ESKER_OK && is_on(iter, key) ? esker_iter_prev(iter, error) : code;
    default: return code;
  }
}

static bool goes_back(int how) { return how == LAST || how == SEEK_BACK || how == PREV || how == BEFORE; }

/* Writes the iterator's entry; false if there is no room. `needed` gets its bytes. */
static bool write_entry(esker_iter *iter, char *buffer, size_t room, size_t *needed) {
  size_t key_len = 0, value_len = 0;
  const char *key = esker_iter_key(iter, &key_len);
  const char *value = esker_iter_value(iter, &value_len);
  *needed = 8 + key_len + value_len;
  if (*needed > room) return false;
  uint32_t lens[2] = {(uint32_t)key_len, (uint32_t)value_len};
  memcpy(buffer, lens, sizeof lens);
  memcpy(buffer + 8, key, key_len);
  memcpy(buffer + 8 + key_len, value, value_len);
  return true;
}

/* Fills the buffer from where the iterator is after a move that ended with `code`. The number of
 * entries; or, negative, the bytes of the first one if it has no room. An error behind the first entry
 * is left in `code` and `error`. */
static jlong fill(esker_iter *iter, bool back, char *buffer, size_t capacity, jint most, bool *held,
                  esker_code *code, esker_error **error) {
  size_t used = 0;
  jlong count = 0;
  while (*code == ESKER_OK) {
    size_t needed = 0;
    if (!esker_iter_valid(iter)) return count | AT_END;
    if (!write_entry(iter, buffer + used, capacity - used, &needed)) {
      *held = true;
      return count == 0 ? -(jlong)needed : count;
    }
    used += needed;
    if (++count == most) return count;
    *code = back ? esker_iter_prev(iter, error) : esker_iter_next(iter, error);
  }
  return count;
}

static void forget_kept(cursor *of) {
  esker_error_free(of->kept);
  of->kept = NULL;
  of->kept_code = ESKER_OK;
}

static jlong made(JNIEnv *env, esker_code code, esker_iter *iter, esker_error *error) {
  if (!succeeded(env, code, &error) || iter == NULL) return 0;
  cursor *of = malloc(sizeof *of);
  if (of == NULL) {
    esker_iter_free(iter);
    throw_no_memory(env);
    return 0;
  }
  *of = (cursor){iter, false, ESKER_OK, NULL};
  return NUMBER(of);
}

NATIVE(jlong, cursorNew)(JNIEnv *env, jclass type, jlong keyspace, jlong snapshot, jbyteArray start,
                         jbyteArray end) {
  RANGE(of);
  esker_iter *iter = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_range(env, start, end, &of)) {
    code = esker_iter_new(HANDLE(esker_keyspace, keyspace), HANDLE(esker_snapshot, snapshot), RANGE_OF(of),
                          &iter, &error);
  }
  drop_range(&of);
  return made(env, code, iter, error);
}

NATIVE(jlong, cursorNewPrefix)(JNIEnv *env, jclass type, jlong keyspace, jlong snapshot, jbyteArray prefix) {
  SMALL(of);
  esker_iter *iter = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, prefix, &of)) {
    code = esker_iter_new_prefix(HANDLE(esker_keyspace, keyspace), HANDLE(esker_snapshot, snapshot),
                                 of.of.data, of.of.len, &iter, &error);
  }
  drop(&of.of);
  return made(env, code, iter, error);
}

NATIVE(void, cursorFree)(JNIEnv *env, jclass type, jlong number) {
  cursor *of = HANDLE(cursor, number);
  esker_iter_free(of->iter);
  forget_kept(of);
  free(of);
}

/* Moves, and fills a direct buffer with at most `most` entries in the direction of the move. */
NATIVE(jlong, cursorFill)(JNIEnv *env, jclass type, jlong number, jint how, jbyteArray key, jobject buffer,
                          jint capacity, jint most) {
  cursor *of = HANDLE(cursor, number);
  char *place = (*env)->GetDirectBufferAddress(env, buffer);
  esker_code code = ESKER_OK;
  esker_error *error = NULL;
  bool steps = how == NEXT || how == PREV;
  bool back = goes_back(how);
  if (steps && of->kept_code != ESKER_OK) {
    code = of->kept_code;
    error = of->kept;
    of->kept_code = ESKER_OK;
    of->kept = NULL;
    throw_error(env, code, error);
    return 0;
  }
  SMALL(to);
  if (!take_small(env, key, &to)) return 0;
  if (!steps || !of->held) code = move(of->iter, how, &to.of, &error);
  drop(&to.of);
  of->held = false;
  forget_kept(of);
  jlong filled = fill(of->iter, back, place, (size_t)capacity, most, &of->held, &code, &error);
  if (code != ESKER_OK && filled > 0) {
    of->kept_code = code;
    of->kept = error;
    return filled;
  }
  succeeded(env, code, &error);
  return filled;
}

/* Gives the entry again for which there was no room, and those behind it, going as `how` does. */
NATIVE(jlong, cursorRefill)(JNIEnv *env, jclass type, jlong number, jint how, jobject buffer, jint capacity,
                            jint most) {
  cursor *of = HANDLE(cursor, number);
  char *place = (*env)->GetDirectBufferAddress(env, buffer);
  esker_code code = ESKER_OK;
  esker_error *error = NULL;
  of->held = false;
  jlong filled = fill(of->iter, goes_back(how), place, (size_t)capacity, most, &of->held, &code, &error);
  if (code != ESKER_OK && filled > 0) {
    of->kept_code = code;
    of->kept = error;
    return filled;
  }
  succeeded(env, code, &error);
  return filled;
}

/* The first entries of a range from `from` on, with an iterator that lives no longer than this call. */
NATIVE(jlong, keyspaceScan)(JNIEnv *env, jclass type, jlong keyspace, jbyteArray start, jbyteArray end,
                            jint how, jbyteArray from, jobject buffer, jint capacity, jint most) {
  char *place = (*env)->GetDirectBufferAddress(env, buffer);
  RANGE(of);
  SMALL(to);
  esker_iter *iter = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  jlong filled = 0;
  bool held = false;
  if (take_range(env, start, end, &of) && take_small(env, from, &to)) {
    code = esker_iter_new(HANDLE(esker_keyspace, keyspace), NULL, RANGE_OF(of), &iter, &error);
    if (code == ESKER_OK) code = move(iter, how, &to.of, &error);
    if (code == ESKER_OK) {
      filled = fill(iter, goes_back(how), place, (size_t)capacity, most, &held, &code, &error);
    }
  }
  drop_range(&of);
  drop(&to.of);
  esker_iter_free(iter);
  if (code != ESKER_OK && filled > 0) {
    // The next call comes upon it first.
    esker_error_free(error);
    return filled;
  }
  succeeded(env, code, &error);
  return filled;
}
