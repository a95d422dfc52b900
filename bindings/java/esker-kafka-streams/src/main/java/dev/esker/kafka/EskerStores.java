package dev.esker.kafka;

import java.time.Duration;
import java.util.Objects;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Suppliers of state stores that keep their entries in Esker, as {@link org.apache.kafka.streams.state.Stores}
 * has them for RocksDB. They are for {@code Materialized.as}, and for the builders of
 * {@link org.apache.kafka.streams.state.Stores}:
 *
 * <pre>{@code
 * topology.addStateStore(Stores.keyValueStoreBuilder(
 *         EskerStores.persistentKeyValueStore("counts"), Serdes.String(), Serdes.Long()));
 * }</pre>
 *
 * <p>All stores of an application in a process share one database in the directory {@code esker} of the
 * application's state directory, and so one budget of memory.
 *
 * <p><b>Limits.</b> A key has at most 65,535 bytes as it is serialized; in stores of windows, sessions and
 * versions, up to 25 fewer. A value has at most an eighth of the option {@code esker.memory}. What is longer makes
 * the write throw a {@code ProcessorStateException}.
 */
public final class EskerStores {
    private EskerStores() {}

    /**
     * A supplier of key-value stores, as {@code Stores.persistentKeyValueStore}.
     *
     * @param name the name of the store
     * @return the supplier
     */
    public static KeyValueBytesStoreSupplier persistentKeyValueStore(String name) {
        check(name);
        return new Suppliers.KeyValue(name, () -> new KeyValueBytesStore(name));
    }

    /**
     * A supplier of key-value stores whose values carry timestamps, as
     * {@code Stores.persistentTimestampedKeyValueStore}.
     *
     * @param name the name of the store
     * @return the supplier
     */
    public static KeyValueBytesStoreSupplier persistentTimestampedKeyValueStore(String name) {
        check(name);
        return new Suppliers.KeyValue(name, () -> new KeyValueBytesStore.Timestamped(name));
    }

    /**
     * A supplier of key-value stores whose values carry timestamps and headers, as
     * {@code Stores.persistentTimestampedKeyValueStoreWithHeaders}. They answer no queries of
     * {@code KafkaStreams.query}, as RocksDB's do not.
     *
     * @param name the name of the store
     * @return the supplier
     */
    public static KeyValueBytesStoreSupplier persistentTimestampedKeyValueStoreWithHeaders(String name) {
        check(name);
        return new Suppliers.KeyValueWithHeaders(name, () -> new KeyValueBytesStore.WithHeaders(name));
    }

    /**
     * A supplier of versioned key-value stores, as {@code Stores.persistentVersionedKeyValueStore}.
     *
     * @param name the name of the store
     * @param historyRetention how long versions are kept that have ended, in milliseconds of the records' time;
     *     also how late a record may be
     * @return the supplier
     * @throws IllegalArgumentException if the time is negative
     */
    public static VersionedBytesStoreSupplier persistentVersionedKeyValueStore(
            String name, Duration historyRetention) {
        long retention = millis(historyRetention, "historyRetention");
        return versioned(name, retention, segmentInterval(retention));
    }

    /**
     * A supplier of versioned key-value stores, as {@code Stores.persistentVersionedKeyValueStore}.
     *
     * @param name the name of the store
     * @param historyRetention how long versions are kept that have ended, in milliseconds of the records' time;
     *     also how late a record may be
     * @param segmentInterval the length of a segment, in milliseconds. The versions of a key that ended in one
     *     segment lie in one value: a short segment makes these small, a long one makes fewer of them
     * @return the supplier
     * @throws IllegalArgumentException if the first time is negative, or the second is not positive
     */
    public static VersionedBytesStoreSupplier persistentVersionedKeyValueStore(
            String name, Duration historyRetention, Duration segmentInterval) {
        long retention = millis(historyRetention, "historyRetention");
        long interval = millis(segmentInterval, "segmentInterval");
        if (interval < 1) {
            throw new IllegalArgumentException("segmentInterval cannot be zero or negative");
        }
        return versioned(name, retention, interval);
    }

    private static VersionedBytesStoreSupplier versioned(String name, long retention, long interval) {
        check(name);
        return new Suppliers.Versioned(
                name, retention, () -> Internals.asKeyValueStore(new VersionedStore(name, retention, interval)));
    }

    /** The same lengths as Kafka's, so that a store behaves alike. */
    private static long segmentInterval(long retention) {
        if (retention <= 60_000) {
            return Math.max(retention / 3, 2_000);
        }
        if (retention <= 300_000) {
            return Math.max(retention / 5, 20_000);
        }
        if (retention <= 3_600_000) {
            return Math.max(retention / 12, 60_000);
        }
        return Math.max(retention / 24, 300_000);
    }

