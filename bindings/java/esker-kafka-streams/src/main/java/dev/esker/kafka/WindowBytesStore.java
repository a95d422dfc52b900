package dev.esker.kafka;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * A window store. A key of a segment is the record's key, the start of the window and, if the store keeps
 * several values for a window, a sequence number.
 */
class WindowBytesStore extends SegmentedStore implements WindowStore<Bytes, byte[]> {
    private static final int SUFFIX = Long.BYTES + Integer.BYTES;

    private final WindowParameters parameters;
    private int sequence;

    private static final Map<Conversion.Format, String> KINDS = Map.of(
            Conversion.Format.PLAIN, "window store",
            Conversion.Format.TIMESTAMPED, "timestamped window store",
            Conversion.Format.HEADERS, "timestamped window store with headers");

    WindowBytesStore(WindowParameters parameters) {
        this(parameters, Conversion.Format.PLAIN);
    }

    private WindowBytesStore(WindowParameters parameters, Conversion.Format format) {
        super(parameters.name(), KINDS, format, parameters.retention(), parameters.interval(), SUFFIX, Long.BYTES);
        this.parameters = parameters;
    }

    /** A store whose values begin with a timestamp. */
    static final class Timestamped extends WindowBytesStore implements TimestampedBytesStore {
        Timestamped(WindowParameters parameters) {
            super(parameters, Conversion.Format.TIMESTAMPED);
        }
    }

    /** A store whose values begin with headers and a timestamp. */
    static final class WithHeaders extends WindowBytesStore implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(WindowParameters parameters) {
            super(parameters, Conversion.Format.HEADERS);
        }

        @Override
        public <R> QueryResult<R> query(Query<R> query, PositionBound positionBound, QueryConfig config) {
            return Queries.unknown(this, query, config);
        }
    }

    private static byte[] key(Bytes key, long time, int sequence) {
        Objects.requireNonNull(key, "key cannot be null");
        return key(key.get(), time, sequence);
    }

    private static byte[] key(byte[] key, long time, int sequence) {
        return ByteBuffer.allocate(key.length + SUFFIX).put(key).putLong(time).putInt(sequence).array();
    }

    @Override
    final long timeOf(byte[] key) {
        return ByteBuffer.wrap(key).getLong(key.length - SUFFIX);
    }

    @Override
    final boolean isWithin(byte[] key, long from, long to) {
        long time = timeOf(key);
        return time >= from && time <= to;
    }

    @Override
    final byte[] first(byte[] key, long from) {
        return key(key, Math.max(0, from), 0);
    }

    @Override
    final byte[] last(byte[] key, long to) {
        return key(key, to, Integer.MAX_VALUE);
    }

    /** Windows that are shown when they have closed may close with the end of their retention. */
    @Override
    final long visibleFrom() {
        return parameters.closes() ? super.visibleFrom() - 1 : super.visibleFrom();
    }

    @Override
    public void put(Bytes key, byte[] value, long windowStartTimestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        if (parameters.duplicates()) {
            if (value == null) {
                // It says of none of the values of the window that it is to be deleted.
                return;
            }
            sequence = (sequence + 1) & Integer.MAX_VALUE;
        }
        putEntry(key(key, windowStartTimestamp, sequence), value);
    }

    @Override
    public byte[] fetch(Bytes key, long timestamp) {
        return getEntry(key(key, timestamp, sequence));
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long timeFrom, long timeTo) {
        return values(key, timeFrom, timeTo, true);
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long timeFrom, long timeTo) {
        return values(key, timeFrom, timeTo, false);
    }

    private WindowStoreIterator<byte[]> values(Bytes key, long from, long to, boolean forward) {
        Objects.requireNonNull(key, "key cannot be null");
        return new Values(fetchEntries(key, key, from, to, to, forward));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo) {
        return windows(keyFrom, keyTo, timeFrom, timeTo, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(
            Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo) {
        return windows(keyFrom, keyTo, timeFrom, timeTo, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return windows(null, null, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return windows(null, null, 0, Long.MAX_VALUE, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long timeFrom, long timeTo) {
        return windows(null, null, timeFrom, timeTo, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long timeFrom, long timeTo) {
        return windows(null, null, timeFrom, timeTo, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> windows(
            Bytes keyFrom, Bytes keyTo, long from, long to, boolean forward) {
        return new WindowedIterator(fetchEntries(keyFrom, keyTo, from, to, to, forward), key -> {
            byte[] record = new byte[key.length - SUFFIX];
            System.arraycopy(key, 0, record, 0, record.length);
            return Internals.timeWindow(Bytes.wrap(record), timeOf(key), parameters.size());
        });
    }

    /** The values of a key, by the starts of their windows. */
    private final class Values implements WindowStoreIterator<byte[]> {
        private final KeyValueIterator<Bytes, byte[]> entries;

        Values(KeyValueIterator<Bytes, byte[]> entries) {
            this.entries = entries;
        }

        @Override
        public boolean hasNext() {
            return entries.hasNext();
        }

        @Override
        public Long peekNextKey() {
            return timeOf(entries.peekNextKey().get());
        }

        @Override
        public KeyValue<Long, byte[]> next() {
            KeyValue<Bytes, byte[]> entry = entries.next();
            return KeyValue.pair(timeOf(entry.key.get()), entry.value);
        }

        @Override
        public void close() {
            entries.close();
        }
    }
}
