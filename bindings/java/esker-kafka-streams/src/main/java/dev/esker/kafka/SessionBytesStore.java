package dev.esker.kafka;

import dev.esker.Batch;
import dev.esker.Keyspace;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
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
import org.apache.kafka.streams.state.SessionStore;

/**
 * A session store. A key of a segment is the record's key, the end and the start of the session. A store whose
 * sessions are forwarded only when they have closed has an index beside: keys of a segment by their times.
 */
class SessionBytesStore extends SegmentedStore implements SessionStore<Bytes, byte[]> {
    private static final int SUFFIX = 2 * Long.BYTES;

    /** The shortest segment. */
    private static final long SHORTEST = 60_000;

    /** Behind the number of a segment, in a store with an index: 0 for entries, 1 for the index. */
    private static final byte INDEX = 1;

    private static final byte[] NOTHING = {};

    private final boolean indexed;

    /** Headers stand before the value alone: in that, sessions with headers are like timestamped values that get them. */
    private static final Map<Conversion.Format, String> KINDS = Map.of(
            Conversion.Format.TIMESTAMPED, "session store", Conversion.Format.HEADERS, "session store with headers");

    private static final Map<Conversion.Format, String> INDEXED = Map.of(
            Conversion.Format.TIMESTAMPED, "session store with an index by time",
            Conversion.Format.HEADERS, "session store with headers and an index by time");

    SessionBytesStore(String name, long retention, boolean indexed) {
        this(name, retention, indexed, Conversion.Format.TIMESTAMPED);
    }

    private SessionBytesStore(String name, long retention, boolean indexed, Conversion.Format format) {
        super(
                name,
                indexed ? INDEXED : KINDS,
                format,
                retention,
                interval(retention),
                SUFFIX,
                indexed ? Long.BYTES + 1 : Long.BYTES);
        this.indexed = indexed;
    }

    /** The length of a segment for how long sessions are kept. */
    static long interval(long retention) {
        return Math.max(retention / 2, SHORTEST);
    }

    /** A store whose values begin with headers. */
    static final class WithHeaders extends SessionBytesStore implements HeadersBytesStore {
        WithHeaders(String name, long retention, boolean indexed) {
            super(name, retention, indexed, Conversion.Format.HEADERS);
        }

        @Override
        public <R> QueryResult<R> query(Query<R> query, PositionBound positionBound, QueryConfig config) {
            return Queries.unknown(this, query, config);
        }
    }

    private static byte[] key(Bytes key, long start, long end) {
        Objects.requireNonNull(key, "key cannot be null");
        return key(key.get(), start, end);
    }

    private static byte[] key(byte[] key, long start, long end) {
        return ByteBuffer.allocate(key.length + SUFFIX).put(key).putLong(end).putLong(start).array();
    }

    private static byte[] key(Windowed<Bytes> session) {
        return key(session.key(), session.window().start(), session.window().end());
    }

    private static long endOf(byte[] key) {
        return ByteBuffer.wrap(key).getLong(key.length - SUFFIX);
    }

    private static long startOf(byte[] key) {
        return ByteBuffer.wrap(key).getLong(key.length - Long.BYTES);
    }

    /** The session of a key. */
    static Windowed<Bytes> session(byte[] key) {
        byte[] record = Arrays.copyOf(key, key.length - SUFFIX);
        return Internals.sessionWindow(Bytes.wrap(record), startOf(key), endOf(key));
    }

    @Override
    final long timeOf(byte[] key) {
        return endOf(key);
    }

    @Override
    final boolean isWithin(byte[] key, long from, long to) {
        return endOf(key) >= from && startOf(key) <= to;
    }

    @Override
    final byte[] first(byte[] key, long from) {
        return key(key, 0, Math.max(0, from));
    }

    @Override
    final byte[] last(byte[] key, long to) {
        return key(key, to, Long.MAX_VALUE);
    }

    @Override
    final boolean isIndexed() {
        return indexed;
    }

    /** The key of the index: the times come first. */
    private byte[] indexKey(long segment, byte[] key) {
        int length = key.length - SUFFIX;
        return indexStart(segment, key.length)
                .put(key, length, SUFFIX)
                .put(key, 0, length)
                .array();
    }

    private static ByteBuffer indexStart(long segment, int more) {
        return ByteBuffer.allocate(Long.BYTES + 1 + more).putLong(segment ^ Long.MIN_VALUE).put(INDEX);
    }

    @Override
    final boolean isEntry(byte[] whole) {
        return !indexed || whole[Long.BYTES] != INDEX;
    }

    @Override
    final void index(Batch batch, Keyspace keyspace, long segment, byte[] key, boolean deletes) {
        if (!indexed) {
            return;
        }
        if (deletes) {
            batch.delete(keyspace, indexKey(segment, key));
        } else {
            batch.put(keyspace, indexKey(segment, key), NOTHING);
        }
    }

    @Override
    final byte[] endOf(long segment) {
        return indexed ? indexStart(segment, 0).array() : super.endOf(segment);
    }

    @Override
    public void put(Windowed<Bytes> sessionKey, byte[] aggregate) {
        putEntry(key(sessionKey), aggregate);
    }

    @Override
    public void remove(Windowed<Bytes> sessionKey) {
        removeEntry(key(sessionKey));
    }

    @Override
    public byte[] fetchSession(Bytes key, long sessionStartTime, long sessionEndTime) {
        return getEntry(key(key, sessionStartTime, sessionEndTime));
    }

    /** The sessions whose ends are in a range of times, in the order of the times: only with an index. */
    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            long earliestSessionEndTime, long latestSessionEndTime) {
        if (!indexed) {
            return SessionStore.super.findSessions(earliestSessionEndTime, latestSessionEndTime);
        }
        if (!isOpen()) {
            return Ranges.empty();
        }
        long earliest = Math.max(0, earliestSessionEndTime);
        return new SessionsByTime(
                this,
                latestSessionEndTime < earliest ? List.of() : segments(earliest, latestSessionEndTime, true),
                segment -> entries(
                        indexStart(segment, Long.BYTES).putLong(earliest).array(),
                        Ranges.behindPrefix(indexStart(segment, Long.BYTES).putLong(latestSessionEndTime).array()),
                        true,
                        Long.BYTES + 1),
                SessionBytesStore::keyOfIndex);
    }

    private static byte[] keyOfIndex(byte[] index) {
        return ByteBuffer.allocate(index.length)
                .put(index, SUFFIX, index.length - SUFFIX)
                .put(index, 0, SUFFIX)
                .array();
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes key, long earliestSessionEndTime, long latestSessionStartTime) {
        Objects.requireNonNull(key, "key cannot be null");
        return find(key, key, earliestSessionEndTime, latestSessionStartTime, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes key, long earliestSessionEndTime, long latestSessionStartTime) {
        Objects.requireNonNull(key, "key cannot be null");
        return find(key, key, earliestSessionEndTime, latestSessionStartTime, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes keyFrom, Bytes keyTo, long earliestSessionEndTime, long latestSessionStartTime) {
        return find(keyFrom, keyTo, earliestSessionEndTime, latestSessionStartTime, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes keyFrom, Bytes keyTo, long earliestSessionEndTime, long latestSessionStartTime) {
        return find(keyFrom, keyTo, earliestSessionEndTime, latestSessionStartTime, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> find(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart, boolean forward) {
        return new WindowedIterator(
                fetchEntries(keyFrom, keyTo, earliestEnd, latestStart, Long.MAX_VALUE, forward),
                SessionBytesStore::session);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return findSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return backwardFindSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return findSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo) {
        return backwardFindSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }
}
