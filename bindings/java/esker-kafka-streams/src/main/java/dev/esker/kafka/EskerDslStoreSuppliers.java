package dev.esker.kafka;

import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * The stores of the DSL, all in Esker. It is the value of the option {@code dsl.store.suppliers.class}:
 *
 * <pre>{@code
 * properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, EskerDslStoreSuppliers.class);
 * }</pre>
 *
 * <p>Stores whose suppliers the topology names itself are not concerned.
 */
public final class EskerDslStoreSuppliers implements DslStoreSuppliers {
    /** Makes the suppliers; Kafka Streams calls it. */
    public EskerDslStoreSuppliers() {}

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        return switch (params.dslStoreFormat()) {
            case PLAIN -> EskerStores.persistentKeyValueStore(params.name());
            case TIMESTAMPED -> EskerStores.persistentTimestampedKeyValueStore(params.name());
            case HEADERS -> EskerStores.persistentTimestampedKeyValueStoreWithHeaders(params.name());
        };
    }

    /**
     * A supplier of window stores. If the windows are forwarded when they have closed, its segments are short,
     * so that these windows are found quickly.
     */
    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        DslStoreFormat format = params.dslStoreFormat() == null ? DslStoreFormat.TIMESTAMPED : params.dslStoreFormat();
        boolean closes = params.emitStrategy().type() == EmitStrategy.StrategyType.ON_WINDOW_CLOSE;
        return EskerStores.window(
                // Kafka reads the time of a window that has closed from its value.
                closes && format == DslStoreFormat.PLAIN ? DslStoreFormat.TIMESTAMPED : format,
                params.name(),
                params.retentionPeriod(),
                params.windowSize(),
                params.retainDuplicates(),
                closes);
    }

    /**
     * A supplier of session stores. If the sessions are forwarded when they have closed, it has an index by
     * their times.
     */
    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        return EskerStores.session(
                params.storeFormat() == DslStoreFormat.HEADERS,
                params.name(),
                params.retentionPeriod(),
                params.emitStrategy().type() == EmitStrategy.StrategyType.ON_WINDOW_CLOSE);
    }
}