    /**
     * A supplier of window stores, as {@code Stores.persistentWindowStore}.
     *
     * @param name the name of the store
     * @param retentionPeriod how long windows are kept at least, in milliseconds of the records' time; not
     *     shorter than a window
     * @param windowSize the length of a window
     * @param retainDuplicates whether a window of a key may have several values
     * @return the supplier
     * @throws IllegalArgumentException if a time is negative, or the period is shorter than a window
     */
    public static WindowBytesStoreSupplier persistentWindowStore(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return window(DslStoreFormat.PLAIN, name, retentionPeriod, windowSize, retainDuplicates, false);
    }

    /**
     * A supplier of window stores whose values carry timestamps, as
     * {@code Stores.persistentTimestampedWindowStore}.
     *
     * @param name the name of the store
     * @param retentionPeriod how long windows are kept at least, in milliseconds of the records' time; not
     *     shorter than a window
     * @param windowSize the length of a window
     * @param retainDuplicates whether a window of a key may have several values
     * @return the supplier
     * @throws IllegalArgumentException if a time is negative, or the period is shorter than a window
     */
    public static WindowBytesStoreSupplier persistentTimestampedWindowStore(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return window(DslStoreFormat.TIMESTAMPED, name, retentionPeriod, windowSize, retainDuplicates, false);
    }

    /**
     * A supplier of window stores whose values carry timestamps and headers, as
     * {@code Stores.persistentTimestampedWindowStoreWithHeaders}. They answer no queries of
     * {@code KafkaStreams.query}, as RocksDB's do not.
     *
     * @param name the name of the store
     * @param retentionPeriod how long windows are kept at least, in milliseconds of the records' time; not
     *     shorter than a window
     * @param windowSize the length of a window
     * @param retainDuplicates whether a window of a key may have several values
     * @return the supplier
     * @throws IllegalArgumentException if a time is negative, or the period is shorter than a window
     */
    public static WindowBytesStoreSupplier persistentTimestampedWindowStoreWithHeaders(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return window(DslStoreFormat.HEADERS, name, retentionPeriod, windowSize, retainDuplicates, false);
    }

    static WindowBytesStoreSupplier window(
            DslStoreFormat format,
            String name,
            Duration retentionPeriod,
            Duration windowSize,
            boolean retainDuplicates,
            boolean closes) {
        check(name);
        long retention = millis(retentionPeriod, "retentionPeriod");
        long size = millis(windowSize, "windowSize");
        if (size > retention) {
            throw new IllegalArgumentException("The retention period of the window store " + name
                    + " must be no smaller than its window size. Got size=[" + windowSize + "], retention=["
                    + retentionPeriod + "]");
        }
        WindowParameters parameters = closes
                ? WindowParameters.closing(name, retention, size, retainDuplicates)
                : WindowParameters.of(name, retention, size, retainDuplicates);
        return switch (format) {
            case PLAIN -> new Suppliers.Window(parameters, () -> new WindowBytesStore(parameters));
            case TIMESTAMPED -> new Suppliers.Window(parameters, () -> new WindowBytesStore.Timestamped(parameters));
            case HEADERS -> new Suppliers.WindowWithHeaders(
                    parameters, () -> new WindowBytesStore.WithHeaders(parameters));
        };
    }

    /**
     * A supplier of session stores, as {@code Stores.persistentSessionStore}.
     *
     * @param name the name of the store
     * @param retentionPeriod how long sessions are kept at least, in milliseconds of the records' time
     * @return the supplier
     * @throws IllegalArgumentException if the time is negative
     */
    public static SessionBytesStoreSupplier persistentSessionStore(String name, Duration retentionPeriod) {
        return session(false, name, retentionPeriod, false);
    }

    /**
     * A supplier of session stores whose values carry headers, as
     * {@code Stores.persistentSessionStoreWithHeaders}. They answer no queries of {@code KafkaStreams.query},
     * as RocksDB's do not.
     *
     * @param name the name of the store
     * @param retentionPeriod how long sessions are kept at least, in milliseconds of the records' time
     * @return the supplier
     * @throws IllegalArgumentException if the time is negative
     */
    public static SessionBytesStoreSupplier persistentSessionStoreWithHeaders(String name, Duration retentionPeriod) {
        return session(true, name, retentionPeriod, false);
    }

    static SessionBytesStoreSupplier session(
            boolean headers, String name, Duration retentionPeriod, boolean closes) {
        check(name);
        long retention = millis(retentionPeriod, "retentionPeriod");
        if (headers) {
            return new Suppliers.SessionWithHeaders(
                    name, retention, () -> new SessionBytesStore.WithHeaders(name, retention, closes));
        }
        return new Suppliers.Session(name, retention, () -> new SessionBytesStore(name, retention, closes));
    }

    private static void check(String name) {
        Objects.requireNonNull(name, "name cannot be null");
    }

    private static long millis(Duration time, String what) {
        Objects.requireNonNull(time, what + " cannot be null");
        long millis;
        try {
            millis = time.toMillis();
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(what + " is too long for milliseconds: " + time, e);
        }
        if (millis < 0) {
            throw new IllegalArgumentException(what + " cannot be negative");
        }
        return millis;
    }
}
