package dev.esker.kafka;

import static java.time.Duration.ofMillis;

import java.time.Duration;
import java.util.Random;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** A topology of random parts, which a seed decides. The stores come from the options of the application. */
final class RandomTopology {
    static final String[] INPUTS = {"left", "right", "table"};

    /** How names of stores begin whose windows are forwarded when they have closed. */
    static final String CLOSING = "closing";

    private static final Serde<String> STRING = Serdes.String();
    private static final Serde<Long> LONG = Serdes.Long();

    /** Makes the supplier of a versioned store, which the options cannot choose. */
    interface Versioned {
        VersionedBytesStoreSupplier of(String name, Duration retention);
    }

    private final Random random;
    private final Versioned versioned;
    private final StreamsBuilder builder = new StreamsBuilder();
    private final KStream<String, String> left;
    private final KStream<String, String> right;
    private final KTable<String, String> table;
    private final StringBuilder parts = new StringBuilder();
    private int named;
    int outputs;

    RandomTopology(long seed, Versioned versioned) {
        this.random = new Random(seed);
        this.versioned = versioned;
        left = builder.stream("left", Consumed.with(STRING, STRING));
        right = builder.stream("right", Consumed.with(STRING, STRING));
        boolean alone = random.nextInt(8) == 0;
        if (random.nextInt(3) == 0) {
            table = versionedTable();
        } else {
            Materialized<String, String, KeyValueStore<Bytes, byte[]>> materialized = plain();
            table = builder.table(
                    "table",
                    Consumed.with(STRING, STRING),
                    alone ? materialized.withCachingDisabled() : materialized);
        }
        if (alone) {
            // RocksDB's store of such windows has a cache of its own kind, so it lets other entries of the cache go,
            // which all stores of a task share: it is compared alone.
            closingWindows(true);
            return;
        }
        for (int i = 1 + random.nextInt(4); i > 0; i--) {
            add();
        }
    }

    Topology build() {
        return builder.build();
    }

    @Override
    public String toString() {
        return parts.toString();
    }

    private KTable<String, String> versionedTable() {
        parts.append("versioned table; ");
        return builder.table(
                "table",
                Consumed.with(STRING, STRING),
                Materialized.<String, String>as(versioned.of("versioned", ofMillis(30_000)))
                        .withKeySerde(STRING)
                        .withValueSerde(STRING));
    }

    private String name(String what) {
        parts.append(what).append("; ");
        return what + "-" + named++;
    }

    private <K, V, S extends org.apache.kafka.streams.processor.StateStore> Materialized<K, V, S> with(
            Materialized<K, V, S> materialized) {
        if (random.nextBoolean()) {
            parts.append("cached ");
            materialized.withCachingEnabled();
        } else {
            materialized.withCachingDisabled();
        }
        if (random.nextInt(4) == 0) {
            parts.append("unlogged ");
            materialized.withLoggingDisabled();
        }
        return materialized;
    }

