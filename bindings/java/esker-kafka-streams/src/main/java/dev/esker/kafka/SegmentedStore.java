package dev.esker.kafka;

import dev.esker.Batch;
import dev.esker.Cursor;
import dev.esker.EskerException;
import dev.esker.Keyspace;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Entries with times, which are kept for a while. Time is cut into segments of equal length. A key of the
 * keyspace begins with the number of its segment, so that all entries of one go with a single delete of a
 * prefix. Behind the number comes the key as the changelog has it: the record's key and a suffix of times.
 *
 * <p>What is visible, and in which order, is as in RocksDB's segmented stores: by segment, and in a segment by
 * the key. As there, a store that is closed has no entries to read, and its iterators end.
 */
abstract class SegmentedStore extends EskerStore {
    private static final Logger LOG = LoggerFactory.getLogger(SegmentedStore.class);

    private final long retention;
    private final long interval;

    /** How long the suffix of times is. */
    private final int suffix;

    /** How many bytes of a key of the keyspace come before the key as the changelog has it. */
    private final int prefix;

    /** How many removed entries may wait for the next write. */
    private static final int MOST_REMOVED = 1000;

    /** The keys of entries that were removed, and are deleted with the next write; guarded by the position. */
    private final List<byte[]> removed = new ArrayList<>();

    /** The thread that removed them, or null if there are none. */
    private volatile Thread remover;

    /** The segments that have entries. */
    private final NavigableSet<Long> segments = new ConcurrentSkipListSet<>();

    /** The latest time of an entry that was seen since the store was opened. */
    private volatile long streamTime = ConsumerRecord.NO_TIMESTAMP;

    private Sensor dropped;

    private static final String SEGMENTS = ", segments of ";

    private final Map<Conversion.Format, String> kinds;
    private final Conversion.Format format;

    /**
     * Makes a store.
     *
     * @param kinds the names of the kinds of such stores, by the format of values
     * @param format the format of this one
     */
    SegmentedStore(
            String name,
            Map<Conversion.Format, String> kinds,
            Conversion.Format format,
            long retention,
            long interval,
            int suffix,
            int prefix) {
        super(name, kinds.get(format) + SEGMENTS + interval + " ms");
        this.kinds = kinds;
        this.format = format;
        this.retention = retention;
        this.interval = interval;
        this.suffix = suffix;
        this.prefix = prefix;
    }

    /** The time of a key that decides on its segment. */
    abstract long timeOf(byte[] key);

    /** Whether the times of a key are in a range. */
    abstract boolean isWithin(byte[] key, long from, long to);

    /** Adds what a store keeps beside an entry to a batch, if anything. */
    void index(Batch batch, Keyspace keyspace, long segment, byte[] key, boolean deletes) {}

    /** From other formats with any segments: each entry goes to its segment. */
    @Override
    final Conversion conversion(String was) {
        for (Map.Entry<Conversion.Format, String> kind : kinds.entrySet()) {
            byte[] front = format.prefixFrom(kind.getKey());
            if (front != null && was.startsWith(kind.getValue() + SEGMENTS)) {
                return (batch, to, whole, value) -> {
                    if (isEntry(whole)) {
                        byte[] key = Arrays.copyOfRange(whole, prefix, whole.length);
                        add(batch, to, segmentOf(timeOf(key)), key, Conversion.join(front, value));
                    }
                };
            }
        }
        return null;
    }

    /** Whether a key of the keyspace is that of an entry, and not one beside. */
    boolean isEntry(byte[] whole) {
        return true;
    }

    /** Whether a store has entries beside, for {@link #index}. */
    boolean isIndexed() {
        return false;
    }

    @Override
    final boolean opensAgain() {
        return true;
    }

    @Override
    void opened(StateStoreContext context) {
        dropped = Internals.droppedRecords(context);
        segments.clear();
        removed.clear();
        remover = null;
        streamTime = ConsumerRecord.NO_TIMESTAMP;
        try (Cursor cursor = keyspace().cursor()) {
            boolean found = cursor.first();
            while (found) {
                long segment = cursor.keyBuffer().getLong(0) ^ Long.MIN_VALUE;
                segments.add(segment);
                found = cursor.seek(start(segment + 1));
            }
        }
    }

