package dev.esker.kafka;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreSupplier;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** The suppliers that {@link EskerStores} returns. Kafka asks some of them by their interfaces what they make. */
final class Suppliers {
    private Suppliers() {}

    /** What all suppliers have: a name, and what makes stores. */
    private abstract static class Named<S extends StateStore> implements StoreSupplier<S> {
        private final String name;
        private final Supplier<S> makes;

        Named(String name, Supplier<S> makes) {
            this.name = name;
            this.makes = makes;
        }

        @Override
        public final String name() {
            return name;
        }

        @Override
        public final S get() {
            return makes.get();
        }

        @Override
        public final String metricsScope() {
            return StoreMetrics.SCOPE;
        }
    }

    /** A supplier of key-value stores. */
    static class KeyValue extends Named<KeyValueStore<Bytes, byte[]>> implements KeyValueBytesStoreSupplier {
        KeyValue(String name, Supplier<KeyValueStore<Bytes, byte[]>> makes) {
            super(name, makes);
        }
    }

    /** A supplier of key-value stores whose values carry headers. */
    static final class KeyValueWithHeaders extends KeyValue implements HeadersBytesStoreSupplier {
        KeyValueWithHeaders(String name, Supplier<KeyValueStore<Bytes, byte[]>> makes) {
            super(name, makes);
        }
    }

    /** A supplier of versioned stores. */
    static final class Versioned extends KeyValue implements VersionedBytesStoreSupplier {
        private final long retention;

        Versioned(String name, long retention, Supplier<KeyValueStore<Bytes, byte[]>> makes) {
            super(name, makes);
            this.retention = retention;
        }

        @Override
        public long historyRetentionMs() {
            return retention;
        }
    }

    /** A supplier of window stores. */
    static class Window extends Named<WindowStore<Bytes, byte[]>> implements WindowBytesStoreSupplier {
        private final WindowParameters parameters;

        Window(WindowParameters parameters, Supplier<WindowStore<Bytes, byte[]>> makes) {
            super(parameters.name(), makes);
            this.parameters = parameters;
        }

        @Override
        public final long segmentIntervalMs() {
            return parameters.interval();
        }

        @Override
        public final long windowSize() {
            return parameters.size();
        }

        @Override
        public final boolean retainDuplicates() {
            return parameters.duplicates();
        }

        @Override
        public final long retentionPeriod() {
            return parameters.retention();
        }
    }

    /** A supplier of window stores whose values carry headers. */
    static final class WindowWithHeaders extends Window implements HeadersBytesStoreSupplier {
        WindowWithHeaders(WindowParameters parameters, Supplier<WindowStore<Bytes, byte[]>> makes) {
            super(parameters, makes);
        }
    }

    /** A supplier of session stores. */
    static class Session extends Named<SessionStore<Bytes, byte[]>> implements SessionBytesStoreSupplier {
        private final long retention;

        Session(String name, long retention, Supplier<SessionStore<Bytes, byte[]>> makes) {
            super(name, makes);
            this.retention = retention;
        }

        @Override
        public final long segmentIntervalMs() {
            return SessionBytesStore.interval(retention);
        }

        @Override
        public final long retentionPeriod() {
            return retention;
        }
    }

    /** A supplier of session stores whose values carry headers. */
    static final class SessionWithHeaders extends Session implements HeadersBytesStoreSupplier {
        SessionWithHeaders(String name, long retention, Supplier<SessionStore<Bytes, byte[]>> makes) {
            super(name, retention, makes);
        }
    }
}