    private Materialized<String, String, KeyValueStore<Bytes, byte[]>> plain() {
        return with(Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name("store"))
                .withKeySerde(STRING)
                .withValueSerde(STRING));
    }

    private Materialized<String, Long, KeyValueStore<Bytes, byte[]>> counts() {
        return with(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(name("counts"))
                .withKeySerde(STRING)
                .withValueSerde(LONG));
    }

    private Materialized<String, Long, WindowStore<Bytes, byte[]>> windows() {
        return windows("windows");
    }

    private Materialized<String, Long, WindowStore<Bytes, byte[]>> windows(String name) {
        return with(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as(name(name))
                .withKeySerde(STRING)
                .withValueSerde(LONG));
    }

    private Materialized<String, Long, SessionStore<Bytes, byte[]>> sessions() {
        return with(Materialized.<String, Long, SessionStore<Bytes, byte[]>>as(name("sessions"))
                .withKeySerde(STRING)
                .withValueSerde(LONG));
    }

    private KGroupedStream<String, String> grouped() {
        return (random.nextBoolean() ? left : right).groupByKey(Grouped.with(STRING, STRING));
    }

    private <K, V> void out(KStream<K, V> stream, Serde<K> keys, Serde<V> values) {
        stream.to("out-" + outputs++, Produced.with(keys, values));
    }

    private void outWindows(KTable<Windowed<String>, Long> counted, long size) {
        out(counted.toStream(), WindowedSerdes.timeWindowedSerdeFrom(String.class, size), LONG);
    }

    private void add() {
        switch (random.nextInt(11)) {
            case 0 -> out(grouped().count(counts()).toStream(), STRING, LONG);
            case 1 -> out(grouped().reduce((a, b) -> a.length() > 40 ? b : a + b, plain()).toStream(), STRING, STRING);
            case 2 -> timeWindows();
            case 3 -> slidingWindows();
            case 4 -> sessionWindows();
            case 5 -> streamJoin();
            case 6 -> out(
                    left.leftJoin(table, (a, b) -> a + "|" + b, Joined.with(STRING, STRING, STRING)), STRING, STRING);
            case 7 -> tableJoin();
            case 8 -> foreignKeyJoin();
            case 9 -> suppressed();
            default -> regrouped();
        }
    }

    private void timeWindows() {
        if (random.nextInt(3) == 0) {
            closingWindows(false);
            return;
        }
        long size = 1_000 * (1 + random.nextInt(10));
        TimeWindows windows = TimeWindows.ofSizeAndGrace(ofMillis(size), ofMillis(random.nextInt(20_000)));
        if (random.nextBoolean()) {
            windows = windows.advanceBy(ofMillis(size / 2));
        }
        outWindows(grouped().windowedBy(windows).count(windows("windows")), size);
    }

    /** Tumbling windows: of hopping ones, the order in which those of several keys are forwarded is a store's own. */
    private void closingWindows(boolean cached) {
        long size = 1_000 * (1 + random.nextInt(10));
        Materialized<String, Long, WindowStore<Bytes, byte[]>> materialized = windows(CLOSING);
        outWindows(
                grouped()
                        .windowedBy(TimeWindows.ofSizeAndGrace(ofMillis(size), ofMillis(random.nextInt(20_000))))
                        .emitStrategy(EmitStrategy.onWindowClose())
                        .count(cached ? materialized : materialized.withCachingDisabled()),
                size);
    }

    private void slidingWindows() {
        long size = 1_000 * (1 + random.nextInt(5));
        parts.append("sliding ");
        outWindows(
                grouped()
                        .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ofMillis(size), ofMillis(5_000)))
                        .count(windows()),
                size);
    }

    private void sessionWindows() {
        SessionWindows windows = SessionWindows.ofInactivityGapAndGrace(
                ofMillis(500 + random.nextInt(4_000)), ofMillis(random.nextInt(20_000)));
        var windowed = grouped().windowedBy(windows);
        if (random.nextInt(3) == 0) {
            parts.append("closing ");
            windowed = windowed.emitStrategy(EmitStrategy.onWindowClose());
        }
        out(
                windowed.count(sessions()).toStream(),
                WindowedSerdes.sessionWindowedSerdeFrom(String.class),
                LONG);
    }

    private void streamJoin() {
        JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(ofMillis(3_000), ofMillis(random.nextInt(5_000)));
        StreamJoined<String, String, String> joined =
                StreamJoined.with(STRING, STRING, STRING).withStoreName(name("join"));
        out(
                switch (random.nextInt(3)) {
                    case 0 -> left.join(right, (a, b) -> a + "+" + b, windows, joined);
                    case 1 -> left.leftJoin(right, (a, b) -> a + "+" + b, windows, joined);
                    default -> left.outerJoin(right, (a, b) -> a + "+" + b, windows, joined);
                },
                STRING,
                STRING);
    }

    private void tableJoin() {
        KTable<String, String> other = left.toTable(plain());
        KTable<String, String> joined = switch (random.nextInt(3)) {
            case 0 -> table.join(other, (a, b) -> a + "&" + b, plain());
            case 1 -> table.leftJoin(other, (a, b) -> a + "&" + b, plain());
            default -> table.outerJoin(other, (a, b) -> a + "&" + b, plain());
        };
        out(joined.toStream(), STRING, STRING);
    }

    private void foreignKeyJoin() {
        parts.append("foreign key ");
        KTable<String, String> many = right.toTable(plain());
        out(
                many.leftJoin(table, value -> "k" + Math.floorMod(value.hashCode(), 8), (a, b) -> a + "^" + b, plain())
                        .toStream(),
                STRING,
                STRING);
    }

    private void suppressed() {
        long size = 1_000 * (1 + random.nextInt(6));
        parts.append("suppressed ");
        outWindows(
                grouped()
                        .windowedBy(TimeWindows.ofSizeAndGrace(ofMillis(size), ofMillis(random.nextInt(6_000))))
                        .count(windows())
                        .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())),
                size);
    }

    private void regrouped() {
        parts.append("regrouped ");
        out(
                table.groupBy(
                                (key, value) -> org.apache.kafka.streams.KeyValue.pair(
                                        value.isEmpty() ? "none" : value.substring(0, 1), value),
                                Grouped.with(STRING, STRING))
                        .count(counts())
                        .toStream(),
                STRING,
                LONG);
    }
}
