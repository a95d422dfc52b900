package dev.esker.kafka;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.internals.PositionSerde;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.apache.kafka.streams.state.internals.VersionedKeyValueToBytesStoreAdapter;

/**
 * What the stores use of Kafka Streams beyond its public interfaces, which a minor version may change:
 * answers to interactive queries, positions in headers of changelog records and as bytes, windows, the adapter of
 * versioned stores, whole records while restoring, and metrics. Beside it, {@link StoreMetrics} alone names a class
 * of a package {@code internals}.
 */
final class Internals {
    private Internals() {}

    /** Answers the queries that all stores answer, from the methods of the store. */
    static <R> QueryResult<R> answer(
            Query<R> query,
            PositionBound bound,
            QueryConfig config,
            StateStore store,
            Position position,
            StateStoreContext context) {
        return StoreQueryUtils.handleBasicQueries(query, bound, config, store, position, context);
    }

    /** Whether a store at a position has seen what the bound of a query demands of its partition. */
    static boolean isUpTo(Position position, PositionBound bound, int partition) {
        return StoreQueryUtils.isPermitted(position, bound, partition);
    }

    /** Adds the place of the record that is processed now to a position. */
    static void moveTo(Position position, StateStoreContext context) {
        StoreQueryUtils.updatePosition(position, context);
    }

    /** Adds the position in the headers of a changelog record, if there is one, to a position. */
    static void moveTo(Position position, ConsumerRecord<byte[], byte[]> record, boolean consistency) {
        ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(record, consistency, position);
    }

    /** A callback that is given whole records, with their timestamps and headers, as many as a poll returned. */
    static StateRestoreCallback restoring(Consumer<Collection<ConsumerRecord<byte[], byte[]>>> restores) {
        return (RecordBatchingStateRestoreCallback) restores::accept;
    }

    /** Whether changelog records carry positions in their headers. */
    static boolean isConsistencyOn(StateStoreContext context) {
        return StreamsConfig.InternalConfig.getBoolean(
                context.appConfigs(), StreamsConfig.InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED, false);
    }

    /** A versioned store as the key-value store that builders of stores take. */
    static KeyValueStore<Bytes, byte[]> asKeyValueStore(VersionedKeyValueStore<Bytes, byte[]> store) {
        return new VersionedKeyValueToBytesStoreAdapter(store);
    }

    /** A window of a key; one that would end after the end of time ends there. */
    static Windowed<Bytes> timeWindow(Bytes key, long start, long size) {
        long end = start + size;
        return new Windowed<>(key, new TimeWindow(start, end < 0 ? Long.MAX_VALUE : end));
    }

    static Windowed<Bytes> sessionWindow(Bytes key, long start, long end) {
        return new Windowed<>(key, new SessionWindow(start, end));
    }

    static byte[] toBytes(Position position) {
        return PositionSerde.serialize(position).array();
    }

    static Position toPosition(byte[] bytes) {
        return PositionSerde.deserialize(ByteBuffer.wrap(bytes));
    }

    /** The registry of metrics, or null if the context is one of a test without it. */
    static StreamsMetricsImpl metrics(StateStoreContext context) {
        return context.metrics() instanceof StreamsMetricsImpl metrics ? metrics : null;
    }

    /** The sensor for records that came too late, or null if there is no registry. */
    static Sensor droppedRecords(StateStoreContext context) {
        StreamsMetricsImpl metrics = metrics(context);
        if (metrics == null) {
            return null;
        }
        return TaskMetrics.droppedRecordsSensor(
                Thread.currentThread().getName(), context.taskId().toString(), metrics);
    }
}
