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
  bool found = false;
  WITH_KEY(key,
           esker_txn_contains(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), KEY, &found, &error));
  return found;
}

NATIVE(jobjectArray, transactionMultiGet)(JNIEnv *env, jclass type, jlong txn, jlong keyspace,
                                          jobjectArray keys) {
  asked of;
  esker_error *error = NULL;
  bool taken = take_asked(env, keys, &of);
  if (taken) {
    esker_code code =
        esker_txn_multi_get(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace),
                            of.keys.data, of.keys.lens, of.keys.count, of.values, &error);
    taken = succeeded(env, code, &error);
  }
  return give_asked(env, taken, &of);
}

NATIVE(void, transactionPut)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray key,
                             jbyteArray value) {
  WITH_PAIR(key, value, esker_txn_put(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), PAIR, &error));
}

NATIVE(void, transactionPutTtl)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray key,
                                jbyteArray value, jlong milliseconds) {
  WITH_PAIR(key, value,
            esker_txn_put_ttl(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), PAIR,
            (uint64_t)milliseconds, &error));
}

NATIVE(void, transactionMerge)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray key,
                               jbyteArray operand) {
  WITH_PAIR(key, operand,
            esker_txn_merge(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), PAIR, &error));
}

NATIVE(void, transactionDelete)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray key) {
  WITH_KEY(key, esker_txn_delete(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), KEY, &error));
}

NATIVE(void, transactionDeleteRange)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray start,
                                     jbyteArray end) {
  WITH_RANGE(start, end,
             esker_txn_delete_range(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), ENDS, &error));
}

NATIVE(jlong, transactionIterNew)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray start,
                                  jbyteArray end) {
  esker_txn_iter *iter = NULL;
  WITH_RANGE(start, end,
             esker_txn_iter_new(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), ENDS, &iter, &error));
  return NUMBER(iter);
}

NATIVE(jlong, transactionIterNewPrefix)(JNIEnv *env, jclass type, jlong txn, jlong keyspace, jbyteArray prefix) {
  esker_txn_iter *iter = NULL;
  WITH_KEY(prefix,
           esker_txn_iter_new_prefix(HANDLE(esker_txn, txn), HANDLE(esker_keyspace, keyspace), KEY, &iter,
           &error));
  return NUMBER(iter);
}

NATIVE(void, transactionIterFree)(JNIEnv *env, jclass type, jlong iter) {
  esker_txn_iter_free(HANDLE(esker_txn_iter, iter));
}

NATIVE(void, transactionIterSeek)(JNIEnv *env, jclass type, jlong iter, jbyteArray key) {
  WITH_KEY(key, esker_txn_iter_seek(HANDLE(esker_txn_iter, iter), KEY, &error));
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
