package dev.esker.kafka;

import static dev.esker.kafka.Support.b;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.esker.Database;
import dev.esker.kafka.broker.Trees;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.StateDirectory;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The life of stores in the directories of an application: what is shared, what goes, and what stays. */
class LifeTest {
    @TempDir
    Path state;

    private Path application;
    private final Metrics metrics = new Metrics();

    @BeforeEach
    void application() {
        application = state.resolve("app");
    }

    private Support.Context task(int partition) {
        return new Support.Context(
                application.resolve("0_" + partition), new TaskId(0, partition), metrics, StoreSettings.MEMORY,
                "20000000");
    }

    private static KeyValueStore<Bytes, byte[]> store(String name) {
        return EskerStores.persistentKeyValueStore(name).get();
    }

    private static Bytes k(String key) {
        return Bytes.wrap(b(key));
    }

    private List<String> keyspaces() {
        try (Database database = Database.open(application.resolve(StoreHome.DIRECTORY))) {
            List<String> names = new ArrayList<>(database.keyspaces());
            names.removeAll(List.of("default", "stores"));
            return names;
        }
    }

    @Test
    void allTasksShareADatabase() throws Exception {
        List<KeyValueStore<Bytes, byte[]>> stores = new ArrayList<>();
        for (int partition = 0; partition < 4; partition++) {
            for (String name : List.of("one", "two")) {
                KeyValueStore<Bytes, byte[]> store = task(partition).open(store(name));
                store.put(k("a"), b(name + partition));
                stores.add(store);
            }
        }
        assertArrayEquals(b("one2"), stores.get(4).get(k("a")));
        stores.forEach(KeyValueStore::close);
        List<String> names = keyspaces();
        assertEquals(8, names.size());
        assertTrue(names.get(0).startsWith("0_0/one."), names.get(0));
        // A task has nothing but small files that name its keyspaces.
        assertEquals(List.of("esker/one", "esker/two"), Support.files(application.resolve("0_3")).stream().sorted().toList());
    }

    @Test
    void aTaskWhoseDirectoryIsGoneBeginsAnew() throws Exception {
        for (int partition = 0; partition < 2; partition++) {
            KeyValueStore<Bytes, byte[]> store = task(partition).open(store("s"));
            store.put(k("a"), b("1"));
            store.commit(Map.of(Pair.CHANGELOG, 5L));
            store.close();
        }
        Trees.remove(application.resolve("0_1"));
        KeyValueStore<Bytes, byte[]> kept = task(0).open(store("s"));
        KeyValueStore<Bytes, byte[]> fresh = task(1).open(store("s"));
        assertArrayEquals(b("1"), kept.get(k("a")));
        assertEquals(5L, kept.committedOffset(Pair.CHANGELOG));
        assertNull(fresh.get(k("a")));
        assertNull(fresh.committedOffset(Pair.CHANGELOG));
        assertTrue(fresh.getPosition().isEmpty());
        // While the database is open too: the task moves away, its directory is deleted, and it comes back.
        fresh.put(k("b"), b("2"));
        fresh.close();
        Trees.remove(application.resolve("0_1"));
        KeyValueStore<Bytes, byte[]> back = task(1).open(store("s"));
        assertNull(back.get(k("b")));
        back.close();
        kept.close();
        assertEquals(2, keyspaces().size());
    }

    @Test
    void theStateOfAnotherInstanceIsNotUsed() throws Exception {
        KeyValueStore<Bytes, byte[]> store = task(0).open(store("s"));
        store.put(k("a"), b("1"));
        store.commit(Map.of(Pair.CHANGELOG, 5L));
        store.close();
        // The directory of the task alone was copied to another instance, whose database does not know it.
        Path other = state.resolve("other").resolve("app").resolve("0_0");
        Files.createDirectories(other.resolve(StoreHome.DIRECTORY));
        Files.copy(
                application.resolve("0_0").resolve(StoreHome.DIRECTORY).resolve("s"),
                other.resolve(StoreHome.DIRECTORY).resolve("s"));
        KeyValueStore<Bytes, byte[]> moved = new Support.Context(other).open(store("s"));
        assertNull(moved.committedOffset(Pair.CHANGELOG));
        assertNull(moved.get(k("a")));
        moved.close();
    }

