package dev.esker.kafka;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** The suppliers that {@link EskerStores} returns. Kafka asks some of them by their interfaces what they make. */
final class Suppliers {
    private Suppliers() {}

    /** A supplier of key-value stores. */
    static class KeyValue implements KeyValueBytesStoreSupplier {
        private final String name;
        private final Supplier<KeyValueStore<Bytes, byte[]>> makes;

        KeyValue(String name, Supplier<KeyValueStore<Bytes, byte[]>> makes) {
            this.name = name;
            this.makes = makes;
        }

        @Override
        public final String name() {
            return name;
        }

        @Override
        public final KeyValueStore<Bytes, byte[]> get() {
            return makes.get();
        }

        @Override
        public final String metricsScope() {
            return StoreMetrics.SCOPE;
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
    static class Window implements WindowBytesStoreSupplier {
        private final WindowParameters parameters;
        private final Supplier<WindowStore<Bytes, byte[]>> makes;

        Window(WindowParameters parameters, Supplier<WindowStore<Bytes, byte[]>> makes) {
            this.parameters = parameters;
            this.makes = makes;
        }

        @Override
        public final String name() {
            return parameters.name();
        }

        @Override
        public final WindowStore<Bytes, byte[]> get() {
            return makes.get();
        }

        @Override
        public final String metricsScope() {
            return StoreMetrics.SCOPE;
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
    static class Session implements SessionBytesStoreSupplier {
        private final String name;
        private final long retention;
        private final Supplier<SessionStore<Bytes, byte[]>> makes;

        Session(String name, long retention, Supplier<SessionStore<Bytes, byte[]>> makes) {
            this.name = name;
            this.retention = retention;
            this.makes = makes;
        }

        @Override
        public final String name() {
            return name;
        }

        @Override
        public final SessionStore<Bytes, byte[]> get() {
            return makes.get();
        }

        @Override
        public final String metricsScope() {
            return StoreMetrics.SCOPE;
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
