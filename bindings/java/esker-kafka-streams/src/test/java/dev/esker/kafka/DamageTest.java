package dev.esker.kafka;

import static dev.esker.kafka.Support.b;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.esker.kafka.broker.Trees;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Processes that end without closing, and damage: what is left is restored from the changelog, and no more. */
class DamageTest {
    private static final int ROUNDS = Support.LONG ? 400 : 25;

    @TempDir
    Path directory;

    private static KeyValueStore<Bytes, byte[]> store() {
        return EskerStores.persistentKeyValueStore("s").get();
    }

    private void halted(Path place) throws Exception {
        Files.createDirectories(place);
        assertEquals(0, Child.start(List.of(), "halt", place.toString()).start().waitFor());
    }

    private static Support.Context exactlyOnce(Path place) {
        return new Support.Context(
                place, StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    }

    @Test
    void whatWasWrittenOutlivesTheProcess() throws Exception {
        halted(directory);
        KeyValueStore<Bytes, byte[]> store = new Support.Context(directory).open(store());
        for (int i = 0; i < Child.ENTRIES; i++) {
            assertArrayEquals(b("value " + i), store.get(Child.key(i)));
        }
        assertEquals((Child.ENTRIES - 1) / 3 * 3, store.committedOffset(Pair.CHANGELOG));
        store.close();
    }

    @Test
    void underExactlyOnceAStoreThatWasNotClosedIsCorrupt() throws Exception {
        halted(directory);
        TaskCorruptedException corrupt =
                assertThrows(TaskCorruptedException.class, () -> exactlyOnce(directory).open(store()));
        assertEquals(Set.of(new TaskId(0, 0)), corrupt.corruptedTasks());
        // Kafka deletes the directory of the task then.
        Trees.remove(directory.resolve(StoreHome.DIRECTORY));
        KeyValueStore<Bytes, byte[]> fresh = exactlyOnce(directory).open(store());
        assertNull(fresh.committedOffset(Pair.CHANGELOG));
        assertNull(fresh.get(Child.key(0)));
        fresh.put(Child.key(0), b("new"));
        fresh.commit(Map.of(Pair.CHANGELOG, 7L));
        fresh.close();
        KeyValueStore<Bytes, byte[]> closed = exactlyOnce(directory).open(store());
        assertArrayEquals(b("new"), closed.get(Child.key(0)));
        assertEquals(7L, closed.committedOffset(Pair.CHANGELOG));
        closed.close();
    }

    /** The log is cut or overwritten at any place: what is left is a beginning of what was written. */
    @Test
    void offsetsAreNeverAheadOfData() throws Exception {
        long seed = Support.seed();
        System.out.println(Support.again(seed));
        Random random = new Random(seed);
        Path origin = directory.resolve("origin");
        halted(origin);
        int offsets = 0;
        for (int round = 0; round < ROUNDS; round++) {
            Path place = directory.resolve("round-" + round);
            Trees.copy(origin, place);
            damageLog(place.resolve(StoreHome.ALONE).resolve("wal"), random);
            String again = Support.again(seed) + ", round " + round;
            KeyValueStore<Bytes, byte[]> store = new Support.Context(place).open(store());
            Long offset = store.committedOffset(Pair.CHANGELOG);
            long entries = count(store);
            for (int i = 0; i < entries; i++) {
                assertNotNull(store.get(Child.key(i)), again + ": entry " + i + " of " + entries + " is missing");
            }
            if (offset != null) {
                offsets++;
                assertTrue(offset < entries, again + ": offset " + offset + " with " + entries + " entries");
                assertTrue(offset >= entries - 4, again + ": offset " + offset + " with " + entries + " entries");
            }
            store.close();
            Trees.remove(place);
        }
        assertTrue(offsets > ROUNDS / 4, "only " + offsets + " of " + ROUNDS + " kept an offset");
    }

    private static long count(KeyValueStore<Bytes, byte[]> store) {
        long entries = 0;
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            while (all.hasNext()) {
                all.next();
                entries++;
            }
        }
        return entries;
    }

