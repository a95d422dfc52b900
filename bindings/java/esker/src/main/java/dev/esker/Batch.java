package dev.esker;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Objects;

/**
 * Writes that are committed together by {@link Database#write}, over any number of keyspaces of one
 * database. Later operations win over earlier ones. One thread may use it at a time.
 *
 * <pre>{@code
 * try (Batch batch = new Batch()) {
 *     batch.put(users, key, value).delete(log, old);
 *     database.write(batch);
 * }
 * }</pre>
 */
public final class Batch extends ExclusiveHandle {
    /** Makes an empty batch. */
    public Batch() {
        super(made(), Native::batchFree, "batch");
    }

    private static long made() {
        NativeLibrary.load();
        return Native.batchNew();
    }

    /**
     * Adds the insertion of a value under a key. Lengths are checked when the batch is written.
     *
     * @param keyspace where
     * @param key the key
     * @param value the value
     * @return this batch
     */
    public Batch put(Keyspace keyspace, byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        int entered = keyspace.begin();
        try {
            enter();
            try {
                Native.batchPut(pointer(), keyspace.pointer(), key, value);
            } finally {
                exit();
            }
        } finally {
            keyspace.exit(entered);
        }
        return this;
    }

    /**
     * Adds the insertion of what remains in one buffer under what remains in another. If both are direct, the
     * batch takes them from there. The buffers do not change.
     *
     * @param keyspace where
     * @param key the key
     * @param value the value
     * @return this batch
     */
    public Batch put(Keyspace keyspace, ByteBuffer key, ByteBuffer value) {
        if (!key.isDirect() || !value.isDirect()) {
            return put(keyspace, Buffers.bytes(key), Buffers.bytes(value));
        }
        int keyAt = key.position();
        int valueAt = value.position();
        int entered = keyspace.begin();
        try {
            enter();
            try {
                Native.batchPutDirect(
                        pointer(),
                        keyspace.pointer(),
                        key,
                        keyAt,
                        Buffers.from(key, keyAt),
                        value,
                        valueAt,
                        Buffers.from(value, valueAt));
            } finally {
                exit();
            }
        } finally {
            keyspace.exit(entered);
        }
        return this;
    }

    /**
     * Adds the insertion of a value that expires.
     *
     * @param keyspace where
     * @param key the key
     * @param value the value
     * @param ttl after which time, counted from now
     * @return this batch
     */
    public Batch put(Keyspace keyspace, byte[] key, byte[] value, Duration ttl) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        long milliseconds = Times.milliseconds(ttl);
        run(keyspace, pointer -> Native.batchPutTtl(pointer, keyspace.pointer(), key, value, milliseconds));
        return this;
    }

    /**
     * Adds an operand for the keyspace's merge operator; if it has none, writing the batch fails.
     *
     * @param keyspace where
     * @param key the key
     * @param operand the operand
     * @return this batch
     */
    public Batch merge(Keyspace keyspace, byte[] key, byte[] operand) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(operand, "operand");
        run(keyspace, pointer -> Native.batchMerge(pointer, keyspace.pointer(), key, operand));
        return this;
    }

    /**
     * Adds the removal of a key.
     *
     * @param keyspace where
     * @param key the key
     * @return this batch
     */
    public Batch delete(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        run(keyspace, pointer -> Native.batchDelete(pointer, keyspace.pointer(), key));
        return this;
    }

    /**
     * Adds a range delete.
     *
     * @param keyspace where
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @return this batch
     */
    public Batch deleteRange(Keyspace keyspace, byte[] start, byte[] end) {
        run(keyspace, pointer -> Native.batchDeleteRange(pointer, keyspace.pointer(), start, end));
        return this;
    }

    /**
     * Adds a range delete of all keys that begin with a prefix.
     *
     * @param keyspace where
     * @param prefix the prefix
     * @return this batch
     * @throws InvalidArgumentException in a keyspace with a comparator: use a range there
     */
    public Batch deletePrefix(Keyspace keyspace, byte[] prefix) {
        Objects.requireNonNull(prefix, "prefix");
        run(keyspace, pointer -> Native.batchDeletePrefix(pointer, keyspace.pointer(), prefix));
        return this;
    }

    /**
     * The number of operations.
     *
     * @return the number
     */
    public long size() {
        return callLong(Native::batchLength);
    }

    /** Removes all operations and keeps the memory for new ones. */
    public void clear() {
        run(Native::batchClear);
    }

    /** Frees the batch. */
    @Override
    public void close() {
        release();
    }
}
