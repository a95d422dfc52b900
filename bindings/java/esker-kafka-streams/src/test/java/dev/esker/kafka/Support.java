package dev.esker.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.CommitCallback;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.test.InternalMockProcessorContext;

/** What the tests share. */
final class Support {
    /** Whether the tests take their long form. */
    static final boolean LONG = Boolean.getBoolean("esker.long");

    private Support() {}

    /** The seed of a test with random calls: that of {@code -Desker.seed}, or a new one. */
    static long seed() {
        String given = System.getProperty("esker.seed", "");
        return given.isEmpty() ? new Random().nextLong() : Long.parseLong(given);
    }

    /** What a failure says, so that it can be repeated. */
    static String again(long seed) {
        return "again with -Desker.seed=" + seed;
    }

    static String s(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    static byte[] b(String text) {
        return text.getBytes(UTF_8);
    }

    /** The options of an application. */
    static Properties properties(Path state, String... more) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        properties.put(StoreSettings.MEMORY, "33554432");
        for (int i = 0; i < more.length; i += 2) {
            properties.put(more[i], more[i + 1]);
        }
        return properties;
    }

    /** The place of a task, for a store without an application. */
    static final class Context extends InternalMockProcessorContext<Object, Object> {
        private final String application;
        StateRestoreCallback restores;
        CommitCallback commits;
        private long offset;

        Context(Path directory, TaskId task, Metrics metrics, String... more) {
            super(
                    directory.toFile(),
                    Serdes.ByteArray(),
                    Serdes.ByteArray(),
                    new StreamsMetricsImpl(metrics, "client", new MockTime()),
                    new StreamsConfig(properties(directory, more)),
                    null,
                    null,
                    Time.SYSTEM,
                    task);
            application = "app";
            at(0);
        }

        Context(Path directory, String... more) {
            this(directory, new TaskId(0, 0), new Metrics(), more);
        }

        @Override
        public String applicationId() {
            return application;
        }

        @Override
        public File stateDir() {
            File directory = super.stateDir();
            directory.mkdirs();
            return directory;
        }

        @Override
        public void register(StateStore store, StateRestoreCallback restore, CommitCallback commit) {
            restores = restore;
            commits = commit;
        }

        /** Goes to the next record of the input, with a time. */
        void at(long time) {
            setRecordContext(new ProcessorRecordContext(time, offset++, 0, "input", new RecordHeaders()));
        }

        void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
            ((RecordBatchingStateRestoreCallback) restores).restoreBatch(records);
        }

        /** The store, opened in the place. */
        <S extends StateStore> S open(S store) {
            store.init(this, store);
            return store;
        }
    }

    /** A record of a changelog. */
    static ConsumerRecord<byte[], byte[]> record(long offset, long time, byte[] key, byte[] value) {
        return new ConsumerRecord<>(
                "changelog",
                0,
                offset,
                time,
                TimestampType.CREATE_TIME,
                key.length,
                value == null ? 0 : value.length,
                key,
                value,
                new RecordHeaders(),
                Optional.empty());
    }

    /** The files below a directory, by their paths from there. */
    static List<String> files(Path directory) throws IOException {
        List<String> files = new ArrayList<>();
        try (Stream<Path> all = Files.walk(directory)) {
            all.filter(Files::isRegularFile).forEach(file -> files.add(directory.relativize(file).toString()));
        }
        return files;
    }
}
