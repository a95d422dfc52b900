package dev.esker.kafka;

import static dev.esker.kafka.Support.b;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.esker.ErrorCode;
import dev.esker.EskerException;
import dev.esker.kafka.broker.Trees;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.BytesSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** What an application does wrong, or finds wrong: each has a typed exception, and nothing ends the process. */
class BadInputTest {
    @TempDir
    Path directory;

    private Support.Context context() {
        return new Support.Context(directory);
    }

    private static KeyValueStore<Bytes, byte[]> store() {
        return EskerStores.persistentKeyValueStore("s").get();
    }

    private static Bytes k(String key) {
        return Bytes.wrap(b(key));
    }

    @Test
    void whatIsClosedSaysSo() {
        KeyValueStore<Bytes, byte[]> store = context().open(store());
        store.put(k("a"), b("1"));
        KeyValueIterator<Bytes, byte[]> unread = store.all();
        KeyValueIterator<Bytes, byte[]> read = store.reverseAll();
        assertTrue(read.hasNext());
        store.close();
        store.close();
        assertFalse(store.isOpen());
        List<Executable> calls = List.of(
                () -> store.put(k("a"), b("2")),
                () -> store.putIfAbsent(k("a"), b("2")),
                () -> store.putAll(List.of(KeyValue.pair(k("a"), b("2")))),
                () -> store.putAll(List.of()),
                () -> store.delete(k("a")),
                () -> store.get(k("a")),
                () -> store.range(null, null),
                () -> store.reverseRange(null, null),
                store::all,
                store::reverseAll,
                () -> store.prefixScan(k("a"), new BytesSerializer()),
                store::approximateNumEntries,
                () -> store.committedOffset(Pair.CHANGELOG),
                unread::hasNext,
                unread::next,
                unread::peekNextKey,
                read::hasNext,
                read::next,
                read::peekNextKey);
        for (Executable call : calls) {
            assertThrows(InvalidStateStoreException.class, call);
        }
        // Kafka commits and closes in this order when a task ends badly: neither is an error.
        store.commit(Map.of());
        unread.close();
        read.close();
        unread.close();
    }

    @Test
    void aStoreThatWasNeverOpenedIsClosed() {
        KeyValueStore<Bytes, byte[]> store = store();
        assertFalse(store.isOpen());
        assertThrows(InvalidStateStoreException.class, () -> store.get(k("a")));
        assertThrows(InvalidStateStoreException.class, store::all);
        store.commit(Map.of());
        store.close();
    }

    @Test
    void nullIsRefused() {
        KeyValueStore<Bytes, byte[]> store = context().open(store());
        assertThrows(NullPointerException.class, () -> store.put(null, b("1")));
        assertThrows(NullPointerException.class, () -> store.get(null));
        assertThrows(NullPointerException.class, () -> store.delete(null));
        assertThrows(NullPointerException.class, () -> store.putIfAbsent(null, b("1")));
        assertThrows(NullPointerException.class, () -> store.prefixScan(null, new BytesSerializer()));
        assertThrows(
                NullPointerException.class,
                () -> store.putAll(List.of(KeyValue.pair(k("a"), b("1")), KeyValue.pair(null, b("1")))));
        assertNull(store.get(k("a")), "putAll wrote a part");
        store.close();
        assertThrows(NullPointerException.class, () -> EskerStores.persistentKeyValueStore(null));
        assertThrows(
                IllegalArgumentException.class,
                () -> EskerStores.persistentWindowStore("w", Duration.ofMillis(1), Duration.ofMillis(2), false));
        assertThrows(
                IllegalArgumentException.class,
                () -> EskerStores.persistentSessionStore("w", Duration.ofMillis(-1)));
        assertThrows(
                IllegalArgumentException.class,
                () -> EskerStores.persistentVersionedKeyValueStore("w", Duration.ofSeconds(1), Duration.ZERO));
    }

