/* Transactions, and their iterators. */

#include "glue.h"

NATIVE(jlong, transactionBegin)(JNIEnv *env, jclass type, jlong db, jint durability, jlong lock_timeout) {
  esker_txn *txn = NULL;
  esker_error *error = NULL;
  esker_code code =
      lock_timeout < 0
          ? esker_txn_begin(HANDLE(esker_db, db), durability, &txn, &error)
          : esker_txn_begin_locking(HANDLE(esker_db, db), durability, (uint64_t)lock_timeout, &txn, &error);
  succeeded(env, code, &error);
  return NUMBER(txn);
}

NATIVE(void, transactionFree)(JNIEnv *env, jclass type, jlong txn) { esker_txn_free(HANDLE(esker_txn, txn)); }

NATIVE(jlong, transactionCommit)(JNIEnv *env, jclass type, jlong txn) {
  uint64_t position = 0;
  esker_error *error = NULL;
  succeeded(env, esker_txn_commit(HANDLE(esker_txn, txn), &position, &error), &error);
  return (jlong)position;
}

NATIVE(void, transactionRollback)(JNIEnv *env, jclass type, jlong txn) {
  esker_error *error = NULL;
  succeeded(env, esker_txn_rollback(HANDLE(esker_txn, txn), &error), &error);
}

NATIVE(jlong, transactionSavepoint)(JNIEnv *env, jclass type, jlong txn) {
  uint64_t savepoint = 0;
  esker_error *error = NULL;
  succeeded(env, esker_txn_savepoint(HANDLE(esker_txn, txn), &savepoint, &error), &error);
  return (jlong)savepoint;
}

NATIVE(void, transactionRollbackTo)(JNIEnv *env, jclass type, jlong txn, jlong savepoint) {
  esker_error *error = NULL;
  succeeded(env, esker_txn_rollback_to(HANDLE(esker_txn, txn), (uint64_t)savepoint, &error), &error);
}

/* How a get of a transaction marks its key: the numbers are those of Transaction.java. */
enum { PLAIN = 0, FOR_UPDATE = 1, FOR_SHARE = 2 };

NATIVE(jbyteArray, transactionGet)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray key, jint how) {
  SMALL(of);
  esker_value *value = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  bool taken = take_small(env, key, &of);
  if (taken) {
    esker_code (*call)(const esker_txn *, const esker_keyspace *, const void *, size_t, esker_value **,
                       esker_error **) = how == FOR_UPDATE  ? esker_txn_get_for_update
                                         : how == FOR_SHARE ? esker_txn_get_for_share
                                                            : esker_txn_get;
    code = call(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len, &value, &error);
  }
  drop(&of.of);
  if (!taken || !succeeded(env, code, &error)) return NULL;
  return give_value(env, value);
}

NATIVE(jboolean, transactionContains)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray key) {
  SMALL(of);
  bool found = false;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of)) {
    code = esker_txn_contains(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len,
                              &found, &error);
  }
  drop(&of.of);
  succeeded(env, code, &error);
  return found;
}

NATIVE(jobjectArray, transactionMultiGet)(JNIEnv *env, jclass type, jlong txn, jlong keyspace,
                                          jobjectArray keys) {
  many of;
  esker_value **values = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  bool taken = take_many(env, keys, &of);
  if (taken) {
    values = calloc(of.count + 1, sizeof *values);
    taken = values != NULL;
    if (!taken) throw_no_memory(env);
  }
  if (taken) {
    code = esker_txn_multi_get(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), of.data, of.lens,
                               of.count, values, &error);
    taken = succeeded(env, code, &error);
  }
  jobjectArray result = taken ? give_values(env, values, of.count) : NULL;
  drop_many(&of);
  free(values);
  return result;
}

NATIVE(void, transactionPut)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray key,
                             jbyteArray value) {
  SMALL(of);
  LARGE(new);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of) && take_large(env, value, &new)) {
    code = esker_txn_put(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len,
                         new.of.data, new.of.len, &error);
  }
  drop(&of.of);
  drop(&new.of);
  succeeded(env, code, &error);
}

