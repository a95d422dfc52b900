package dev.esker.kafka.bench;

import java.time.Duration;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** The applications that are measured. */
final class Workloads {
    static final int PARTITIONS = 4;
    static final String STORE = "store";
    static final String RESTORE_TOPIC = "restore";

    private static final Duration WINDOW = Duration.ofMinutes(1);
    private static final Duration RETENTION = Duration.ofMinutes(10);
    private static final Serde<Bytes> KEY = Serdes.Bytes();
    private static final Serde<byte[]> VALUE = Serdes.ByteArray();

    private Workloads() {}

    /** The topics that a workload reads. */
    static List<String> inputs(String workload) {
        return workload.equals("join") ? List.of("join-table", "join") : List.of(workload);
    }

    static void build(String workload, StreamsBuilder builder, Timer timer) {
        String out = workload + "-out";
        switch (workload) {
            case "words" -> {
                KStream<Bytes, String> lines = builder.stream("words", Consumed.with(KEY, Serdes.String()));
                KStream<String, String> words =
                        lines.flatMapValues(line -> List.of(line.split(" ")))
                                .selectKey((key, word) -> word)
                                .repartition(
                                        Repartitioned.with(Serdes.String(), Serdes.String())
                                                .withName("by-word"));
                words.processValues(() -> new Timed<>(timer))
                        .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                        .count(
                                Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(STORE)
                                        .withKeySerde(Serdes.String())
                                        .withValueSerde(Serdes.Long()))
                        .toStream()
                        .to(out, Produced.with(Serdes.String(), Serdes.Long()));
            }
            case "windows" ->
                    builder.stream("windows", Consumed.with(KEY, VALUE))
                            .processValues(() -> new Timed<>(timer))
                            .groupByKey(Grouped.with(KEY, VALUE))
                            .windowedBy(TimeWindows.ofSizeWithNoGrace(WINDOW))
                            .count(
                                    Materialized.<Bytes, Long, WindowStore<Bytes, byte[]>>as(STORE)
                                            .withKeySerde(KEY)
                                            .withValueSerde(Serdes.Long())
                                            .withRetention(RETENTION))
                            .toStream((window, count) -> window.key())
                            .to(out, Produced.with(KEY, Serdes.Long()));
            case "join" -> {
                KTable<Bytes, byte[]> table = table(builder, "join-table");
                builder.stream("join", Consumed.with(KEY, VALUE))
                        .processValues(() -> new Timed<>(timer))
                        .join(table, (left, right) -> (long) left.length + right.length)
                        .to(out, Produced.with(KEY, Serdes.Long()));
            }
            case "restore" -> table(builder, RESTORE_TOPIC);
            default -> throw new IllegalArgumentException(workload);
        }
    }

    private static KTable<Bytes, byte[]> table(StreamsBuilder builder, String topic) {
        return builder.table(
                topic,
                Consumed.with(KEY, VALUE),
                Materialized.<Bytes, byte[], KeyValueStore<Bytes, byte[]>>as(STORE).withKeySerde(KEY).withValueSerde(VALUE));
    }

    /** Takes how long each record takes from here to the end of its way, and tells when all have come. */
    static final class Timer {
        private final long expected;
        private final Runnable atEnd;
        final Histogram histogram = Run.histogram();
        long first;
        long last;

        Timer(long expected, Runnable atEnd) {
            this.expected = expected;
            this.atEnd = atEnd;
        }

        void took(long begin, long end) {
            if (histogram.getTotalCount() == 0) {
                first = begin;
            }
            histogram.recordValue(end - begin);
            last = end;
            if (histogram.getTotalCount() == expected) {
                atEnd.run();
            }
        }
    }

    private static final class Timed<K, V> implements FixedKeyProcessor<K, V, V> {
        private final Timer timer;
        private FixedKeyProcessorContext<K, V> context;

        Timed(Timer timer) {
            this.timer = timer;
        }

        @Override
        public void init(FixedKeyProcessorContext<K, V> context) {
            this.context = context;
        }

        @Override
        public void process(FixedKeyRecord<K, V> record) {
            long begin = System.nanoTime();
            context.forward(record);
            timer.took(begin, System.nanoTime());
        }
    }
}
