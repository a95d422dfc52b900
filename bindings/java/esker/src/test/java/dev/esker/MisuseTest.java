package dev.esker;

import static dev.esker.Support.b;
import static dev.esker.Support.number;
import static dev.esker.Support.s;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Wrong calls get an exception that says so, and nothing else happens. */
class MisuseTest {
    @TempDir Path directory;

    @Test
    void whatWasClosedSaysSo() {
        Database database = Support.open(directory);
        Keyspace keyspace = database.keyspace("default");
        keyspace.put(b("k"), b("v"));
        Snapshot snapshot = database.snapshot();
        Cursor cursor = keyspace.cursor();
        cursor.next();
        Batch batch = new Batch();
        Transaction transaction = database.begin();
        TransactionCursor walk = transaction.cursor(keyspace, null, null);
        Ingestion ingestion = database.ingestion();
        ValueReader reader = keyspace.openValue(b("k"));
        for (int i = 0; i < 2; i++) {
            walk.close();
            transaction.close();
            ingestion.close();
            reader.close();
            batch.close();
            cursor.close();
            snapshot.close();
        }
        List<Executable> calls =
                List.of(
                        cursor::next,
                        cursor::isValid,
                        cursor::key,
                        cursor::valueBuffer,
                        () -> cursor.seek(b("k")),
                        () -> snapshot.get(keyspace, b("k")),
                        snapshot::position,
                        batch::size,
                        () -> batch.put(keyspace, b("k"), b("v")),
                        () -> database.write(batch),
                        transaction::commit,
                        () -> transaction.get(keyspace, b("k")),
                        walk::next,
                        ingestion::commit,
                        () -> ingestion.put(keyspace, b("k"), b("v")),
                        reader::read,
                        reader::length);
        for (Executable call : calls) {
            assertEquals(ErrorCode.CLOSED, assertThrows(ClosedException.class, call).code());
        }
        keyspace.close();
        keyspace.close();
        List<Executable> onKeyspace =
                List.of(
                        () -> keyspace.get(b("k")),
                        () -> keyspace.put(b("k"), b("v")),
                        keyspace::cursor,
                        () -> keyspace.map().size(),
                        () -> database.transact(again -> again.get(keyspace, b("k"))));
        for (Executable call : onKeyspace) {
            assertThrows(ClosedException.class, call);
        }
        database.close();
        database.close();
        for (Executable call :
                List.<Executable>of(
                        database::keyspaces, () -> database.keyspace("x"), database::snapshot, database::stats)) {
            assertThrows(ClosedException.class, call);
        }
        Support.open(directory).close();
    }

    @Test
    void whatOutlivesItsDatabase() {
        Database database = Support.open(directory);
        Keyspace keyspace = database.keyspace("default");
        for (int i = 0; i < 1000; i++) {
            keyspace.put(number(i), number(i));
        }
        Snapshot snapshot = database.snapshot();
        Cursor cursor = keyspace.cursor();
        Transaction transaction = database.begin();
        TransactionCursor walk = transaction.cursor(keyspace, null, null);
        Ingestion ingestion = database.ingestion();
        ValueReader reader = keyspace.openValue(number(1));
        Batch batch = new Batch().put(keyspace, b("k"), b("v"));
        Database branch = database.branch("branch");
        assertTrue(cursor.next());
        database.close();
        List<Executable> calls =
                List.of(
                        () -> keyspace.get(number(1)),
                        () -> snapshot.get(keyspace, number(1)),
                        cursor::first,
                        () -> transaction.get(keyspace, number(1)),
                        () -> ingestion.put(keyspace, b("k"), b("v")),
                        branch::keyspaces,
                        () -> keyspace.map().firstKey(),
                        () -> database.write(batch));
        for (int i = 0; i < calls.size(); i++) {
            assertEquals(ErrorCode.CLOSED, assertThrows(EskerException.class, calls.get(i), "call " + i).code());
        }
        branch.close();
        batch.close();
        reader.close();
        ingestion.close();
        walk.close();
        transaction.close();
        cursor.close();
        snapshot.close();
        keyspace.close();
        Support.open(directory).close();
    }

