package dev.esker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;

/**
 * A named, ordered map inside a {@link Database}. It may be used from any thread.
 *
 * <p>A key has at most 65,535 bytes, and may be empty. A value has at most an eighth of the memory option.
 * Ranges go from a start, included, to an end, excluded; null means no bound on that side.
 *
 * <pre>{@code
 * keyspace.put(key, value);
 * byte[] found = keyspace.get(key); // null without a value
 * try (Cursor cursor = keyspace.cursor(from, to)) {
 *     while (cursor.next()) {
 *         use(cursor.key(), cursor.value());
 *     }
 * }
 * }</pre>
 *
 * <p>{@link #map} gives the same as a {@link ConcurrentNavigableMap}.
 */
public final class Keyspace extends SharedHandle {
    private static final Comparator<byte[]> BYTE_ORDER = Arrays::compareUnsigned;

    private final Database database;
    private final String name;

    /** Null for byte order, and for a comparator that only the engine knows. */
    private final OpenComparator comparator;

    Keyspace(long pointer, Database database, String name, OpenComparator comparator) {
        super(pointer, Native::keyspaceFree, "keyspace " + name + " of " + database);
        this.database = database;
        this.name = name;
        this.comparator = comparator;
    }

    /** As {@link #enter}, for calls that compare keys. */
    int begin() {
        if (comparator != null) {
            comparator.check();
        }
        return enter();
    }

    /**
     * The database that it was opened of.
     *
     * @return the database
     */
    public Database database() {
        return database;
    }

    /**
     * The name.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * The order of the keys.
     *
     * @return the comparator, which for byte order is {@link Arrays#compareUnsigned(byte[], byte[])}
     */
    public Comparator<? super byte[]> comparator() {
        return comparator == null ? BYTE_ORDER : comparator.comparator();
    }

    /** Whether keys are in byte order. */
    boolean isBytewise() {
        return comparator == null;
    }

    /**
     * The merge operator.
     *
     * @return its name, or null without one
     */
    public String mergeOperator() {
        byte[] text = call(Native::keyspaceMergeOperator);
        return text == null ? null : new String(text, UTF_8);
    }

    /**
     * The time to live of writes that give none.
     *
     * @return the time; zero: they never expire
     */
    public Duration ttl() {
        return Duration.ofMillis(callLong(Native::keyspaceTtl));
    }

    /**
     * Changes the time to live of later writes that give none.
     *
     * @param ttl the time; zero: they never expire
     */
    public void setTtl(Duration ttl) {
        long milliseconds = Times.milliseconds(ttl);
        run(pointer -> Native.keyspaceSetTtl(pointer, milliseconds));
    }

    // Reads.

    /**
     * Reads the value under a key.
     *
     * @param key the key
     * @return the value, or null if there is none
     */
    public byte[] get(byte[] key) {
        Objects.requireNonNull(key, "key");
        int entered = begin();
        try {
            return Native.keyspaceGet(pointer(), key);
        } finally {
            exit(entered);
        }
    }

    /**
     * Copies the value under a key into a buffer, from its position on, and moves the position behind what was
     * copied. If both buffers are direct, this is the only copy.
     *
     * <pre>{@code
     * int length = keyspace.get(key, buffer.clear());
     * if (length > buffer.capacity()) {
     *     buffer = ByteBuffer.allocateDirect(length); // and again
     * }
     * }</pre>
     *
     * @param key the key: what remains in this buffer, which does not change
     * @param value where the value goes. If it is longer than what remains there, its beginning is copied
     * @return the length of the value, or -1 if there is none
     */
    public int get(ByteBuffer key, ByteBuffer value) {
        if (value.isReadOnly()) {
            throw EskerException.make(ErrorCode.INVALID_ARGUMENT, "the buffer for the value is read-only");
        }
        if (!value.isDirect()) {
            return getIntoArray(Buffers.bytes(key), value);
        }
        int at = value.position();
        int room = Buffers.from(value, at);
        int keyAt = key.position();
        int length;
        int entered = begin();
        try {
            length =
                    key.isDirect()
                            ? Native.keyspaceGetDirect(
                                    pointer(), key, keyAt, Buffers.from(key, keyAt), value, at, room)
                            : Native.keyspaceGetInto(pointer(), Buffers.bytes(key), value, at, room);
        } finally {
            exit(entered);
        }
        if (length > 0) {
            value.position(at + Math.min(length, room));
        }
        return length;
    }

