package dev.esker;

import static dev.esker.Support.b;
import static dev.esker.Support.number;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is not closed is reported and freed; what is closed leaves nothing behind. */
class LeakTest {
    @TempDir Path directory;

    /** What other tests left is not reported in these. */
    @BeforeEach
    void settle() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(100);
        }
    }

    @AfterEach
    void defaultListener() {
        Leaks.setListener(null);
    }

    /** Collects garbage until something holds, for a minute at most. */
    private static boolean afterCollections(BooleanSupplier holds) throws InterruptedException {
        for (int i = 0; i < 600 && !holds.getAsBoolean(); i++) {
            System.gc();
            Thread.sleep(100);
        }
        return holds.getAsBoolean();
    }

    private void leave(Database database, Keyspace keyspace) {
        database.snapshot("left");
        keyspace.cursor().next();
        new Batch().put(keyspace, b("k"), b("v"));
        Transaction transaction = database.begin();
        transaction.cursor(keyspace, null, null).next();
        database.ingestion();
        keyspace.openValue(b("k"));
        database.keyspace("default");
    }

    @Test
    void whatIsNotClosedIsReportedAndFreed() throws Exception {
        List<Leaks.Leak> leaks = Collections.synchronizedList(new ArrayList<>());
        Leaks.setListener(leaks::add);
        long before = Leaks.count();
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            keyspace.put(b("k"), b("v"));
            leave(database, keyspace);
            assertTrue(afterCollections(() -> leaks.size() >= 8), leaks.toString());
            assertEquals(8, leaks.size());
            assertEquals(8, Leaks.count() - before);
            for (String what :
                    List.of(
                            "snapshot of",
                            "cursor on",
                            "batch",
                            "transaction of",
                            "cursor of a transaction",
                            "ingestion",
                            "reader of a value",
                            "keyspace default")) {
                assertTrue(leaks.stream().anyMatch(leak -> leak.what().startsWith(what)), what);
            }
            assertTrue(!database.stats().contains("\"left\""), "the snapshot is gone");
        }
    }

    private void leaveADatabase() {
        Database database = Support.open(directory);
        database.keyspace("default").put(b("k"), b("v"));
    }

    @Test
    void aDatabaseThatIsNotClosedIsClosed() throws Exception {
        List<Leaks.Leak> leaks = Collections.synchronizedList(new ArrayList<>());
        Leaks.setListener(leaks::add);
        leaveADatabase();
        assertTrue(afterCollections(() -> leaks.size() >= 2));
        boolean[] opened = new boolean[1];
        assertTrue(
                afterCollections(
                        () -> {
                            try (Database database = Support.open(directory)) {
                                opened[0] = true;
                            } catch (EskerException stillOpen) {
                                assertEquals(ErrorCode.LOCKED, stillOpen.code());
                            }
                            return opened[0];
                        }));
    }

    @Test
    void aListenerThatFails() throws Exception {
        Leaks.setListener(
                leak -> {
                    throw new IllegalStateException("reported");
                });
        long before = Leaks.count();
        new Batch();
        new Batch();
        assertTrue(afterCollections(() -> Leaks.count() >= before + 2));
    }

    @Test
    void buffersOnValuesGiveTheirMemoryBack() throws Exception {
        try (Database database = Database.open(directory.resolve("db"), new Options().memory(64L << 20));
                Keyspace keyspace = database.keyspace("default")) {
            byte[] value = new byte[1 << 20];
            keyspace.put(b("k"), value);
            database.flush();
            List<ByteBuffer> slices = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                // Views keep what they show.
                slices.add(keyspace.getBuffer(b("k")).slice(1 << 19, 10));
                assertTrue(Buffers.held() <= 65L << 20);
            }
            System.gc();
            Thread.sleep(300);
            assertTrue(Buffers.held() > 50L << 20, "slices of them are all that is left");
            assertTrue(slices.stream().allMatch(slice -> slice.get(9) == 0));
            slices.clear();
            assertTrue(afterCollections(() -> Buffers.held() == 0));
        }
    }

    /** Growth beyond what warming up takes. */
    private static void assertNoGrowth(int rounds, long allowed, Support.Work work) throws Exception {
        for (int i = 0; i < rounds / 4; i++) {
            work.run(i);
        }
        System.gc();
        Thread.sleep(500);
        long before = Support.resident();
        for (int i = 0; i < rounds; i++) {
            work.run(i);
        }
        System.gc();
        Thread.sleep(500);
        long grown = Support.resident() - before;
        assertTrue(grown < allowed, "it grew by " + grown + " bytes in " + rounds + " rounds");
    }

    @Test
    void handlesLeaveNothingBehind() throws Exception {
        long leaks = Leaks.count();
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            for (int i = 0; i < 1000; i++) {
                keyspace.put(number(i), number(i));
            }
            assertNoGrowth(
                    Support.LONG ? 1_000_000 : 30_000,
                    64L << 20,
                    round -> {
                        try (Cursor cursor = keyspace.cursor();
                                Batch batch = new Batch();
                                Snapshot snapshot = database.snapshot();
                                Transaction transaction = database.begin();
                                Keyspace other = database.keyspace("default")) {
                            cursor.seek(number(round % 1000));
                            cursor.next();
                            batch.put(other, b("k"), b("v"));
                            snapshot.contains(keyspace, b("k"));
                            transaction.put(keyspace, b("k"), b("v"));
                            keyspace.get(number(round % 1000));
                        }
                        for (byte[] key : keyspace.map().keySet()) {
                            if (key != null) {
                                break;
                            }
                        }
                    });
        }
        assertEquals(leaks, Leaks.count());
    }

    @Test
    void errorsLeaveNothingBehind() throws Exception {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            byte[] tooLong = new byte[65_536];
            assertNoGrowth(
                    Support.LONG ? 1_000_000 : 20_000,
                    64L << 20,
                    round -> {
                        try {
                            keyspace.put(tooLong, tooLong);
                            throw new AssertionError("it is too long");
                        } catch (InvalidArgumentException expected) {
                            // Each exception is one.
                        }
                    });
        }
    }

    @Test
    void opensLeaveNothingBehind() throws Exception {
        Support.open(directory).close();
        assertNoGrowth(
                Support.LONG ? 10_000 : 100,
                96L << 20,
                round -> {
                    try (Database database = Support.open(directory);
                            Keyspace keyspace = database.keyspace("default")) {
                        keyspace.put(number(round % 10), number(round));
                    }
                });
    }
}
