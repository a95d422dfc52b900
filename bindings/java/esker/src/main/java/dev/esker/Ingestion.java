package dev.esker;

import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.Objects;

/**
 * Sorted entries on their way into a database, of any number of its keyspaces. It is the fastest way to load
 * sorted data: each byte is written once, compressed, and nothing goes into the log. The keys of each keyspace
 * must come in its ascending order; the order among keyspaces does not matter.
 *
 * <p>Nothing is visible before {@link #commit}. Then all entries are, at once, and survive a power cut; they
 * replace what was written before. One thread may use it at a time; several threads can fill one each, and
 * {@link #join} makes one of them.
 *
 * <pre>{@code
 * try (Ingestion load = database.ingestion()) {
 *     for (Row row : sorted) {
 *         load.put(keyspace, row.key(), row.value());
 *     }
 *     load.commit();
 * } // without a commit nothing is left of it
 * }</pre>
 */
public final class Ingestion extends ExclusiveHandle {
    private long added;

    Ingestion(long pointer, Database database) {
        super(pointer, Native::ingestionFree, "ingestion into " + database);
    }

    /**
     * Adds an entry, whose key must be greater than the last one that was added to the same keyspace.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @param value the value
     * @throws InvalidArgumentException {@link ErrorCode#OUT_OF_ORDER} and limits; the ingestion goes on without
     *     the entry
     */
    public void put(Keyspace keyspace, byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        run(keyspace, pointer -> Native.ingestionPut(pointer, keyspace.pointer(), key, value));
    }

    /**
     * Adds several entries, whose keys must ascend, with one call of the engine.
     *
     * @param keyspace the keyspace
     * @param keys the keys
     * @param values a value for each key
     * @return how many were added: all of them
     * @throws InvalidArgumentException as {@link #put(Keyspace, byte[], byte[])}, for the first entry that is
     *     refused, which is the one with the index {@link #added}. Those before it were added, those behind it not
     */
    public long putMany(Keyspace keyspace, byte[][] keys, byte[][] values) {
        if (keys.length != values.length) {
            throw EskerException.make(
                    ErrorCode.INVALID_ARGUMENT,
                    keys.length + " keys and " + values.length + " values: give one for each");
        }
        long[] counted = new long[1];
        run(keyspace, 
                pointer -> {
                    try {
                        Native.ingestionPutMany(pointer, keyspace.pointer(), keys, values, counted);
                    } finally {
                        added = counted[0];
                    }
                });
        return counted[0];
    }

    /**
     * How many entries the last {@link #putMany} added, also if it threw an exception.
     *
     * @return the number
     */
    public long added() {
        check();
        return added;
    }

    /**
     * Adds an entry that expires.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @param value the value
     * @param ttl after which time, counted from now
     */
    public void put(Keyspace keyspace, byte[] key, byte[] value, Duration ttl) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        long milliseconds = Times.milliseconds(ttl);
        run(keyspace, pointer -> Native.ingestionPutTtl(pointer, keyspace.pointer(), key, value, milliseconds));
    }

    /**
     * Adds an entry whose value comes in pieces from a stream, up to its end. It may have up to 1 GiB.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @param stream where the value comes from. It is not closed
     * @return the bytes of the value
     * @throws IOException if the stream throws one; the ingestion goes on without the entry
     */
    public long putFrom(Keyspace keyspace, byte[] key, InputStream stream) throws IOException {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(stream, "stream");
        return callLong(keyspace, pointer -> Native.ingestionPutFrom(pointer, keyspace.pointer(), key, stream));
    }

    /**
     * Adds an operand for the keyspace's merge operator, in the order of keys.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @param operand the operand
     */
    public void merge(Keyspace keyspace, byte[] key, byte[] operand) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(operand, "operand");
        run(keyspace, pointer -> Native.ingestionMerge(pointer, keyspace.pointer(), key, operand));
    }

    /**
     * Adds the removal of a key, in the order of keys.
     *
     * @param keyspace the keyspace
     * @param key the key
     */
    public void delete(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        run(keyspace, pointer -> Native.ingestionDelete(pointer, keyspace.pointer(), key));
    }

    /**
     * Removes all keys of a range that were written before the commit; entries of the ingestion stay. Ranges
     * may come in any order.
     *
     * @param keyspace the keyspace
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     */
    public void deleteRange(Keyspace keyspace, byte[] start, byte[] end) {
        run(keyspace, pointer -> Native.ingestionDeleteRange(pointer, keyspace.pointer(), start, end));
    }

    /**
     * Makes what was added so far durable, but not visible, as {@link #join} and {@link #commit} do. A thread
     * that calls it at its end saves the joining one the time.
     */
    public void sync() {
        run(Native::ingestionSync);
    }

    /**
     * Takes over everything of another ingestion of the same database, so that both take effect together. Where
     * both added to a keyspace, the entries must lie apart.
     *
     * @param other the other one, which is closed, also after an exception
     */
    public void join(Ingestion other) {
        if (other == this) {
            throw EskerException.make(ErrorCode.INVALID_ARGUMENT, "an ingestion cannot join itself");
        }
        run(pointer -> Native.ingestionJoin(pointer, other.surrender()));
    }

    /** Makes all entries durable and visible at once, and ends the ingestion. */
    public void commit() {
        run(Native::ingestionCommit);
    }

    /** Frees the ingestion. Without a commit its files are removed. */
    @Override
    public void close() {
        release();
    }
}
