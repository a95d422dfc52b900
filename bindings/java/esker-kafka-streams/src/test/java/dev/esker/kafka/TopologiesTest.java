package dev.esker.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Random topologies with random input, once with RocksDB's stores and once with Esker's. All records that they
 * produce are the same, to outputs and to changelogs, and so are their stores at the end.
 */
class TopologiesTest {
    private static final int ROUNDS = Support.LONG ? 1_500 : 60;

    @TempDir
    Path directory;

    @Test
    void topologiesGiveTheSameOnBothStores() {
        long seed = Support.seed();
        System.out.println(Support.again(seed));
        Random random = new Random(seed);
        int produced = 0;
        for (int round = 0; round < ROUNDS; round++) {
            produced += round(random.nextLong(), Support.again(seed) + ", round " + round);
        }
        assertTrue(produced > 100 * ROUNDS, "only " + produced + " records were produced");
        System.out.println(ROUNDS + " topologies, " + produced + " records");
    }

    private int round(long seed, String again) {
        Map<String, String> rocks = run(seed, "rocks", BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class,
                Stores::persistentVersionedKeyValueStore);
        Map<String, String> esker = run(seed, "esker", EskerDslStoreSuppliers.class,
                EskerStores::persistentVersionedKeyValueStore);
        String parts = rocks.remove("parts");
        esker.remove("parts");
        for (Map.Entry<String, String> expected : rocks.entrySet()) {
            assertEquals(expected.getValue(), esker.get(expected.getKey()), () -> again + ", " + expected.getKey()
                    + " of [" + parts + "]");
        }
        assertEquals(rocks.keySet(), esker.keySet(), () -> again + " of [" + parts + "]");
        return rocks.values().stream().mapToInt(lines -> (int) lines.chars().filter(c -> c == '\n').count()).sum();
    }

    private Map<String, String> run(long seed, String side, Class<?> suppliers, RandomTopology.Versioned versioned) {
        RandomTopology topology = new RandomTopology(seed, versioned);
        Random random = new Random(seed + 1);
        Properties properties = Support.properties(
                directory.resolve(side),
                StreamsConfig.PROCESSING_GUARANTEE_CONFIG,
                random.nextBoolean() ? StreamsConfig.EXACTLY_ONCE_V2 : StreamsConfig.AT_LEAST_ONCE,
                StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG,
                random.nextBoolean() ? "2000" : "1000000",
                StreamsConfig.DSL_STORE_FORMAT_CONFIG,
                random.nextInt(4) == 0 ? StreamsConfig.DSL_STORE_FORMAT_HEADERS : StreamsConfig.DSL_STORE_FORMAT_DEFAULT,
                StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION,
                "0");
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, suppliers);
        Map<String, String> seen = new TreeMap<>();
        seen.put("parts", topology.toString());
        try (TopologyTestDriver driver = new TopologyTestDriver(topology.build(), properties, Instant.ofEpochMilli(0))) {
            feed(driver, random);
            for (String topic : new TreeSet<>(driver.producedTopicNames())) {
                StringBuilder lines = new StringBuilder();
                driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                        .readRecordsToList()
                        .forEach(record -> lines.append(line(record)));
                seen.put("topic " + topic, lines.toString());
            }
            for (Map.Entry<String, StateStore> store : driver.getAllStateStores().entrySet()) {
                seen.put("store " + store.getKey(), content(store.getValue()));
            }
        }
        return seen;
    }

    private static void feed(TopologyTestDriver driver, Random random) {
        var inputs = new ArrayList<TestInputTopic<String, String>>();
        for (String input : RandomTopology.INPUTS) {
            inputs.add(driver.createInputTopic(input, new StringSerializer(), new StringSerializer()));
        }
        long now = 0;
        for (int i = 0; i < 150; i++) {
            now += random.nextInt(400);
            long time = Math.max(0, now - (random.nextInt(4) == 0 ? random.nextInt(12_000) : 0));
            int input = random.nextInt(inputs.size());
            String value = input == 2 && random.nextInt(5) == 0 ? null : "v" + random.nextInt(50);
            String key = "k" + random.nextInt(8);
            inputs.get(input).pipeInput(key, value, time);
            if (random.nextInt(20) == 0) {
                driver.advanceWallClockTime(Duration.ofMillis(random.nextInt(40_000)));
            }
        }
        // Everything closes.
        inputs.get(0).pipeInput("k0", "last", now + 100_000);
        inputs.get(1).pipeInput("k0", "last", now + 100_000);
    }

    private static String line(TestRecord<byte[], byte[]> record) {
        return hex(record.key()) + " " + hex(record.value()) + " " + record.timestamp() + " " + record.headers() + "\n";
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "null" : HexFormat.of().formatHex(bytes);
    }

    /** What a store holds, as far as it can be listed. */
    private static String content(StateStore store) {
        StringBuilder lines = new StringBuilder();
        if (!store.persistent()) {
            // The buffer of a suppression: its records are those of its changelog.
            return "";
        }
        if (store instanceof KeyValueStore<?, ?> entries && !(store.name().equals("versioned"))) {
            try (var all = entries.all()) {
                all.forEachRemaining(entry -> lines.append(entry).append('\n'));
            }
        } else if (store.name().startsWith(RandomTopology.CLOSING)) {
            // A cache above it shows windows that have expired, as long as it has them. RocksDB's has a cache of its
            // own kind, which lets others go.
            lines.append("windows that have closed");
        } else if (store instanceof WindowStore<?, ?> windows) {
            try (var all = windows.all()) {
                all.forEachRemaining(entry -> lines.append(entry).append('\n'));
            }
        }
        return lines.append(store.getPosition()).toString();
    }
}
