package dev.esker.kafka.broker;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The application under test: sums of amounts by key, by key and window of time, by key and session, and by group behind
 * a repartition. Nothing in it names a store: one line of its settings says which stores it gets.
 */
public final class SumsProcess {
    private SumsProcess() {}

    /** Takes settings of Kafka Streams as {@code name=value}. */
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            settings.put(argument.substring(0, at), argument.substring(at + 1));
        }
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, Names.APPLICATION);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "100");
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), "3000");
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), "300");
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.METADATA_MAX_AGE_CONFIG), "1000");
        // Within it the transaction of an instance whose directory was deleted, too, is given up.
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), "5000");
        KafkaStreams streams = new KafkaStreams(topology(), settings);
        streams.setStateListener((now, before) -> ChildJvm.tell("state " + now));
        streams.setGlobalStateRestoreListener(new Restores());
        streams.setUncaughtExceptionHandler(
                failure -> {
                    failure.printStackTrace();
                    ChildJvm.tell("failed " + failure);
                    return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
                });
        streams.start();
        ChildJvm.endWithInput(
                () -> {
                    streams.close();
                    System.exit(0);
                });
    }

    static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, Long> amounts = builder.stream(Names.INPUT, Consumed.with(Serdes.String(), Serdes.Long()));
        KGroupedStream<String, Long> byKey = amounts.groupByKey(Grouped.with(Serdes.String(), Serdes.Long()));
        byKey.aggregate(() -> Total.NONE, (key, amount, total) -> total.plus(amount), named("totals"))
                .toStream()
                .to("totals" + Names.OUT, Produced.with(Serdes.String(), Total.SERDE));
        byKey.windowedBy(TimeWindows.ofSizeWithNoGrace(Names.WINDOW))
                .aggregate(
                        () -> Total.NONE,
                        (key, amount, total) -> total.plus(amount),
                        SumsProcess.<WindowStore<Bytes, byte[]>>named("windows")
                                .withRetention(Names.WINDOW_RETENTION))
                .toStream((key, total) -> key.key() + "@" + key.window().start())
                .to("windows" + Names.OUT, Produced.with(Serdes.String(), Total.SERDE));
        byKey.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Names.SESSION_GAP))
                .aggregate(
                        () -> Total.NONE,
                        (key, amount, total) -> total.plus(amount),
                        (key, one, other) -> one.plus(other),
                        SumsProcess.<SessionStore<Bytes, byte[]>>named("sessions")
                                .withRetention(Names.WINDOW_RETENTION))
                .toStream((key, total) -> key.key() + "@" + key.window().start() + "-" + key.window().end())
                .to("sessions" + Names.OUT, Produced.with(Serdes.String(), Total.SERDE));
        amounts.flatMap(SumsProcess::groups)
                .groupByKey(Grouped.with(Names.GROUPS_REPARTITION, Serdes.String(), Serdes.Long()))
                .aggregate(() -> Total.NONE, (key, amount, total) -> total.plus(amount), named("groups"))
                .toStream()
                .to("groups" + Names.OUT, Produced.with(Serdes.String(), Total.SERDE));
        return builder.build();
    }

    private static <S extends StateStore> Materialized<String, Total, S> named(String name) {
        return Materialized.<String, Total, S>as(name).withKeySerde(Serdes.String()).withValueSerde(Total.SERDE);
    }

    private static List<KeyValue<String, Long>> groups(String key, long amount) {
        if (!Names.isMarker(key)) {
            return List.of(KeyValue.pair(Names.group(amount), amount));
        }
        List<KeyValue<String, Long>> markers = new ArrayList<>();
        for (int partition = 0; partition < Names.PARTITIONS; partition++) {
            markers.add(KeyValue.pair(Names.groupMarker(key, partition), amount));
        }
        return markers;
    }

    /** Tells when the restore of a store begins and ends. */
    private static final class Restores implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
            ChildJvm.tell("restores " + partition + " from " + from + " to " + to);
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long offset, long count) {
            // Beginning and end are enough.
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long count) {
            ChildJvm.tell("restored " + partition + " " + count);
        }
    }
}