    @Test
    void closesMayComeInAnyOrder() {
        Support.Context context = context();
        List<KeyValueStore<Bytes, byte[]>> stores = new ArrayList<>();
        List<KeyValueIterator<Bytes, byte[]>> iterators = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            KeyValueStore<Bytes, byte[]> store =
                    context.open(EskerStores.persistentKeyValueStore("s" + i).get());
            store.put(k("a"), b("1"));
            stores.add(store);
            iterators.add(store.all());
        }
        stores.get(2).close();
        iterators.get(2).close();
        iterators.get(0).close();
        stores.get(0).close();
        assertTrue(iterators.get(1).hasNext());
        stores.get(3).close();
        assertEquals(k("a"), iterators.get(1).next().key);
        stores.get(1).close();
        iterators.get(1).close();
        iterators.get(3).close();
        KeyValueStore<Bytes, byte[]> again = context.open(store());
        again.close();
    }

    @Test
    void readersMayRunWhileAStoreIsClosed() throws InterruptedException {
        for (int round = 0; round < 20; round++) {
            KeyValueStore<Bytes, byte[]> store = context().open(store());
            for (int i = 0; i < 200; i++) {
                store.put(Child.key(i), b("value"));
            }
            CountDownLatch reading = new CountDownLatch(2);
            AtomicReference<Throwable> wrong = new AtomicReference<>();
            List<Thread> readers = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                boolean scans = i == 0;
                Thread reader = new Thread(() -> {
                    try {
                        while (true) {
                            read(store, scans);
                            reading.countDown();
                        }
                    } catch (InvalidStateStoreException closed) {
                        reading.countDown();
                    } catch (Throwable other) {
                        wrong.set(other);
                        reading.countDown();
                    }
                });
                readers.add(reader);
                reader.start();
            }
            reading.await();
            store.close();
            for (Thread reader : readers) {
                reader.join();
            }
            assertNull(wrong.get());
        }
    }

    private static void read(KeyValueStore<Bytes, byte[]> store, boolean scans) {
        if (!scans) {
            store.get(Child.key(7));
            return;
        }
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            while (all.hasNext()) {
                all.next();
            }
        }
    }

    @Test
    void wrongSerdesAreTold() {
        Support.Context context = context();
        KeyValueStore<String, String> written = Stores.keyValueStoreBuilder(
                        EskerStores.persistentKeyValueStore("s"), Serdes.String(), Serdes.String())
                .withLoggingDisabled()
                .build();
        context.open(written);
        written.put("a", "no number");
        written.close();
        KeyValueStore<String, Long> read = Stores.keyValueStoreBuilder(
                        EskerStores.persistentKeyValueStore("s"), Serdes.String(), Serdes.Long())
                .withLoggingDisabled()
                .build();
        context.open(read);
        assertThrows(SerializationException.class, () -> read.get("a"));
        read.put("b", 1L);
        assertEquals(1L, read.get("b"));
        read.close();
        @SuppressWarnings({"unchecked", "rawtypes"})
        KeyValueStore<Object, Object> wrong = (KeyValueStore) Stores.keyValueStoreBuilder(
                        EskerStores.persistentKeyValueStore("s"), Serdes.String(), Serdes.Long())
                .withLoggingDisabled()
                .build();
        context.open(wrong);
        assertThrows(StreamsException.class, () -> wrong.put(5, 5L));
        assertThrows(StreamsException.class, () -> wrong.put("c", "five"));
        assertEquals(1L, wrong.get("b"));
        wrong.close();
    }

    @Test
    void theStateOfRocksDbIsRefusedByName() throws IOException {
        KeyValueStore<Bytes, byte[]> rocks =
                context().open(Stores.persistentKeyValueStore("s").get());
        rocks.put(k("a"), b("1"));
        rocks.close();
        assertRefused(() -> context().open(store()), "rocksdb");
        WindowStore<Bytes, byte[]> windows = context().open(Stores.persistentWindowStore(
                        "w", Duration.ofMinutes(5), Duration.ofMinutes(1), false)
                .get());
        windows.put(k("a"), b("1"), 0);
        windows.close();
        assertRefused(
                () -> context().open(EskerStores.persistentWindowStore(
                                "w", Duration.ofMinutes(5), Duration.ofMinutes(1), false)
                        .get()),
                "w");
        // Another store of the task may be Esker's; and what was refused is opened when the state is gone.
        context().open(EskerStores.persistentKeyValueStore("other").get()).close();
        Trees.remove(directory.resolve("rocksdb"));
        KeyValueStore<Bytes, byte[]> store = context().open(store());
        assertNull(store.committedOffset(Pair.CHANGELOG), "it is not restored from its changelog");
        store.close();
    }

    private void assertRefused(Executable opens, String name) {
        ProcessorStateException refused = assertThrows(ProcessorStateException.class, opens);
        String message = refused.getMessage();
        assertTrue(message.contains(directory.resolve(name).toString()), message);
        assertTrue(message.contains("RocksDB"), message);
        assertTrue(message.contains("KafkaStreams.cleanUp()") && message.contains("changelog"), message);
    }

    @Test
    void aStoreOfAnotherKindIsRefused() {
        KeyValueStore<Bytes, byte[]> store = context().open(store());
        store.put(k("a"), b("1"));
        store.close();
        ProcessorStateException refused = assertThrows(
                ProcessorStateException.class,
                () -> context().open(EskerStores.persistentVersionedKeyValueStore("s", Duration.ofMinutes(1)).get()));
        assertTrue(refused.getMessage().contains("[key-value store]"), refused.getMessage());
        KeyValueStore<Bytes, byte[]> again = context().open(store());
        assertArrayEquals(b("1"), again.get(k("a")));
        again.close();
    }

    @Test
    void aDirectoryIsOpenOnce() throws Exception {
        KeyValueStore<Bytes, byte[]> store = context().open(store());
        ProcessorStateException twice =
                assertThrows(ProcessorStateException.class, () -> context().open(store()));
        assertTrue(twice.getMessage().contains("open already"), twice.getMessage());
        store.put(k("a"), b("1"));
        store.close();

        Process child = Child.start(List.of(), "hold", directory.toString()).start();
        try (BufferedReader said = new BufferedReader(new InputStreamReader(child.getInputStream()))) {
            String line = said.readLine();
            while (line != null && !line.equals("open")) {
                line = said.readLine();
            }
            assertEquals("open", line);
            ProcessorStateException elsewhere =
                    assertThrows(ProcessorStateException.class, () -> context().open(store()));
            EskerException cause = assertInstanceOf(EskerException.class, elsewhere.getCause());
            assertEquals(ErrorCode.LOCKED, cause.code());
            child.getOutputStream().close();
            assertEquals(0, child.waitFor());
        }
        KeyValueStore<Bytes, byte[]> again = context().open(store());
        assertArrayEquals(b("1"), again.get(k("a")));
        assertArrayEquals(b("yes"), again.get(k("held")));
        again.close();
    }

    @Test
    void whatIsTooLargeIsRefusedAlone() {
        KeyValueStore<Bytes, byte[]> store = context().open(store());
        byte[] large = new byte[8 << 20];
        assertThrows(ProcessorStateException.class, () -> store.put(Bytes.wrap(new byte[65_536]), b("1")));
        assertThrows(ProcessorStateException.class, () -> store.put(k("a"), large));
        assertThrows(
                ProcessorStateException.class,
                () -> store.putAll(List.of(KeyValue.pair(k("a"), b("1")), KeyValue.pair(k("b"), large))));
        assertNull(store.get(k("a")), "putAll wrote a part");
        store.put(Bytes.wrap(new byte[65_535]), b("1"));
        assertNotNull(store.get(Bytes.wrap(new byte[65_535])));
        store.close();
    }

    @Test
    void optionsAreChecked() {
        for (String[] wrong : new String[][] {
            {"esker.memori", "1"},
            {"esker.memory", "much"},
            {"esker.memory", "-1"},
            {"esker.durability", "buffered"},
            {"esker.durability", "sometimes"},
            {"esker.compression", "zip"},
            {"esker.workers", "1.5"},
        }) {
            ConfigException refused = assertThrows(
                    ConfigException.class, () -> new Support.Context(directory, wrong).open(store()));
            assertTrue(refused.getMessage().contains(wrong[0]), refused.getMessage());
        }
        KeyValueStore<Bytes, byte[]> store = new Support.Context(
                        directory,
                        "esker.durability",
                        "disk",
                        "esker.compression",
                        "zstd",
                        "esker.workers",
                        "2")
                .open(store());
        store.put(k("a"), b("1"));
        store.close();
    }

    @Test
    void aFullDiskIsToldAndWritesGoOnAfterwards() throws Exception {
        Path small = Files.createDirectories(directory.resolve("small"));
        String mount = "mount -t tmpfs -o size=120m tmpfs '" + small + "' && exec \"$@\"";
        List<String> inside = null;
        for (List<String> unshare : List.of(List.of("unshare", "-m"), List.of("unshare", "-rm"))) {
            List<String> tried = new ArrayList<>(unshare);
            tried.addAll(List.of("sh", "-c", mount, "sh"));
            List<String> probe = new ArrayList<>(tried);
            probe.add("true");
            if (runs(probe)) {
                inside = tried;
                break;
            }
        }
        assumeTrue(inside != null, "no small device can be made here");
        Path output = directory.resolve("output.txt");
        int status = Child.start(inside, "fill", small.toString())
                .redirectOutput(output.toFile())
                .start()
                .waitFor();
        assertEquals(0, status, () -> text(output));
    }

    private static boolean runs(List<String> command) throws InterruptedException {
        try {
            return new ProcessBuilder(command).redirectErrorStream(true).start().waitFor() == 0;
        } catch (IOException e) {
            return false;
        }
    }

    private static String text(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            return e.toString();
        }
    }
}