NATIVE(void, transactionPutTtl)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray key,
                                jbyteArray value, jlong milliseconds) {
  SMALL(of);
  LARGE(new);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of) && take_large(env, value, &new)) {
    code = esker_txn_put_ttl(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len,
                             new.of.data, new.of.len, (uint64_t)milliseconds, &error);
  }
  drop(&of.of);
  drop(&new.of);
  succeeded(env, code, &error);
}

NATIVE(void, transactionMerge)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray key,
                               jbyteArray operand) {
  SMALL(of);
  LARGE(new);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of) && take_large(env, operand, &new)) {
    code = esker_txn_merge(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len,
                           new.of.data, new.of.len, &error);
  }
  drop(&of.of);
  drop(&new.of);
  succeeded(env, code, &error);
}

NATIVE(void, transactionDelete)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray key) {
  SMALL(of);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of)) {
    code = esker_txn_delete(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), of.of.data, of.of.len,
                            &error);
  }
  drop(&of.of);
  succeeded(env, code, &error);
}

NATIVE(void, transactionDeleteRange)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray start,
                                     jbyteArray end) {
  RANGE(of);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_range(env, start, end, &of)) {
    code = esker_txn_delete_range(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), RANGE_OF(of),
                                  &error);
  }
  drop_range(&of);
  succeeded(env, code, &error);
}

NATIVE(jlong, transactionIterNew)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray start,
                                  jbyteArray end) {
  RANGE(of);
  esker_txn_iter *iter = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_range(env, start, end, &of)) {
    code = esker_txn_iter_new(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), RANGE_OF(of), &iter,
                              &error);
  }
  drop_range(&of);
  succeeded(env, code, &error);
  return NUMBER(iter);
}

NATIVE(jlong, transactionIterNewPrefix)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray prefix) {
  SMALL(of);
  esker_txn_iter *iter = NULL;
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, prefix, &of)) {
    code = esker_txn_iter_new_prefix(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), of.of.data,
                                     of.of.len, &iter, &error);
  }
  drop(&of.of);
  succeeded(env, code, &error);
  return NUMBER(iter);
}

NATIVE(void, transactionIterFree)(JNIEnv *env, jclass type, jlong iter) {
  esker_txn_iter_free(HANDLE(esker_txn_iter, iter));
}

NATIVE(void, transactionIterSeek)(JNIEnv *env, jclass type, jlong iter, jbyteArray key) {
  SMALL(of);
  esker_error *error = NULL;
  esker_code code = ESKER_OK;
  if (take_small(env, key, &of)) {
    code = esker_txn_iter_seek(HANDLE(esker_txn_iter, iter), of.of.data, of.of.len, &error);
  }
  drop(&of.of);
  succeeded(env, code, &error);
}

/* The key and the value, or NULL at the end. One at a time: what was walked counts as read, so nothing
 * is fetched that the program may not ask for. */
NATIVE(jobjectArray, transactionIterTake)(JNIEnv *env, jclass type, jlong number, jboolean back) {
  esker_txn_iter *iter = HANDLE(esker_txn_iter, number);
  bool found = false;
  esker_error *error = NULL;
  esker_code code = (back ? esker_txn_iter_next_back : esker_txn_iter_next)(iter, &found, &error);
  if (!succeeded(env, code, &error) || !found) return NULL;
  size_t key_len = 0, value_len = 0;
  const char *key = esker_txn_iter_key(iter, &key_len);
  const char *value = esker_txn_iter_value(iter, &value_len);
  jobjectArray entry = (*env)->NewObjectArray(env, 2, java.bytes_class, NULL);
  jbyteArray first = entry == NULL ? NULL : give(env, key, key_len);
  jbyteArray second = first == NULL ? NULL : give(env, value, value_len);
  if (second == NULL) return NULL;
  (*env)->SetObjectArrayElement(env, entry, 0, first);
  (*env)->SetObjectArrayElement(env, entry, 1, second);
  return entry;
}
