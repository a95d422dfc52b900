package dev.esker;

import java.time.Duration;
import java.util.Objects;

/**
 * Reads and writes that happen as if at one moment, over any number of keyspaces of one database. One thread
 * may use it at a time.
 *
 * <p>It reads the database as it was when it began, together with its own writes, which nobody else sees
 * before the commit. The commit succeeds only if nothing that the transaction read was written meanwhile;
 * otherwise it throws {@link ConflictException}. {@link Database#transact} begins, commits and repeats by
 * itself. Nobody waits for a transaction unless it was begun with {@link TransactionOptions#locking}.
 *
 * <pre>{@code
 * try (Transaction transaction = database.begin()) {
 *     byte[] ann = transaction.get(accounts, key);
 *     transaction.put(accounts, key, lessFive(ann));
 *     transaction.commit();
 * } // rolled back if it was not committed
 * }</pre>
 */
public final class Transaction extends ExclusiveHandle {
    // How a get marks its key: the numbers are those of transaction.c.
    private static final int PLAIN = 0;
    private static final int FOR_UPDATE = 1;
    private static final int FOR_SHARE = 2;

    Transaction(long pointer, Database database) {
        super(pointer, Native::transactionFree, "transaction of " + database);
    }

    private byte[] get(Keyspace keyspace, byte[] key, int how) {
        Objects.requireNonNull(key, "key");
        return call(keyspace, pointer -> Native.transactionGet(pointer, keyspace.pointer(), key, how));
    }

    /**
     * The value under a key, as the transaction sees it.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @return the value, or null if there is none
     */
    public byte[] get(Keyspace keyspace, byte[] key) {
        return get(keyspace, key, PLAIN);
    }

    /**
     * As {@link #get}, for a value that the transaction will change: a locking transaction takes the exclusive
     * lock at once; in an optimistic one the key counts as read.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @return the value, or null if there is none
     */
    public byte[] getForUpdate(Keyspace keyspace, byte[] key) {
        return get(keyspace, key, FOR_UPDATE);
    }

    /**
     * As {@link #getForUpdate}, for a value that must not change until the commit: the lock is shared among
     * readers and keeps writers out.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @return the value, or null if there is none
     */
    public byte[] getForShare(Keyspace keyspace, byte[] key) {
        return get(keyspace, key, FOR_SHARE);
    }

    /**
     * Whether a key has a value, as the transaction sees it.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @return whether it has
     */
    public boolean contains(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        return call(keyspace, pointer -> Native.transactionContains(pointer, keyspace.pointer(), key));
    }

    /**
     * The values under several keys, as the transaction sees them.
     *
     * @param keyspace the keyspace
     * @param keys the keys
     * @return a value, or null where there is none, for each key
     */
    public byte[][] multiGet(Keyspace keyspace, byte[][] keys) {
        Objects.requireNonNull(keys, "keys");
        return call(keyspace, pointer -> Native.transactionMultiGet(pointer, keyspace.pointer(), keys));
    }

    /**
     * Makes a cursor over a range. It shows the transaction's writes so far; later ones do not change it.
     *
     * @param keyspace the keyspace
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @return the cursor
     */
    public TransactionCursor cursor(Keyspace keyspace, byte[] start, byte[] end) {
        int entered = keyspace.begin();
        try {
            long made = callLong(pointer -> Native.transactionIterNew(pointer, keyspace.pointer(), start, end));
            return new TransactionCursor(made, keyspace);
        } finally {
            keyspace.exit(entered);
        }
    }

    /**
     * Makes a cursor over the keys that begin with a prefix. Otherwise as {@link #cursor}.
     *
     * @param keyspace the keyspace
     * @param prefix the prefix
     * @return the cursor
     * @throws InvalidArgumentException in a keyspace with a comparator: use a range there
     */
    public TransactionCursor cursorOfPrefix(Keyspace keyspace, byte[] prefix) {
        Objects.requireNonNull(prefix, "prefix");
        int entered = keyspace.begin();
        try {
            long made = callLong(pointer -> Native.transactionIterNewPrefix(pointer, keyspace.pointer(), prefix));
            return new TransactionCursor(made, keyspace);
        } finally {
            keyspace.exit(entered);
        }
    }

    /**
     * Inserts a value under a key, for the commit.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @param value the value
     */
    public void put(Keyspace keyspace, byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        run(keyspace, pointer -> Native.transactionPut(pointer, keyspace.pointer(), key, value));
    }

    /**
     * Inserts a value that expires. The transaction itself always sees it.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @param value the value
     * @param ttl how long after the commit; zero: at once
     */
    public void put(Keyspace keyspace, byte[] key, byte[] value, Duration ttl) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        long milliseconds = Times.milliseconds(ttl);
        run(keyspace, pointer -> Native.transactionPutTtl(pointer, keyspace.pointer(), key, value, milliseconds));
    }

    /**
     * Writes an operand for the keyspace's merge operator, for the commit. It conflicts with nobody, unless the
     * transaction also reads the key.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @param operand the operand
     */
    public void merge(Keyspace keyspace, byte[] key, byte[] operand) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(operand, "operand");
        run(keyspace, pointer -> Native.transactionMerge(pointer, keyspace.pointer(), key, operand));
    }

    /**
     * Removes a key, for the commit.
     *
     * @param keyspace the keyspace
     * @param key the key
     */
    public void delete(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        run(keyspace, pointer -> Native.transactionDelete(pointer, keyspace.pointer(), key));
    }

    /**
     * Removes all keys of a range that exist when the transaction commits.
     *
     * @param keyspace the keyspace
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     */
    public void deleteRange(Keyspace keyspace, byte[] start, byte[] end) {
        run(keyspace, pointer -> Native.transactionDeleteRange(pointer, keyspace.pointer(), start, end));
    }

    /**
     * Sets a savepoint, to which {@link #rollbackTo} can roll back.
     *
     * @return its number
     */
    public long savepoint() {
        return callLong(Native::transactionSavepoint);
    }

    /**
     * Undoes every write since a savepoint, which may be used again. Keys read since still count as read.
     *
     * @param savepoint what {@link #savepoint} returned
     */
    public void rollbackTo(long savepoint) {
        run(pointer -> Native.transactionRollbackTo(pointer, savepoint));
    }

    /**
     * Commits: all writes happen at one moment, or, after an exception, none of them. Either way the transaction
     * has ended.
     *
     * @return the position in the log after the writes, for {@link Database#waitDurable}; 0 if there are none
     * @throws ConflictException if something that was read has changed: begin a new one
     */
    public long commit() {
        return callLong(Native::transactionCommit);
    }

    /** Rolls back all writes. The transaction has ended. */
    public void rollback() {
        run(Native::transactionRollback);
    }

    /** Rolls back if the transaction was not committed. Its cursors stay open. */
    @Override
    public void close() {
        release();
    }
}