    private byte[] start(long segment) {
        return ByteBuffer.allocate(Long.BYTES).putLong(segment ^ Long.MIN_VALUE).array();
    }

    final long segmentOf(long time) {
        return time / interval;
    }

    private long firstLive() {
        return segmentOf(streamTime - retention);
    }

    /** The key of the keyspace for a key of a segment. */
    final byte[] inSegment(long segment, byte[] key) {
        ByteBuffer whole = ByteBuffer.allocate(prefix + key.length);
        whole.putLong(segment ^ Long.MIN_VALUE);
        whole.put(prefix, key);
        return whole.array();
    }

    private void see(long time) {
        if (time > streamTime) {
            streamTime = time;
        }
    }

    /** Sets or deletes an entry, unless its segment is too old. */
    final void putEntry(byte[] key, byte[] value) {
        long time = timeOf(key);
        synchronized (getPosition()) {
            keyspace();
            see(time);
            long segment = segmentOf(time);
            if (segment < firstLive()) {
                if (dropped != null) {
                    dropped.record();
                }
                return;
            }
            Internals.moveTo(getPosition(), context());
            segments.add(segment);
            expire();
            writeEntry(segment, key, value);
        }
    }

    private void writeEntry(long segment, byte[] key, byte[] value) {
        if (!isIndexed() && removed.isEmpty()) {
            write(inSegment(segment, key), value);
            return;
        }
        try (Batch batch = new Batch()) {
            addRemoved(batch);
            add(batch, keyspace(), segment, key, value);
            writeWithRemoved(batch);
        } catch (EskerException e) {
            throw failure(e, "writing to");
        }
    }

    private void add(Batch batch, Keyspace keyspace, long segment, byte[] key, byte[] value) {
        if (value == null) {
            batch.delete(keyspace, inSegment(segment, key));
        } else {
            batch.put(keyspace, inSegment(segment, key), value);
        }
        index(batch, keyspace, segment, key, value == null);
    }

    /**
     * Deletes an entry, if its segment has any: together with what is written next. A session that grows is
     * removed and put again; no end of the process may come between both, or neither would be left.
     */
    final void removeEntry(byte[] key) {
        long time = timeOf(key);
        synchronized (getPosition()) {
            keyspace();
            see(time);
            if (!segments.contains(segmentOf(time))) {
                return;
            }
            claim();
            removed.add(key);
            remover = Thread.currentThread();
            if (removed.size() >= MOST_REMOVED) {
                settleAll();
            }
        }
    }

    private void addRemoved(Batch batch) {
        for (byte[] key : removed) {
            add(batch, keyspace(), segmentOf(timeOf(key)), key, null);
        }
    }

    private void writeWithRemoved(Batch batch) {
        write(batch);
        removed.clear();
        remover = null;
    }

    /** Others than the thread that removed entries see them until something is written. */
    @Override
    final void settle() {
        if (remover == Thread.currentThread()) {
            settleAll();
        }
    }

    @Override
    final void settleAll() {
        synchronized (getPosition()) {
            if (removed.isEmpty()) {
                return;
            }
            try (Batch batch = new Batch()) {
                addRemoved(batch);
                writeWithRemoved(batch);
            } catch (EskerException e) {
                throw failure(e, "writing to");
            }
        }
    }

    /** Deletes the segments that are too old. */
    private void expire() {
        long live = firstLive();
        for (Long segment : segments.headSet(live)) {
            try {
                keyspace().deletePrefix(start(segment));
            } catch (EskerException e) {
                throw failure(e, "deleting what is too old from");
            }
            segments.remove(segment);
        }
    }

    /** The first time that is not too old to be seen. */
    long visibleFrom() {
        return streamTime - retention + 1;
    }

    final byte[] getEntry(byte[] key) {
        long time = timeOf(key);
        long segment = segmentOf(time);
        if (!isOpen() || time < visibleFrom() || !segments.contains(segment)) {
            return null;
        }
        return read(inSegment(segment, key));
    }

