package dev.esker.kafka.bench;

import dev.esker.kafka.broker.ChildJvm;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/** One application in a process of its own: runs a workload once, and tells what it took. */
public final class AppProcess {
    private static final int GETS = 100_000;

    private AppProcess() {}

    /** Takes {@code name=value} pairs: the settings of Kafka Streams, and those that begin with {@code bench.}. */
    public static void main(String[] arguments) throws Exception {
        Properties streams = new Properties();
        Map<String, String> own = new HashMap<>();
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            String name = argument.substring(0, at);
            String value = argument.substring(at + 1);
            if (name.startsWith("bench.")) {
                own.put(name.substring("bench.".length()), value);
            } else {
                streams.put(name, value);
            }
        }
        ChildJvm.endWithInput(() -> Runtime.getRuntime().halt(1));
        streams.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        Map<String, Double> figures =
                own.get("workload").equals("restore") ? restore(streams, own) : process(streams, own);
        ChildJvm.tell(new Run(figures).line());
        System.exit(0);
    }

    private static KafkaStreams start(StreamsBuilder builder, Properties settings, Runnable running, StateRestoreListener restores) {
        KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
        streams.setUncaughtExceptionHandler(
                failure -> {
                    failure.printStackTrace();
                    System.err.flush();
                    Runtime.getRuntime().halt(2);
                    return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
                });
        streams.setStateListener(
                (now, before) -> {
                    if (now == KafkaStreams.State.RUNNING) {
                        running.run();
                    }
                });
        if (restores != null) {
            streams.setGlobalStateRestoreListener(restores);
        }
        streams.start();
        return streams;
    }

    private static Map<String, Double> process(Properties settings, Map<String, String> own) throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        Workloads.Timer timer = new Workloads.Timer(Long.parseLong(own.get("expected")), done::countDown);
        StreamsBuilder builder = new StreamsBuilder();
        Workloads.build(own.get("workload"), builder, timer);
        KafkaStreams streams = start(builder, settings, () -> {}, null);
        done.await();
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("records_per_s", timer.histogram.getTotalCount() * 1e9 / (timer.last - timer.first));
        Run.addDurations(figures, timer.histogram);
        finish(streams, settings, figures);
        return figures;
    }

    private static void finish(KafkaStreams streams, Properties settings, Map<String, Double> figures) throws Exception {
        Map<String, Double> atEnd = new LinkedHashMap<>();
        Path directory = Path.of(settings.getProperty(StreamsConfig.STATE_DIR_CONFIG));
        Run.addSizes(figures, directory);
        long begin = System.nanoTime();
        streams.close();
        figures.put("close_s", (System.nanoTime() - begin) / 1e9);
        Run.addSizes(atEnd, directory);
        figures.put("disk_closed_mb", atEnd.get("disk_mb"));
    }

    private static Map<String, Double> restore(Properties settings, Map<String, String> own) throws Exception {
        settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        StreamsBuilder builder = new StreamsBuilder();
        Workloads.build("restore", builder, null);
        CountDownLatch running = new CountDownLatch(1);
        AtomicLong restored = new AtomicLong();
        long begin = System.nanoTime();
        KafkaStreams streams = start(builder, settings, running::countDown, new Counts(restored));
        running.await();
        double seconds = (System.nanoTime() - begin) / 1e9;
        long expected = Long.parseLong(own.get("expected"));
        if (restored.get() != expected) {
            throw new IllegalStateException(restored.get() + " records were restored, not " + expected);
        }
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("restore_s", seconds);
        figures.put("records_per_s", expected / seconds);
        gets(streams, expected, figures);
        finish(streams, settings, figures);
        return figures;
    }

    /** How the store answers when it has just been restored. */
    private static void gets(KafkaStreams streams, long keys, Map<String, Double> figures) {
        ReadOnlyKeyValueStore<Bytes, byte[]> store =
                streams.store(StoreQueryParameters.fromNameAndType(Workloads.STORE, QueryableStoreTypes.keyValueStore()));
        SplittableRandom random = new SplittableRandom(7);
        Histogram histogram = Run.histogram();
        for (int i = 0; i < GETS; i++) {
            Bytes key = Bytes.wrap(Inputs.key(random.nextLong(keys)));
            long begin = System.nanoTime();
            byte[] value = store.get(key);
            histogram.recordValue(System.nanoTime() - begin);
            if (value == null) {
                throw new IllegalStateException("the key " + key + " is missing");
            }
        }
        Run.addDurations(figures, histogram);
    }

    private record Counts(AtomicLong restored) implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
            // The time goes from the start of the application.
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long offset, long count) {
            restored.addAndGet(count);
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long count) {
            // Batches are counted.
        }
    }
}