    @Test
    void cleanUpLeavesNothingToTheNextStart() {
        StreamsConfig config = new StreamsConfig(Support.properties(state));
        StateDirectory directory = new StateDirectory(config, Time.SYSTEM, true, false);
        directory.initializeProcessId();
        KeyValueStore<Bytes, byte[]> store = task(0).open(store("s"));
        store.put(k("a"), b("1"));
        store.close();
        // The database is no task: Kafka neither lists it nor removes it as an old one.
        directory.cleanRemovedTasks(-1);
        assertTrue(Files.isDirectory(application.resolve(StoreHome.DIRECTORY)));
        assertFalse(Files.exists(application.resolve("0_0")));
        store = task(0).open(store("s"));
        assertNull(store.get(k("a")), "the cleaner removed the task, and its state with it");
        store.put(k("a"), b("2"));
        store.close();
        directory.clean();
        directory.close();
        store = task(0).open(store("s"));
        assertNull(store.get(k("a")));
        store.close();
        assertEquals(1, keyspaces().size());
    }

    @Test
    void aDatabaseWithoutStoresGoesWithTheProcess() throws Exception {
        Path database = application.resolve(StoreHome.DIRECTORY);
        String task = application.resolve("0_0").toString();
        assertEquals(0, Child.start(List.of(), "keep", task).start().waitFor());
        KeyValueStore<Bytes, byte[]> kept = task(0).open(store("s"));
        assertArrayEquals(b("1"), kept.get(Child.key(1)));
        kept.close();
        assertEquals(0, Child.start(List.of(), "clean", task).start().waitFor());
        assertFalse(Files.exists(database));
    }

    /** What a store does when the engine says that an earlier failure has ended all writes. */
    @Test
    void aDatabaseThatWritesNoMoreIsOpenedAgain() {
        KeyValueStore<Bytes, byte[]> store = task(0).open(store("s"));
        KeyValueStore<Bytes, byte[]> other = task(1).open(store("s"));
        store.put(k("a"), b("1"));
        Path path = application.resolve(StoreHome.DIRECTORY);
        StoreDatabase database = StoreDatabase.acquire(path, StoreSettings.of(Map.of()));
        database.retire();
        database.retire();
        database.release();
        assertThrows(InvalidStateStoreException.class, () -> store.put(k("a"), b("2")));
        assertThrows(InvalidStateStoreException.class, () -> other.get(k("a")));
        store.close();
        KeyValueStore<Bytes, byte[]> again = task(0).open(store("s"));
        assertArrayEquals(b("1"), again.get(k("a")));
        // The last user of the one that was closed goes; the other one stays open.
        other.close();
        again.put(k("a"), b("3"));
        assertArrayEquals(b("3"), again.get(k("a")));
        again.close();
        assertEquals(2, keyspaces().size());
    }

    @Test
    void metricsAreInKafkasRegistryWhileAStoreIsOpen() {
        int before = metrics.metrics().size();
        KeyValueStore<Bytes, byte[]> store = task(0).open(store("s"));
        KeyValueStore<Bytes, byte[]> other = task(1).open(store("s"));
        for (int i = 0; i < 10; i++) {
            store.put(Child.key(i), b("value"));
        }
        assertEquals(10L, value("estimate-num-keys", "task-id", "0_0"));
        assertEquals(0L, value("estimate-num-keys", "task-id", "0_1"));
        assertTrue((Long) value("estimate-bytes-on-disk", "task-id", "0_0") >= 0);
        // One budget for all stores of the instance.
        assertEquals(20_000_000.0, value("memory-limit-bytes", "client-id", "client"));
        for (String name : List.of(
                "memory-bytes", "data-file-bytes", "log-file-bytes", "cache-hits-total", "cache-misses-total",
                "block-read-bytes-total", "commits-total", "flushes-total", "compactions-total",
                "compaction-debt-bytes", "stall-seconds-total")) {
            assertNotNull(value(name, "client-id", "client"), name);
        }
        store.close();
        assertNotNull(value("memory-bytes", "client-id", "client"));
        other.close();
        assertEquals(before, metrics.metrics().size(), () -> metrics.metrics().keySet().toString());
    }

