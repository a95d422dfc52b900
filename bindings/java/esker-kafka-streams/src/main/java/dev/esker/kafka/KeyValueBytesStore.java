package dev.esker.kafka;

import dev.esker.Batch;
import dev.esker.EskerException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A key-value store: keys and values of the keyspace are those of the store. */
class KeyValueBytesStore extends EskerStore implements KeyValueStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(KeyValueBytesStore.class);

    /** The kinds, by the format of values. */
    private static final Map<Conversion.Format, String> KINDS = Map.of(
            Conversion.Format.PLAIN, "key-value store",
            Conversion.Format.TIMESTAMPED, "timestamped key-value store",
            Conversion.Format.HEADERS, "timestamped key-value store with headers");

    private final Conversion.Format format;

    KeyValueBytesStore(String name) {
        this(name, Conversion.Format.PLAIN);
    }

    private KeyValueBytesStore(String name, Conversion.Format format) {
        super(name, KINDS.get(format));
        this.format = format;
    }

    @Override
    final Conversion conversion(String was) {
        for (Map.Entry<Conversion.Format, String> kind : KINDS.entrySet()) {
            byte[] prefix = format.prefixFrom(kind.getKey());
            if (kind.getValue().equals(was) && prefix != null) {
                return (batch, to, key, value) -> batch.put(to, key, Conversion.join(prefix, value));
            }
        }
        return null;
    }

    /** A store whose values begin with a timestamp. */
    static final class Timestamped extends KeyValueBytesStore implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name, Conversion.Format.TIMESTAMPED);
        }
    }

    /** A store whose values begin with headers and a timestamp. */
    static final class WithHeaders extends KeyValueBytesStore implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(String name) {
            super(name, Conversion.Format.HEADERS);
        }

        @Override
        public <R> QueryResult<R> query(Query<R> query, PositionBound positionBound, QueryConfig config) {
            return Queries.unknown(this, query, config);
        }
    }

    @Override
    public void put(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (getPosition()) {
            write(key.get(), value);
            Internals.moveTo(getPosition(), context());
        }
    }

    @Override
    public byte[] putIfAbsent(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (getPosition()) {
            byte[] old = get(key);
            if (old == null && value != null) {
                put(key, value);
            }
            return old;
        }
    }

    /** Writes all of the entries or, if the call throws an exception, none. */
    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        synchronized (getPosition()) {
            keyspace();
            try (Batch batch = new Batch()) {
                for (KeyValue<Bytes, byte[]> entry : entries) {
                    Objects.requireNonNull(entry.key, "key cannot be null");
                    add(batch, entry.key.get(), entry.value);
                }
                write(batch);
            } catch (EskerException e) {
                throw failure(e, "writing a batch to");
            }
            Internals.moveTo(getPosition(), context());
        }
    }

    private void add(Batch batch, byte[] key, byte[] value) {
        if (value == null) {
            batch.delete(keyspace(), key);
        } else {
            batch.put(keyspace(), key, value);
        }
    }

    @Override
    public byte[] delete(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        synchronized (getPosition()) {
            byte[] old = get(key);
            put(key, null);
            return old;
        }
    }

    @Override
    public byte[] get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        return read(key.get());
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, false);
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, boolean forward) {
        if (Ranges.isReversed(from, to)) {
            LOG.warn(Ranges.REVERSED);
            return Ranges.empty();
        }
        return entries(from == null ? null : from.get(), to == null ? null : Ranges.behind(to.get()), forward, 0);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return entries(null, null, true, 0);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return entries(null, null, false, 0);
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS prefixKeySerializer) {
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(prefixKeySerializer, "prefixKeySerializer cannot be null");
        byte[] start = prefixKeySerializer.serialize(null, prefix);
        return entries(start, Ranges.behindPrefix(start), true, 0);
    }

    /** The middle of the estimate that the engine makes without reading entries; of few entries, their number. */
    @Override
    public long approximateNumEntries() {
        try {
            return StoreMetrics.count(keyspace());
        } catch (EskerException e) {
            throw failure(e, "counting the entries of");
        }
    }

    @Override
    final boolean restore(Batch batch, ConsumerRecord<byte[], byte[]> record) {
        add(batch, record.key(), record.value());
        return true;
    }
}
