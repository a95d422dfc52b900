package dev.esker.kafka;

import dev.esker.Batch;
import dev.esker.Cursor;
import dev.esker.EskerException;
import dev.esker.Snapshot;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Objects;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A store that keeps the versions of a key for a while. The latest version of each key lies under a 0 and the
 * key. Versions that have ended lie in rows under a 1, the number of the segment of their ends, and the key. A
 * segment whose versions are all too old goes with a single delete of a prefix. What a call writes takes effect
 * together.
 */
final class VersionedStore extends EskerStore implements VersionedKeyValueStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(VersionedStore.class);

    private static final byte LATEST = 0;
    private static final byte ENDED = 1;

    private static final long NONE = Long.MIN_VALUE;

    private final long retention;
    private final long interval;
    private final NavigableSet<Long> segments = new ConcurrentSkipListSet<>();

    /** What the call that is under way, or the batch that is restored, has written. Null: deleted. */
    private final Map<Bytes, byte[]> written = new HashMap<>();

    private volatile long streamTime = ConsumerRecord.NO_TIMESTAMP;

    /** The time that decides which segments are too old; while a batch is restored, the one at its end. */
    private long expiryTime = ConsumerRecord.NO_TIMESTAMP;

    private Sensor dropped;

    VersionedStore(String name, long retention, long interval) {
        super(name, "versioned store, segments of " + interval + " ms");
        this.retention = retention;
        this.interval = interval;
    }

    @Override
    void opened(StateStoreContext context) {
        dropped = Internals.droppedRecords(context);
        segments.clear();
        written.clear();
        streamTime = ConsumerRecord.NO_TIMESTAMP;
        try (Cursor cursor = keyspace().cursor()) {
            boolean found = cursor.seek(new byte[] {ENDED});
            while (found) {
                long segment = cursor.keyBuffer().getLong(1) ^ Long.MIN_VALUE;
                segments.add(segment);
                found = cursor.seek(prefix(segment + 1, 0).array());
            }
        }
    }

    private static ByteBuffer prefix(long segment, int more) {
        return ByteBuffer.allocate(1 + Long.BYTES + more).put(ENDED).putLong(segment ^ Long.MIN_VALUE);
    }

    private static byte[] latestKey(Bytes key) {
        return ByteBuffer.allocate(1 + key.get().length).put(LATEST).put(key.get()).array();
    }

    private static byte[] rowKey(long segment, Bytes key) {
        return prefix(segment, key.get().length).put(key.get()).array();
    }

    private long segmentOf(long time) {
        return time / interval;
    }

    // Reading and writing within a call.

    private byte[] find(byte[] key) {
        Bytes wrapped = Bytes.wrap(key);
        return written.containsKey(wrapped) ? written.get(wrapped) : read(key);
    }

    private VersionRow findRow(long segment, Bytes key) {
        byte[] bytes = segments.contains(segment) ? find(rowKey(segment, key)) : null;
        return bytes == null ? null : VersionRow.of(bytes);
    }

    private void setRow(long segment, Bytes key, VersionRow row) {
        written.put(Bytes.wrap(rowKey(segment, key)), row.toBytes());
    }

    private void setLatest(Bytes key, byte[] value, long time) {
        byte[] latest = value == null
                ? null
                : ByteBuffer.allocate(Long.BYTES + value.length).putLong(time).put(value).array();
        written.put(Bytes.wrap(latestKey(key)), latest);
    }

    private void addWritten(Batch batch) {
        for (Map.Entry<Bytes, byte[]> entry : written.entrySet()) {
            if (entry.getValue() == null) {
                batch.delete(keyspace(), entry.getKey().get());
            } else {
                batch.put(keyspace(), entry.getKey().get(), entry.getValue());
            }
        }
        written.clear();
    }

    private void writeKept() {
        try (Batch batch = new Batch()) {
            addWritten(batch);
            write(batch);
        } catch (EskerException e) {
            throw failure(e, "writing to");
        }
    }

    /** Whether a segment is not too old. It counts as one with entries then. */
    private boolean enter(long segment) {
        long live = segmentOf(expiryTime - retention);
        if (segment < live) {
            return false;
        }
        segments.add(segment);
        for (Long old : segments.headSet(live)) {
            byte[] prefix = prefix(old, 0).array();
            written.keySet().removeIf(key -> Ranges.startsWith(key.get(), prefix));
            try {
                keyspace().deletePrefix(prefix);
            } catch (EskerException e) {
                throw failure(e, "deleting what is too old from");
            }
            segments.remove(old);
        }
        return true;
    }

    // Writing.

    @Override
    public long put(Bytes key, byte[] value, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (getPosition()) {
            keyspace();
            long end = PUT_RETURN_CODE_NOT_PUT;
            if (isLate(timestamp)) {
                LOG.warn("Skipping record for expired put.");
            } else {
                end = putNow(key, value, timestamp);
            }
            Internals.moveTo(getPosition(), context());
            return end;
        }
    }

    @Override
    public VersionedRecord<byte[]> delete(Bytes key, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (getPosition()) {
            keyspace();
            if (isLate(timestamp)) {
                LOG.warn("Skipping record for expired delete.");
                return null;
            }
            VersionedRecord<byte[]> before = get(key, timestamp);
            putNow(key, null, timestamp);
            Internals.moveTo(getPosition(), context());
            return before;
        }
    }

    private boolean isLate(long time) {
        boolean late = time < streamTime - retention;
        if (late && dropped != null) {
            dropped.record();
        }
        return late;
    }

    private long putNow(Bytes key, byte[] value, long time) {
        streamTime = Math.max(streamTime, time);
        expiryTime = streamTime;
        written.clear();
        long end = putVersion(key, value, time);
        writeKept();
        return end;
    }

    /** Puts a version in its place among the others, and returns when it ends. */
    private long putVersion(Bytes key, byte[] value, long time) {
        long next = NONE;
        byte[] latest = find(latestKey(key));
        if (latest != null) {
            long latestTime = ByteBuffer.wrap(latest).getLong();
            if (time >= latestTime) {
                if (time > latestTime) {
                    end(key, Arrays.copyOfRange(latest, Long.BYTES, latest.length), latestTime, time);
                }
                setLatest(key, value, time);
                return PUT_RETURN_CODE_VALID_TO_UNDEFINED;
            }
            next = latestTime;
        }
        NavigableSet<Long> later = segments.tailSet(segmentOf(time), true).descendingSet();
        for (Long segment : new ArrayList<>(later)) {
            VersionRow row = findRow(segment, key);
            if (row == null) {
                continue;
            }
            if (row.end() <= time) {
                break;
            }
            if (row.begin() <= time) {
                return putIntoRow(segment, row, key, value, time);
            }
            if (row.begin() < expiryTime - retention) {
                return PUT_RETURN_CODE_NOT_PUT;
            }
            next = row.begin();
        }
        return next == NONE ? putLast(key, value, time) : putBetween(key, value, time, next);
    }

    /** Moves a version to the segment of its end. One that is too old is not needed any more. */
    private void end(Bytes key, byte[] value, long from, long end) {
        long segment = segmentOf(end);
        if (!enter(segment)) {
            return;
        }
        VersionRow row = findRow(segment, key);
        if (row == null) {
            row = VersionRow.of(from, end, value);
        } else {
            row.addLatest(from, end, value);
        }
        setRow(segment, key, row);
    }

    /** Puts a version into a row one of whose versions was valid then. */
    private long putIntoRow(long segment, VersionRow row, Bytes key, byte[] value, long time) {
        int index = row.at(time);
        long end = row.endOf(index);
        VersionRow.Version before = row.version(index);
        if (before.from() == time) {
            row.replace(index, time, value);
        } else if (segmentOf(time) == segment) {
            row.split(index, time, value);
        } else {
            end(key, before.value(), before.from(), time);
            row.replace(index, time, value);
        }
        if (segments.contains(segment)) {
            setRow(segment, key, row);
        }
        return end;
    }

    /** Puts a version of a key that has none later. */
    private long putLast(Bytes key, byte[] value, long time) {
        if (value != null) {
            setLatest(key, value, time);
            return PUT_RETURN_CODE_VALID_TO_UNDEFINED;
        }
        long segment = segmentOf(time);
        if (!enter(segment)) {
            return PUT_RETURN_CODE_NOT_PUT;
        }
        VersionRow row = findRow(segment, key);
        if (row == null) {
            setRow(segment, key, VersionRow.of(time, time, null));
        } else if (row.end() != time) {
            row.addLatest(row.end(), time, null);
            setRow(segment, key, row);
        }
        return PUT_RETURN_CODE_VALID_TO_UNDEFINED;
    }

    /** Puts a version of a key that ends with the beginning of a later one, and is in no row yet. */
    private long putBetween(Bytes key, byte[] value, long time, long end) {
        long segment = segmentOf(end);
        if (!enter(segment)) {
            return PUT_RETURN_CODE_NOT_PUT;
        }
        VersionRow row = findRow(segment, key);
        if (row == null) {
            row = VersionRow.of(time, end, value);
        } else if (row.end() <= time) {
            row.addLatest(time, end, value);
        } else {
            row.addEarliest(time, value);
        }
        setRow(segment, key, row);
        return end;
    }

    // Restoring.

    @Override
    void restoring(Collection<ConsumerRecord<byte[], byte[]>> records) {
        written.clear();
        expiryTime = streamTime;
        for (ConsumerRecord<byte[], byte[]> record : records) {
            expiryTime = Math.max(expiryTime, record.timestamp());
        }
    }

    @Override
    boolean restore(Batch batch, ConsumerRecord<byte[], byte[]> record) {
        if (record.timestamp() < streamTime - retention) {
            return false;
        }
        streamTime = Math.max(streamTime, record.timestamp());
        putVersion(Bytes.wrap(record.key()), record.value(), record.timestamp());
        return true;
    }

    @Override
    void restored(Batch batch) {
        addWritten(batch);
    }

    // Reading.

    @Override
    public VersionedRecord<byte[]> get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        return latest(read(latestKey(key)), Long.MAX_VALUE);
    }

    private static VersionedRecord<byte[]> latest(byte[] latest, long asOf) {
        if (latest == null) {
            return null;
        }
        long time = ByteBuffer.wrap(latest).getLong();
        return time > asOf
                ? null
                : new VersionedRecord<>(Arrays.copyOfRange(latest, Long.BYTES, latest.length), time);
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key, long asOfTimestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        VersionedRecord<byte[]> latest = latest(read(latestKey(key)), asOfTimestamp);
        if (latest != null) {
            return latest;
        }
        if (asOfTimestamp < streamTime - retention) {
            LOG.warn("Returning null for expired get.");
            return null;
        }
        NavigableSet<Long> later = segments.tailSet(segmentOf(asOfTimestamp), true).descendingSet();
        for (Long segment : later) {
            byte[] bytes = read(rowKey(segment, key));
            if (bytes == null) {
                continue;
            }
            VersionRow row = VersionRow.of(bytes);
            if (row.end() <= asOfTimestamp) {
                return null;
            }
            if (row.begin() <= asOfTimestamp) {
                int index = row.at(asOfTimestamp);
                VersionRow.Version version = row.version(index);
                return version.value() == null
                        ? null
                        : new VersionedRecord<>(version.value(), version.from(), row.endOf(index));
            }
        }
        return null;
    }

    /** The versions of a key that were valid at some time of a range, both ends included. */
    VersionedRecordIterator<byte[]> versions(Bytes key, long from, long to, boolean ascending) {
        Objects.requireNonNull(key, "key cannot be null");
        keyspace();
        List<byte[]> places = new ArrayList<>();
        places.add(latestKey(key));
        if (to >= streamTime - retention) {
            for (Long segment : segments.tailSet(segmentOf(from), true).descendingSet()) {
                places.add(rowKey(segment, key));
            }
        }
        if (ascending) {
            Collections.reverse(places);
        }
        Snapshot snapshot;
        try {
            snapshot = snapshot();
        } catch (EskerException e) {
            throw failure(e, "reading from");
        }
        return new VersionsIterator(this, snapshot, keyspace(), places, from, to, ascending);
    }

    /** Whether a key of the keyspace is that of a latest version. */
    static boolean isLatest(byte[] place) {
        return place[0] == LATEST;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <R> QueryResult<R> query(Query<R> query, PositionBound positionBound, QueryConfig config) {
        if (!(query instanceof MultiVersionedKeyQuery<?, ?> versions)) {
            return super.query(query, positionBound, config);
        }
        MultiVersionedKeyQuery<Bytes, byte[]> asked = (MultiVersionedKeyQuery<Bytes, byte[]>) versions;
        return (QueryResult<R>) Queries.answer(this, context(), positionBound, config, () -> versions(
                asked.key(),
                asked.fromTime().map(Instant::toEpochMilli).orElse(0L),
                asked.toTime().map(Instant::toEpochMilli).orElse(Long.MAX_VALUE),
                asked.resultOrder() == ResultOrder.ASCENDING));
    }
}