    private Object value(String name, String tag, String of) {
        for (Map.Entry<MetricName, ?> entry : metrics.metrics().entrySet()) {
            if (entry.getKey().name().equals(name) && of.equals(entry.getKey().tags().get(tag))) {
                return metrics.metric(entry.getKey()).metricValue();
            }
        }
        throw new AssertionError("no metric " + name);
    }

    @Test
    void sumsOfOpenMetricsAreOverAllLabels() {
        Map<String, Double> sums = DatabaseMetrics.sums("# TYPE a gauge\na{x=\"1 }\"} 2\na{x=\"2\"} 3.5\nb 7\n\n# EOF\n");
        assertEquals(new HashMap<>(Map.of("a", 5.5, "b", 7.0)), sums);
    }

    @Test
    void versionsOutliveClosing() {
        try (Versions versions = new Versions()) {
            for (int i = 0; i < 40; i++) {
                versions.put(i * 1_000, i % 7 == 3 ? null : "v" + i);
            }
            versions.check();
            versions.reopen();
            versions.check();
            versions.put(20_500, "late");
            versions.check();
            versions.reopen();
            versions.check();
        }
    }

    /** A versioned store with one key, beside a map of its versions. */
    private final class Versions implements AutoCloseable {
        private final TreeMap<Long, String> expected = new TreeMap<>();
        private VersionedBytesStore store;

        Versions() {
            reopen();
        }

        void reopen() {
            if (store != null) {
                store.close();
            }
            store = task(0).open((VersionedBytesStore) EskerStores.persistentVersionedKeyValueStore(
                            "v", Duration.ofMinutes(2), Duration.ofSeconds(7))
                    .get());
        }

        void put(long time, String value) {
            expected.put(time, value);
            store.put(k("key"), value == null ? null : b(value), time);
        }

        void check() {
            for (long from = -500; from < 42_000; from += 1_700) {
                for (long to = from; to < 43_000; to += 2_300) {
                    for (boolean ascending : new boolean[] {true, false}) {
                        assertEquals(expected(from, to, ascending), found(from, to, ascending));
                    }
                }
            }
        }

        private List<String> expected(long from, long to, boolean ascending) {
            List<String> versions = new ArrayList<>();
            for (Map.Entry<Long, String> entry : expected.entrySet()) {
                Long end = expected.higherKey(entry.getKey());
                if (entry.getValue() != null && entry.getKey() <= to && (end == null || end > from)) {
                    versions.add(ascending ? versions.size() : 0, entry.getValue() + "@" + entry.getKey() + "-" + end);
                }
            }
            return versions;
        }

        private List<String> found(long from, long to, boolean ascending) {
            MultiVersionedKeyQuery<Bytes, byte[]> query = MultiVersionedKeyQuery.<Bytes, byte[]>withKey(k("key"))
                    .fromTime(Instant.ofEpochMilli(from))
                    .toTime(Instant.ofEpochMilli(to));
            query = ascending ? query.withAscendingTimestamps() : query.withDescendingTimestamps();
            var result = store.query(query, PositionBound.unbounded(), new QueryConfig(true));
            assertFalse(result.getExecutionInfo().isEmpty());
            List<String> versions = new ArrayList<>();
            try (VersionedRecordIterator<byte[]> iterator = result.getResult()) {
                while (iterator.hasNext()) {
                    VersionedRecord<byte[]> record = iterator.next();
                    versions.add(Support.s(record.value()) + "@" + record.timestamp() + "-"
                            + record.validTo().orElse(null));
                }
            }
            return versions;
        }

        @Override
        public void close() {
            store.close();
        }
    }

    @Test
    void aQueryWaitsForItsPosition() {
        Support.Context context = task(0);
        VersionedBytesStore store = context.open((VersionedBytesStore)
                EskerStores.persistentVersionedKeyValueStore("v", Duration.ofMinutes(2)).get());
        context.at(1);
        store.put(k("key"), b("1"), 1);
        Position seen = store.getPosition().copy();
        Position later = Position.emptyPosition().withComponent("input", 0, 1_000);
        var query = MultiVersionedKeyQuery.<Bytes, byte[]>withKey(k("key"));
        try (VersionedRecordIterator<byte[]> found =
                store.query(query, PositionBound.at(seen), new QueryConfig(false)).getResult()) {
            assertTrue(found.hasNext());
        }
        assertFalse(store.query(query, PositionBound.at(later), new QueryConfig(false)).isSuccess());
        store.close();
    }
}