    private static void damageLog(Path log, Random random) throws IOException {
        List<Path> files;
        try (Stream<Path> all = Files.list(log)) {
            files = all.filter(file -> file.toString().endsWith(".log")).sorted().toList();
        }
        Path file = files.get(random.nextInt(files.size()));
        try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
            long at = 64 + (long) (random.nextDouble() * (bytes.length() - 64));
            if (random.nextBoolean()) {
                bytes.setLength(at);
            } else {
                byte[] other = new byte[1 + random.nextInt(64)];
                random.nextBytes(other);
                bytes.seek(at);
                bytes.write(other, 0, (int) Math.min(other.length, bytes.length() - at));
            }
        }
    }

    private List<ConsumerRecord<byte[], byte[]>> fill(KeyValueStore<Bytes, byte[]> store, Random random) {
        List<ConsumerRecord<byte[], byte[]>> changelog = new ArrayList<>();
        for (int i = 0; i < 2_000; i++) {
            byte[] value = new byte[500];
            random.nextBytes(value);
            store.put(Child.key(i), value);
            changelog.add(Support.record(i, 0, Child.key(i).get(), value));
        }
        store.commit(Map.of(Pair.CHANGELOG, 1_999L));
        return changelog;
    }

    @Test
    void aDamagedStoreIsDroppedAndRestored() throws Exception {
        Support.Context context = new Support.Context(directory);
        KeyValueStore<Bytes, byte[]> store = context.open(store());
        List<ConsumerRecord<byte[], byte[]>> changelog = fill(store, new Random(5));
        store.close();
        for (Path file : data()) {
            overwrite(file);
        }
        KeyValueStore<Bytes, byte[]> damaged = context.open(store());
        TaskCorruptedException corrupt = assertThrows(TaskCorruptedException.class, () -> count(damaged));
        assertEquals(Set.of(new TaskId(0, 0)), corrupt.corruptedTasks());
        // What Kafka does with a corrupt task: no offsets any more, close, and open again.
        damaged.commit(Map.of());
        damaged.close();
        KeyValueStore<Bytes, byte[]> fresh = context.open(store());
        assertNull(fresh.committedOffset(Pair.CHANGELOG));
        assertEquals(0, count(fresh));
        context.restore(changelog);
        assertEquals(2_000, count(fresh));
        assertArrayEquals(changelog.get(7).value(), fresh.get(Child.key(7)));
        fresh.close();
    }

    @Test
    void aDatabaseThatCannotBeOpenedIsSetAside() throws Exception {
        Support.Context context = new Support.Context(directory);
        KeyValueStore<Bytes, byte[]> store = context.open(store());
        List<ConsumerRecord<byte[], byte[]>> changelog = fill(store, new Random(6));
        store.close();
        try (Stream<Path> files = Files.list(directory.resolve(StoreHome.ALONE))) {
            for (Path file : files.toList()) {
                String name = file.getFileName().toString();
                if (name.startsWith("superblock") || name.startsWith("MANIFEST")) {
                    overwrite(file);
                }
            }
        }
        for (int times = 0; times < 2; times++) {
            KeyValueStore<Bytes, byte[]> fresh = context.open(store());
            assertNull(fresh.committedOffset(Pair.CHANGELOG));
            assertEquals(0, count(fresh));
            assertTrue(Files.isDirectory(directory.resolve(StoreHome.ALONE + ".damaged")));
            if (times == 1) {
                context.restore(changelog);
                assertEquals(2_000, count(fresh));
            }
            fresh.close();
        }
        assertFalse(Support.files(directory.resolve(StoreHome.ALONE)).isEmpty());
    }

    private List<Path> data() throws IOException {
        try (Stream<Path> all = Files.walk(directory.resolve(StoreHome.ALONE))) {
            return all.filter(Files::isRegularFile)
                    .filter(file -> file.toString().endsWith(".run"))
                    .toList();
        }
    }

    /** Overwrites the middle of a file. */
    private static void overwrite(Path file) throws IOException {
        try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
            byte[] other = new byte[(int) (bytes.length() / 3)];
            new Random(3).nextBytes(other);
            bytes.seek(bytes.length() / 4);
            bytes.write(other);
        }
    }
}
