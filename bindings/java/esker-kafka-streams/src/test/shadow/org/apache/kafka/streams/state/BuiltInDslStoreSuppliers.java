package org.apache.kafka.streams.state;

import dev.esker.kafka.EskerDslStoreSuppliers;
import java.util.concurrent.atomic.AtomicLong;

/**
 * In the place of Kafka's class of this name, for its own suites of the DSL: where a topology chooses no store,
 * it gets Esker's.
 */
public final class BuiltInDslStoreSuppliers {
    /** How many stores were asked for. */
    public static final AtomicLong ASKED = new AtomicLong();

    public static final DslStoreSuppliers ROCKS_DB = new RocksDBDslStoreSuppliers();
    public static final DslStoreSuppliers IN_MEMORY = new InMemoryDslStoreSuppliers();

    private BuiltInDslStoreSuppliers() {}

    /** Esker's stores. */
    public static class RocksDBDslStoreSuppliers implements DslStoreSuppliers {
        private final EskerDslStoreSuppliers esker = new EskerDslStoreSuppliers();

        @Override
        public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
            ASKED.incrementAndGet();
            return esker.keyValueStore(params);
        }

        @Override
        public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
            ASKED.incrementAndGet();
            return esker.windowStore(params);
        }

        @Override
        public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
            ASKED.incrementAndGet();
            return esker.sessionStore(params);
        }
    }

    /** Kafka's stores in memory. */
    public static class InMemoryDslStoreSuppliers implements DslStoreSuppliers {
        @Override
        public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
            return Stores.inMemoryKeyValueStore(params.name());
        }

        @Override
        public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
            return Stores.inMemoryWindowStore(
                    params.name(), params.retentionPeriod(), params.windowSize(), params.retainDuplicates());
        }

        @Override
        public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
            return Stores.inMemorySessionStore(params.name(), params.retentionPeriod());
        }
    }
}