    @Override
    final void restoring(Collection<ConsumerRecord<byte[], byte[]>> records) {
        for (ConsumerRecord<byte[], byte[]> record : records) {
            see(timeOf(record.key()));
        }
        expire();
    }

    @Override
    final boolean restore(Batch batch, ConsumerRecord<byte[], byte[]> record) {
        long segment = segmentOf(timeOf(record.key()));
        if (segment < firstLive()) {
            return false;
        }
        segments.add(segment);
        add(batch, keyspace(), segment, record.key(), record.value());
        return true;
    }

    /** Whether a segment still has entries. */
    final boolean isLive(long segment) {
        return segments.contains(segment);
    }

    /** The segments of a range of times, in the order of an iterator. */
    final List<Long> segments(long from, long to, boolean forward) {
        long first = segmentOf(from);
        long last = segmentOf(to);
        if (first > last) {
            return List.of();
        }
        NavigableSet<Long> between = segments.subSet(first, true, last, true);
        return new ArrayList<>(forward ? between : between.descendingSet());
    }

    /** The entries of keys and times in ranges. A key that is null is no bound. */
    final KeyValueIterator<Bytes, byte[]> fetchEntries(
            Bytes keyFrom, Bytes keyTo, long from, long to, long lastSegmentTime, boolean forward) {
        if (Ranges.isReversed(keyFrom, keyTo)) {
            LOG.warn(Ranges.REVERSED);
            return Ranges.empty();
        }
        if (!isOpen()) {
            return Ranges.empty();
        }
        long visible = Math.max(from, visibleFrom());
        if (lastSegmentTime < visible) {
            return Ranges.empty();
        }
        byte[] lower;
        byte[] upper;
        if (keyFrom != null && keyFrom.equals(keyTo)) {
            lower = first(keyFrom.get(), visible);
            upper = last(keyTo.get(), to);
        } else {
            lower = keyFrom == null ? new byte[0] : keyFrom.get();
            upper = keyTo == null ? null : lastUpTo(keyTo.get(), to);
        }
        return new SegmentsIterator(
                this,
                segments(visible, lastSegmentTime, forward),
                lower,
                upper,
                key -> isBetween(key, keyFrom, keyTo) && isWithin(key, visible, to),
                forward);
    }

    /** The first key of a record's key with times from one on. */
    abstract byte[] first(byte[] key, long from);

    /** The last key of a record's key with times up to one. */
    abstract byte[] last(byte[] key, long to);

    /**
     * A key that is not before any key of a record's key up to one. Those of a shorter key, which is the
     * beginning of this one, may come later than those of this one: then their times decide.
     */
    private byte[] lastUpTo(byte[] key, long to) {
        byte[] latest = Arrays.copyOfRange(last(key, to), key.length, key.length + suffix);
        for (int length = 0; length < key.length; length++) {
            if (Arrays.compareUnsigned(
                    latest, 0, suffix, key, length, Math.min(key.length, length + suffix)) > 0) {
                byte[] end = Arrays.copyOf(key, length + suffix);
                System.arraycopy(latest, 0, end, length, suffix);
                return end;
            }
        }
        return last(key, to);
    }

    private boolean isBetween(byte[] key, Bytes from, Bytes to) {
        int length = key.length - suffix;
        return (from == null || Arrays.compareUnsigned(key, 0, length, from.get(), 0, from.get().length) >= 0)
                && (to == null || Arrays.compareUnsigned(key, 0, length, to.get(), 0, to.get().length) <= 0);
    }

    /** The entries of a segment between two keys, with both of them; null is no bound. */
    final KeyValueIterator<Bytes, byte[]> entriesOf(long segment, byte[] lower, byte[] upper, boolean forward) {
        byte[] start = inSegment(segment, lower);
        byte[] end = upper == null ? endOf(segment) : Ranges.behind(inSegment(segment, upper));
        if (Arrays.compareUnsigned(start, end) >= 0) {
            return Ranges.empty();
        }
        return entries(start, end, forward, prefix);
    }

    /** The key behind the entries of a segment. */
    byte[] endOf(long segment) {
        return start(segment + 1);
    }
}