    private int getIntoArray(byte[] key, ByteBuffer value) {
        byte[] found = get(key);
        if (found == null) {
            return -1;
        }
        value.put(found, 0, Math.min(found.length, value.remaining()));
        return found.length;
    }

    /**
     * Reads the value under a key as a read-only buffer. A value of 4,096 bytes or more that lies in a file is
     * not copied: the buffer shows the engine's memory. It shows the value as it was, whatever is written, and
     * also after the database was closed. The memory is given back when the garbage collector finds the buffer
     * and all its views unreachable, so do not keep it for long. While such buffers hold 64 MiB, others are
     * copies in the heap.
     *
     * @param key the key
     * @return the value, from position 0 to its limit; or null if there is none
     */
    public ByteBuffer getBuffer(byte[] key) {
        Objects.requireNonNull(key, "key");
        int entered = begin();
        try {
            return Buffers.of(Native.keyspaceGetValue(pointer(), 0, key));
        } finally {
            exit(entered);
        }
    }

    /**
     * Whether a key has a value.
     *
     * @param key the key
     * @return whether it has
     */
    public boolean contains(byte[] key) {
        Objects.requireNonNull(key, "key");
        int entered = begin();
        try {
            return Native.keyspaceContains(pointer(), key);
        } finally {
            exit(entered);
        }
    }

    /**
     * Reads the values under several keys, all as of one moment.
     *
     * @param keys the keys
     * @return a value, or null where there is none, for each key
     */
    public byte[][] multiGet(byte[][] keys) {
        Objects.requireNonNull(keys, "keys");
        int entered = begin();
        try {
            return Native.keyspaceMultiGet(pointer(), keys);
        } finally {
            exit(entered);
        }
    }

    /**
     * Opens the value under a key as a stream, which can seek. A value of {@link #putFrom} is read in pieces of
     * 256 KiB.
     *
     * @param key the key
     * @return the reader, or null if there is no value
     */
    public ValueReader openValue(byte[] key) {
        Objects.requireNonNull(key, "key");
        int entered = begin();
        try {
            return ValueReader.of(Native.readerNew(pointer(), 0, key), this);
        } finally {
            exit(entered);
        }
    }

    /**
     * Makes a cursor over all entries, as they are now.
     *
     * @return the cursor
     */
    public Cursor cursor() {
        return cursor(null, null);
    }

    /**
     * Makes a cursor over a range, as it is now.
     *
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @return the cursor
     */
    public Cursor cursor(byte[] start, byte[] end) {
        int entered = begin();
        try {
            return new Cursor(Native.cursorNew(pointer(), 0, start, end), this);
        } finally {
            exit(entered);
        }
    }

    /**
     * Makes a cursor over the keys that begin with a prefix, as they are now.
     *
     * @param prefix the prefix
     * @return the cursor
     * @throws InvalidArgumentException in a keyspace with a comparator: use a range there
     */
    public Cursor cursorOfPrefix(byte[] prefix) {
        Objects.requireNonNull(prefix, "prefix");
        int entered = begin();
        try {
            return new Cursor(Native.cursorNewPrefix(pointer(), 0, prefix), this);
        } finally {
            exit(entered);
        }
    }

    /**
     * The keyspace as a map in the order of its keys. Closing the keyspace ends its use; the map itself needs
     * no closing, and neither do its iterators.
     *
     * @return the map
     */
    public ConcurrentNavigableMap<byte[], byte[]> map() {
        return new KeyspaceMap(this);
    }

    // Writes.

    /**
     * Inserts a value under a key and replaces the old one, with the durability of the database.
     *
     * @param key the key
     * @param value the value
     */
    public void put(byte[] key, byte[] value) {
        put(key, value, Durability.DEFAULT);
    }

