package dev.esker.kafka;

import dev.esker.EskerException;
import dev.esker.Keyspace;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.Sensor.RecordingLevel;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

/** The metrics of a store in Kafka's registry, in the group of stores. They go with the store. */
final class StoreMetrics implements AutoCloseable {
    /** The scope of stores: the tag of a metric is {@code esker-state-id}. */
    static final String SCOPE = "esker";

    /** How many keys are counted rather than estimated, at most: it takes about a millisecond. */
    private static final long COUNTED = 10_000;

    private final StreamsMetricsImpl registry;
    private final DatabaseMetrics database;
    private final List<MetricName> names = new ArrayList<>();

    private StoreMetrics(StreamsMetricsImpl registry, DatabaseMetrics database) {
        this.registry = registry;
        this.database = database;
        database.enter(registry.metricsRegistry(), registry.clientLevelTagMap());
    }

    /** Registers the metrics of an open store, or returns null if there is no registry. */
    static StoreMetrics register(StateStoreContext context, EskerStore store, StoreSlot slot) {
        StreamsMetricsImpl registry = Internals.metrics(context);
        if (registry == null) {
            return null;
        }
        StoreMetrics metrics = new StoreMetrics(registry, slot.database().metrics());
        metrics.add(context, store, "estimate-num-keys", "Estimated number of keys in the store",
                StoreMetrics::count);
        metrics.add(context, store, "estimate-bytes-on-disk", "Estimated bytes that the store takes on the device",
                keyspace -> keyspace.approximateSize(null, null));
        return metrics;
    }

    /** About how many keys there are: the engine's estimate, or the number if it is small. */
    static long count(Keyspace keyspace) {
        Keyspace.Estimate estimate = keyspace.approximateCount(null, null);
        boolean estimated = estimate.deviation() == 0 || estimate.entries() + estimate.deviation() > COUNTED;
        return estimated ? estimate.entries() : keyspace.count();
    }

    private void add(
            StateStoreContext context, EskerStore store, String name, String text, ToLongFunction<Keyspace> value) {
        Gauge<Long> gauge = (config, now) -> {
            try {
                return value.applyAsLong(store.keyspace());
            } catch (EskerException | InvalidStateStoreException e) {
                // A store that is closed, or cannot be read, has no number.
                return null;
            }
        };
        names.add(registry.addStoreLevelMutableMetric(
                context.taskId().toString(), SCOPE, store.name(), name, text, RecordingLevel.INFO, gauge));
    }

    @Override
    public void close() {
        names.forEach(registry::removeStoreLevelMetric);
        database.leave(registry.metricsRegistry());
    }
}