    @Test
    void thingsOfAnotherDatabase() {
        try (Database one = Support.open(directory);
                Database two = Database.open(directory.resolve("two"), Support.options());
                Keyspace keyspace = one.keyspace("default");
                Batch batch = new Batch().put(keyspace, b("k"), b("v"));
                Snapshot snapshot = two.snapshot();
                Transaction transaction = two.begin();
                Ingestion ingestion = two.ingestion()) {
            List<Executable> calls =
                    List.of(
                            () -> two.write(batch),
                            () -> snapshot.get(keyspace, b("k")),
                            () -> transaction.get(keyspace, b("k")),
                            () -> ingestion.put(keyspace, b("k"), b("v")));
            for (int i = 0; i < calls.size(); i++) {
                assertThrows(EskerException.class, calls.get(i), "call " + i);
            }
        }
    }

    @Test
    void oneThreadAtATime() throws Exception {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            CountDownLatch reading = new CountDownLatch(1);
            CountDownLatch goOn = new CountDownLatch(1);
            Ingestion ingestion = database.ingestion();
            Thread other =
                    new Thread(
                            () -> {
                                java.io.InputStream slow =
                                        new java.io.InputStream() {
                                            @Override
                                            public int read() {
                                                reading.countDown();
                                                try {
                                                    goOn.await();
                                                } catch (InterruptedException ended) {
                                                    Thread.currentThread().interrupt();
                                                }
                                                return -1;
                                            }
                                        };
                                try {
                                    ingestion.putFrom(keyspace, b("k"), slow);
                                } catch (java.io.IOException impossible) {
                                    throw new AssertionError(impossible);
                                }
                            });
            other.start();
            reading.await();
            MisuseException busy =
                    assertThrows(MisuseException.class, () -> ingestion.put(keyspace, b("k"), b("v")));
            assertTrue(busy.getMessage().contains("one thread"));
            // A close does not wait: the call ends, and frees it.
            ingestion.close();
            assertThrows(ClosedException.class, ingestion::sync);
            goOn.countDown();
            other.join();
            assertThrows(ClosedException.class, ingestion::commit);
        }
    }

    @Test
    void closingUnderCalls() throws Exception {
        for (int round = 0; round < (Support.LONG ? 200 : 20); round++) {
            Database database = Support.open(directory);
            Keyspace keyspace = database.keyspace("default");
            Snapshot snapshot = database.snapshot();
            Cursor cursor = keyspace.cursor();
            Batch batch = new Batch();
            int last = round;
            Support.inThreads(
                    4,
                    thread -> {
                        if (thread == 0) {
                            Thread.sleep(1 + last % 5);
                            List<AutoCloseable> all = new ArrayList<>(List.of(keyspace, snapshot, cursor, batch, database));
                            java.util.Collections.shuffle(all);
                            for (AutoCloseable one : all) {
                                one.close();
                            }
                            return;
                        }
                        try {
                            for (int i = 0; ; i++) {
                                keyspace.put(number(i % 100), b("value"));
                                keyspace.get(number(i % 100));
                                snapshot.get(keyspace, number(i % 100));
                                try {
                                    cursor.first();
                                    cursor.next();
                                    cursor.key();
                                    batch.put(keyspace, b("k"), b("v"));
                                    if (i % 100 == 0) {
                                        batch.clear();
                                    }
                                } catch (MisuseException busy) {
                                    // Another thread has it.
                                }
                            }
                        } catch (ClosedException closed) {
                            // As is expected.
                        }
                    });
        }
    }

    @Test
    void manyThreadsOnOneKeyspace() throws Exception {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            Support.inThreads(
                    8,
                    thread -> {
                        for (int i = 0; i < 500; i++) {
                            byte[] key = b(thread + "/" + i);
                            keyspace.put(key, key);
                            assertEquals(s(key), s(keyspace.get(key)));
                            if (i % 100 == 0) {
                                try (Cursor cursor = keyspace.cursorOfPrefix(b(thread + "/"))) {
                                    int count = 0;
                                    while (cursor.next()) {
                                        count++;
                                    }
                                    assertEquals(i + 1, count);
                                }
                            }
                        }
                    });
            assertEquals(4000, keyspace.count());
        }
    }

    /** Positions and limits that another thread moves lead nowhere outside of a buffer. */
    @Test
    void buffersThatAnotherThreadMoves() throws Exception {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default");
                Batch batch = new Batch()) {
            ByteBuffer key = ByteBuffer.allocateDirect(64);
            ByteBuffer value = ByteBuffer.allocateDirect(1 << 16);
            int rounds = Support.LONG ? 1_000_000 : 30_000;
            AtomicBoolean ended = new AtomicBoolean();
            Support.inThreads(
                    2,
                    thread -> {
                        try {
                            for (int i = 0; i < rounds && !ended.get(); i += thread == 0 ? 1 : 0) {
                                if (thread == 0) {
                                    useMoved(keyspace, batch, key, value);
                                } else {
                                    key.limit(i % 64).position(0).position(i % 64 / 2).clear();
                                    value.position(1 << 15).clear();
                                }
                            }
                        } finally {
                            ended.set(true);
                        }
                    });
        }
    }

    private static void useMoved(Keyspace keyspace, Batch batch, ByteBuffer key, ByteBuffer value) {
        try {
            keyspace.put(key, value);
            keyspace.get(key, value);
            batch.put(keyspace, key, value).clear();
        } catch (EskerException | IllegalArgumentException | IndexOutOfBoundsException moved) {
            assertTrue(!(moved instanceof ClosedException));
        }
    }

    /** Whatever is called in whatever state: it answers, or throws what says what is wrong. */
    @Test
    void randomCallsOnClosedAndOpenThings() throws Exception {
        long seed = Support.seed();
        AtomicBoolean ended = new AtomicBoolean();
        try (Pool pool = new Pool(directory)) {
            Thread clock =
                    new Thread(
                            () -> {
                                try {
                                    Thread.sleep(Support.LONG ? 120_000 : 4_000);
                                } catch (InterruptedException early) {
                                    Thread.currentThread().interrupt();
                                }
                                ended.set(true);
                            });
            clock.start();
            Support.inThreads(
                    6,
                    thread -> {
                        Random random = new Random(seed + thread);
                        int step = 0;
                        while (!ended.get()) {
                            try {
                                pool.step(random);
                            } catch (EskerException answered) {
                                // The engine, or this package, said what is wrong.
                                assertNotEquals(ErrorCode.PANIC, answered.code(), answered.getMessage());
                            } catch (Throwable other) {
                                throw new AssertionError(Support.again(seed) + ", thread " + thread + ", step " + step, other);
                            }
                            step++;
                        }
                    });
            clock.join();
        }
    }

    /** Handles that several threads open, use and close at random. */
    private static final class Pool implements AutoCloseable {
        private static final int PLACES = 4;

        private final Path directory;
        private final Database[] databases = new Database[2];
        private final Keyspace[] keyspaces = new Keyspace[PLACES];
        private final Snapshot[] snapshots = new Snapshot[PLACES];
        private final Cursor[] cursors = new Cursor[PLACES];
        private final Batch[] batches = new Batch[PLACES];
        private final Transaction[] transactions = new Transaction[PLACES];
        private final TransactionCursor[] walks = new TransactionCursor[PLACES];
        private final Ingestion[] ingestions = new Ingestion[PLACES];
        private final ValueReader[] readers = new ValueReader[PLACES];

        Pool(Path directory) {
            this.directory = directory;
            for (int i = 0; i < databases.length; i++) {
                databases[i] = database(i);
            }
            for (int i = 0; i < PLACES; i++) {
                Database database = databases[i % 2];
                keyspaces[i] = database.keyspace("k" + i);
                keyspaces[i].put(b("k"), new byte[10_000]);
                snapshots[i] = database.snapshot();
                cursors[i] = keyspaces[i].cursor();
                batches[i] = new Batch();
                transactions[i] = database.begin();
                walks[i] = transactions[i].cursor(keyspaces[i], null, null);
                ingestions[i] = database.ingestion();
                readers[i] = keyspaces[i].openValue(b("k"));
            }
        }

        private Database database(int which) {
            return Database.open(directory.resolve("db" + which), Support.options());
        }

        void step(Random random) throws Exception {
            int at = random.nextInt(PLACES);
            Database database = databases[random.nextInt(2)];
            Keyspace keyspace = keyspaces[random.nextInt(PLACES)];
            byte[] key = number(random.nextInt(300));
            byte[] value = new byte[random.nextInt(random.nextInt(50) == 0 ? 20_000 : 50)];
            switch (random.nextInt(12)) {
                case 0:
                    close(random, at);
                    break;
                case 1:
                    open(random, at, database, keyspace, key);
                    break;
                case 2:
                case 3:
                    onKeyspace(random, keyspace, key, value);
                    break;
                case 4:
                case 5:
                    onCursor(random, cursors[at], key);
                    break;
                case 6:
                    onBatch(random, database, batches[at], keyspace, key, value);
                    break;
                case 7:
                case 8:
                    onTransaction(random, at, keyspace, key, value);
                    break;
                case 9:
                    onIngestion(random, at, keyspace, key, value);
                    break;
                case 10:
                    onSnapshot(random, snapshots[at], keyspace, key);
                    break;
                default:
                    onDatabase(random, database);
            }
        }

        private void close(Random random, int at) throws Exception {
            AutoCloseable[][] all = {keyspaces, snapshots, cursors, batches, transactions, walks, ingestions, readers};
            AutoCloseable one = all[random.nextInt(all.length)][at];
            if (one != null) {
                one.close();
            }
            if (random.nextInt(100) == 0) {
                int which = random.nextInt(2);
                databases[which].close();
                databases[which] = database(which);
            }
        }

        private void open(Random random, int at, Database database, Keyspace keyspace, byte[] key) throws Exception {
            switch (random.nextInt(8)) {
                case 0:
                    replace(keyspaces, at, database.keyspace("k" + at));
                    break;
                case 1:
                    replace(snapshots, at, database.snapshot());
                    break;
                case 2:
                    replace(cursors, at, keyspace.cursor(null, random.nextBoolean() ? key : null));
                    break;
                case 3:
                    replace(batches, at, new Batch());
                    break;
                case 4:
                    replace(transactions, at, database.begin());
                    break;
                case 5:
                    replace(walks, at, transactions[at].cursor(keyspace, null, null));
                    break;
                case 6:
                    replace(ingestions, at, database.ingestion());
                    break;
                default:
                    ValueReader reader = keyspace.openValue(b("k"));
                    if (reader != null) {
                        ValueReader old = readers[at];
                        readers[at] = reader;
                        old.close();
                    }
            }
        }

        /** What is replaced is closed, while another thread may use it. */
        private static <T extends AutoCloseable> void replace(T[] all, int at, T made) throws Exception {
            T old = all[at];
            all[at] = made;
            old.close();
        }

        private static void onKeyspace(Random random, Keyspace keyspace, byte[] key, byte[] value) throws Exception {
            switch (random.nextInt(12)) {
                case 0:
                    keyspace.get(key);
                    break;
                case 1:
                    keyspace.put(key, value);
                    break;
                case 2:
                    keyspace.delete(key);
                    break;
                case 3:
                    keyspace.multiGet(new byte[][] {key, b("k"), value});
                    break;
                case 4:
                    keyspace.getBuffer(b("k"));
                    break;
                case 5:
                    keyspace.get(ByteBuffer.wrap(key), ByteBuffer.allocateDirect(100));
                    break;
                case 6:
                    keyspace.compareAndSet(key, null, value);
                    break;
                case 7:
                    keyspace.count(null, key);
                    break;
                case 8:
                    keyspace.map().headMap(key).descendingMap().firstEntry();
                    break;
                case 9:
                    keyspace.deleteRange(key, null);
                    break;
                case 10:
                    keyspace.putFrom(key, new ByteArrayInputStream(value));
                    break;
                default:
                    keyspace.put(key, value, Duration.ofMillis(5));
            }
        }

        private static void onCursor(Random random, Cursor cursor, byte[] key) {
            switch (random.nextInt(7)) {
                case 0:
                    cursor.first();
                    break;
                case 1:
                    cursor.seekBack(key);
                    break;
                case 2:
                    cursor.seek(key);
                    break;
                case 3:
                    cursor.prev();
                    break;
                case 4:
                    cursor.value();
                    break;
                default:
                    while (cursor.next()) {
                        cursor.key();
                        cursor.valueBuffer().remaining();
                    }
            }
        }

        private static void onBatch(
                Random random, Database database, Batch batch, Keyspace keyspace, byte[] key, byte[] value) {
            switch (random.nextInt(4)) {
                case 0:
                    database.write(batch);
                    break;
                case 1:
                    batch.clear();
                    break;
                case 2:
                    batch.deleteRange(keyspace, key, null);
                    break;
                default:
                    batch.put(keyspace, key, value);
            }
        }

        private void onTransaction(Random random, int at, Keyspace keyspace, byte[] key, byte[] value) {
            Transaction transaction = transactions[at];
            switch (random.nextInt(8)) {
                case 0:
                    transaction.commit();
                    break;
                case 1:
                    transaction.rollback();
                    break;
                case 2:
                    transaction.rollbackTo(random.nextInt(5));
                    break;
                case 3:
                    transaction.savepoint();
                    break;
                case 4:
                    walks[at].next();
                    walks[at].nextBack();
                    break;
                case 5:
                    walks[at].seek(key);
                    break;
                case 6:
                    transaction.put(keyspace, key, value);
                    break;
                default:
                    transaction.getForUpdate(keyspace, key);
            }
        }

        private void onIngestion(Random random, int at, Keyspace keyspace, byte[] key, byte[] value) {
            switch (random.nextInt(6)) {
                case 0:
                    ingestions[at].commit();
                    break;
                case 1:
                    ingestions[at].join(ingestions[random.nextInt(PLACES)]);
                    break;
                case 2:
                    ingestions[at].sync();
                    break;
                case 3:
                    readers[at].seek(random.nextInt(20_000));
                    readers[at].read(value, 0, value.length);
                    break;
                default:
                    ingestions[at].put(keyspace, key, value);
            }
        }

        private static void onSnapshot(Random random, Snapshot snapshot, Keyspace keyspace, byte[] key) {
            if (random.nextBoolean()) {
                snapshot.get(keyspace, key);
            } else {
                snapshot.cursor(keyspace, key, null).close();
            }
        }

        private static void onDatabase(Random random, Database database) {
            switch (random.nextInt(30)) {
                case 0:
                    database.flush();
                    break;
                case 1:
                    database.verify(() -> random.nextInt(10) == 0);
                    break;
                case 2:
                    database.stats();
                    break;
                case 3:
                    database.dropKeyspace("k" + random.nextInt(PLACES));
                    break;
                case 4:
                    database.branch("branch").close();
                    break;
                case 5:
                    database.dropBranch("branch");
                    break;
                default:
                    database.keyspaces();
            }
        }

        @Override
        public void close() throws Exception {
            AutoCloseable[][] all = {
                databases, keyspaces, snapshots, cursors, batches, transactions, walks, ingestions, readers
            };
            for (AutoCloseable[] ones : all) {
                for (AutoCloseable one : ones) {
                    one.close();
                }
            }
        }
    }
}