    /**
     * Inserts a value under a key and replaces the old one.
     *
     * @param key the key
     * @param value the value
     * @param durability what it survives when the call returns
     */
    public void put(byte[] key, byte[] value, Durability durability) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        int entered = begin();
        try {
            Native.keyspacePut(pointer(), key, value, durability.number);
        } finally {
            exit(entered);
        }
    }

    /**
     * Inserts what remains in one buffer under what remains in another, with the durability of the database.
     * If both are direct, the engine takes them from there. The buffers do not change.
     *
     * @param key the key
     * @param value the value
     */
    public void put(ByteBuffer key, ByteBuffer value) {
        put(key, value, Durability.DEFAULT);
    }

    /**
     * Inserts what remains in one buffer under what remains in another. If both are direct, the engine takes
     * them from there. The buffers do not change.
     *
     * @param key the key
     * @param value the value
     * @param durability what it survives when the call returns
     */
    public void put(ByteBuffer key, ByteBuffer value, Durability durability) {
        if (!key.isDirect() || !value.isDirect()) {
            put(Buffers.bytes(key), Buffers.bytes(value), durability);
            return;
        }
        int keyAt = key.position();
        int valueAt = value.position();
        int entered = begin();
        try {
            Native.keyspacePutDirect(
                    pointer(),
                    key,
                    keyAt,
                    Buffers.from(key, keyAt),
                    value,
                    valueAt,
                    Buffers.from(value, valueAt),
                    durability.number);
        } finally {
            exit(entered);
        }
    }

    /**
     * Inserts a value that expires, with the durability of the database.
     *
     * @param key the key
     * @param value the value
     * @param ttl after which time it expires; zero: at once
     */
    public void put(byte[] key, byte[] value, Duration ttl) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        long milliseconds = Times.milliseconds(ttl);
        int entered = begin();
        try {
            Native.keyspacePutTtl(pointer(), key, value, milliseconds);
        } finally {
            exit(entered);
        }
    }

    /**
     * Inserts a value with the durability of the database, but never waits because writers are slowed, for
     * memory, or for space on a full device.
     *
     * @param key the key
     * @param value the value
     * @throws WouldBlockException if it would have to wait; nothing is written
     */
    public void tryPut(byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        int entered = begin();
        try {
            Native.keyspaceTryPut(pointer(), key, value);
        } finally {
            exit(entered);
        }
    }

    /**
     * Inserts a value that comes in pieces from a stream, up to its end. It may have up to 1 GiB, whatever the
     * memory option. It is durable when the call returns. Use this for what is large: a value of more than one
     * piece of 256 KiB costs three syncs.
     *
     * @param key the key
     * @param stream where the value comes from. It is not closed. An exception that it throws is thrown by this
     *     call, also if it is an {@link IOException}, and nothing is written
     * @return the bytes of the value
     * @throws IOException if the stream throws one
     */
    public long putFrom(byte[] key, InputStream stream) throws IOException {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(stream, "stream");
        int entered = begin();
        try {
            return Native.keyspacePutFrom(pointer(), key, stream);
        } finally {
            exit(entered);
        }
    }

    /**
     * Writes an operand, which the merge operator applies when the key is read or compacted: this changes a
     * value without reading it.
     *
     * @param key the key
     * @param operand the operand
     * @throws InvalidArgumentException if the keyspace has no merge operator
     */
    public void merge(byte[] key, byte[] operand) {
        merge(key, operand, Durability.DEFAULT);
    }

    /**
     * Writes an operand as {@link #merge(byte[], byte[])} does.
     *
     * @param key the key
     * @param operand the operand
     * @param durability what it survives when the call returns
     */
    public void merge(byte[] key, byte[] operand, Durability durability) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(operand, "operand");
        int entered = begin();
        try {
            Native.keyspaceMerge(pointer(), key, operand, durability.number);
        } finally {
            exit(entered);
        }
    }

    /**
     * Removes a key, if it exists, with the durability of the database.
     *
     * @param key the key
     */
    public void delete(byte[] key) {
        delete(key, Durability.DEFAULT);
    }

    /**
     * Removes a key, if it exists.
     *
     * @param key the key
     * @param durability what that survives when the call returns
     */
    public void delete(byte[] key, Durability durability) {
        delete(key, durability.number, true);
    }

    /**
     * Removes a key, if it exists, without a wait: as {@link #tryPut}.
     *
     * @param key the key
     * @throws WouldBlockException if it would have to wait; nothing is written
     */
    public void tryDelete(byte[] key) {
        delete(key, Durability.DEFAULT.number, false);
    }

    private void delete(byte[] key, int durability, boolean waits) {
        Objects.requireNonNull(key, "key");
        int entered = begin();
        try {
            Native.keyspaceDelete(pointer(), key, durability, waits);
        } finally {
            exit(entered);
        }
    }

    /**
     * Writes a value under a key if its present one is the expected, in one atomic step.
     *
     * @param key the key
     * @param expected the expected value, or null for none
     * @param value the new value, or null to remove the key
     * @return whether it was written
     */
    public boolean compareAndSet(byte[] key, byte[] expected, byte[] value) {
        Objects.requireNonNull(key, "key");
        int entered = begin();
        try {
            return Native.keyspaceCompareAndSet(pointer(), key, expected, value);
        } finally {
            exit(entered);
        }
    }

    /**
     * Inserts a value if the key has none, in one atomic step.
     *
     * @param key the key
     * @param value the value
     * @return whether it was inserted
     */
    public boolean insertIfAbsent(byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        int entered = begin();
        try {
            return Native.keyspaceInsertIfAbsent(pointer(), key, value);
        } finally {
            exit(entered);
        }
    }

    /**
     * Replaces the value under a key by the result of a function, atomically.
     *
     * <pre>{@code
     * keyspace.update(key, old -> old == null ? one : increment(old));
     * }</pre>
     *
     * @param key the key
     * @param change gets the present value, or null, and gives the new one, or null to remove the key. It is
     *     called again if another write comes between. If it throws an exception, nothing is written
     * @return the new value, or null if the key was removed
     */
    public byte[] update(byte[] key, UnaryOperator<byte[]> change) {
        Objects.requireNonNull(change, "change");
        while (true) {
            byte[] old = get(key);
            // The function may change what it gets.
            byte[] changed = change.apply(old == null ? null : old.clone());
            if (compareAndSet(key, old, changed)) {
                return changed;
            }
        }
    }

    // Ranges.

    /**
     * Removes all keys of a range, with one range delete and the durability of the database. The cost does not
     * depend on what the range holds.
     *
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     */
    public void deleteRange(byte[] start, byte[] end) {
        deleteRange(start, end, Durability.DEFAULT);
    }

    /**
     * Removes all keys of a range, with one range delete.
     *
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @param durability what that survives when the call returns
     */
    public void deleteRange(byte[] start, byte[] end, Durability durability) {
        int entered = begin();
        try {
            Native.keyspaceDeleteRange(pointer(), start, end, durability.number);
        } finally {
            exit(entered);
        }
    }

    /**
     * Removes all keys that begin with a prefix, with one range delete and the durability of the database.
     *
     * @param prefix the prefix
     * @throws InvalidArgumentException in a keyspace with a comparator: use a range there
     */
    public void deletePrefix(byte[] prefix) {
        deletePrefix(prefix, Durability.DEFAULT);
    }

    /**
     * Removes all keys that begin with a prefix, with one range delete.
     *
     * @param prefix the prefix
     * @param durability what that survives when the call returns
     * @throws InvalidArgumentException in a keyspace with a comparator: use a range there
     */
    public void deletePrefix(byte[] prefix, Durability durability) {
        Objects.requireNonNull(prefix, "prefix");
        int entered = begin();
        try {
            Native.keyspaceDeletePrefix(pointer(), prefix, durability.number);
        } finally {
            exit(entered);
        }
    }

    /** Removes all entries. The cost does not depend on how many there are. The keyspace stays. */
    public void clear() {
        clear(Durability.DEFAULT);
    }

    /**
     * Removes all entries. The cost does not depend on how many there are. The keyspace stays.
     *
     * @param durability what that survives when the call returns
     */
    public void clear(Durability durability) {
        int entered = begin();
        try {
            Native.keyspaceClear(pointer(), durability.number);
        } finally {
            exit(entered);
        }
    }

    /**
     * Counts all entries, as they are now.
     *
     * @return the number
     */
    public long count() {
        return count(null, null);
    }

    /**
     * Counts the entries of a range, as they are now. What a run segment alone holds of the range is known
     * without reading it; entries elsewhere are read.
     *
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @return the number
     */
    public long count(byte[] start, byte[] end) {
        int entered = begin();
        try {
            return Native.keyspaceCount(pointer(), start, end);
        } finally {
            exit(entered);
        }
    }

    /**
     * An estimate of {@link Keyspace#approximateCount}.
     *
     * @param entries the middle of what is possible
     * @param deviation by how many it may be wrong, up or down; 0: it is exact
     */
    public record Estimate(long entries, long deviation) {}

    /**
     * Estimates the number of entries of a range, without reading any.
     *
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @return the estimate
     */
    public Estimate approximateCount(byte[] start, byte[] end) {
        long[] counted = new long[2];
        int entered = begin();
        try {
            Native.keyspaceApproximateCount(pointer(), start, end, counted);
        } finally {
            exit(entered);
        }
        return new Estimate(counted[0], counted[1]);
    }

    /**
     * Estimates how many bytes the flushed entries of a range take on the device.
     *
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @return the bytes
     */
    public long approximateSize(byte[] start, byte[] end) {
        int entered = begin();
        try {
            return Native.keyspaceApproximateSize(pointer(), start, end);
        } finally {
            exit(entered);
        }
    }

    /**
     * Lists keys that cut a range into parts of about equal bytes, for scans by several threads. It reads
     * nothing and knows only what was flushed, in pieces of about 1 MiB: a small range gives fewer keys.
     *
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @param parts how many parts are wanted
     * @return at most {@code parts - 1} keys, in order, strictly within the range
     */
    public List<byte[]> splitPoints(byte[] start, byte[] end, int parts) {
        if (parts < 1) {
            throw EskerException.make(ErrorCode.INVALID_ARGUMENT, parts + " parts: give 1 or more");
        }
        int entered = begin();
        try {
            return List.of(Native.keyspaceSplitPoints(pointer(), start, end, parts));
        } finally {
            exit(entered);
        }
    }

    /** Flushes, and compacts what a compaction can make smaller. */
    public void compact() {
        compact(null, null);
    }

    /**
     * Flushes, and compacts what a compaction can make smaller, in a range.
     *
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     */
    public void compact(byte[] start, byte[] end) {
        compacted(start, end, null);
    }

    /**
     * As {@link #compact(byte[], byte[])}, until it is to end.
     *
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @param ends asked about twenty times a second, on this thread; true ends the call. What is compacted
     *     stays so
     * @throws EskerException {@link ErrorCode#INTERRUPTED} if it was ended
     */
    public void compact(byte[] start, byte[] end, BooleanSupplier ends) {
        compacted(start, end, Objects.requireNonNull(ends, "ends"));
    }

    private void compacted(byte[] start, byte[] end, BooleanSupplier ends) {
        int entered = begin();
        try {
            Native.keyspaceCompact(pointer(), start, end, ends);
        } finally {
            exit(entered);
        }
    }

    // Looks inside.

    /**
     * The run segments of the keyspace, from old to new and in the order of keys.
     *
     * @return an array of JSON
     */
    public String segments() {
        return new String(call(Native::keyspaceSegments), UTF_8);
    }

    /**
     * Reads a key as {@link #get(byte[])} does, and says what the read did: the sources that it searched, how
     * the search of each ended, the blocks and bytes that it read, and how many microseconds each step took.
     *
     * @param key the key
     * @return an object of JSON, without keys and values
     */
    public String explainGet(byte[] key) {
        Objects.requireNonNull(key, "key");
        int entered = begin();
        try {
            return new String(Native.keyspaceExplainGet(pointer(), 0, key), UTF_8);
        } finally {
            exit(entered);
        }
    }

    /**
     * Walks over a range, and says what the scan did.
     *
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @param limit how many entries it walks over at most
     * @return an object of JSON, without keys and values
     */
    public String explainScan(byte[] start, byte[] end, long limit) {
        if (limit < 0) {
            throw EskerException.make(ErrorCode.INVALID_ARGUMENT, "the limit " + limit + " is negative");
        }
        int entered = begin();
        try {
            return new String(Native.keyspaceExplainScan(pointer(), start, end, limit), UTF_8);
        } finally {
            exit(entered);
        }
    }

    /**
     * Inserts a value with the durability of the database, and says how long each phase of the write took and
     * what it waited for.
     *
     * @param key the key
     * @param value the value
     * @return an object of JSON, without keys and values
     */
    public String explainPut(byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        int entered = begin();
        try {
            return new String(Native.keyspaceExplainPut(pointer(), key, value), UTF_8);
        } finally {
            exit(entered);
        }
    }

    /** Closes the handle. The keyspace stays in the database, and cursors on it stay open. */
    @Override
    public void close() {
        release();
    }

    @Override
    public String toString() {
        return "Keyspace[" + name + " of " + database + "]";
    }
}
