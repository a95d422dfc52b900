package dev.esker;

import static dev.esker.Support.b;
import static dev.esker.Support.number;
import static dev.esker.Support.s;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Each call once, with what it answers. */
class BasicsTest {
    @TempDir Path directory;

    @Test
    void aDatabaseAndItsKeyspaces() {
        assertTrue(Database.version().matches("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
        Path place = directory.resolve("db");
        byte[] id;
        try (Database database = Support.open(directory)) {
            assertEquals(place, database.path());
            id = database.id();
            assertEquals(16, id.length);
            assertNull(database.branchName());
            assertEquals(Instant.EPOCH, database.madeAt());
            assertTrue(database.toString().contains("db"));
            try (Keyspace users = database.keyspace("users")) {
                users.put(b("ann"), b("engineer"));
                assertEquals("users", users.name());
                assertEquals(database, users.database());
                assertNull(users.mergeOperator());
                assertEquals(Duration.ZERO, users.ttl());
                assertTrue(users.toString().contains("users"));
                assertTrue(users.comparator().compare(new byte[] {1}, new byte[] {(byte) 0xff}) < 0);
            }
            assertEquals(List.of("default", "users"), database.keyspaces());
            assertTrue(database.dropKeyspace("users"));
            assertFalse(database.dropKeyspace("users"));
            assertEquals(List.of("default"), database.keyspaces());
        }
        try (Database database = Database.open(place)) {
            assertArrayEquals(id, database.id());
        }
    }

    @Test
    void options() {
        Options all =
                new Options()
                        .memory(32L << 20)
                        .durability(Durability.DISK)
                        .createIfMissing(true)
                        .errorIfExists(true)
                        .readOnly(false)
                        .workers(1)
                        .compression(Options.Compression.LZ4)
                        .log(Options.LogMode.PLAIN)
                        .recovery(Options.Recovery.KEEP_PREFIX)
                        .syncInterval(Duration.ofSeconds(1))
                        .memtableBytes(1L << 20)
                        .partitionBytes(4L << 20)
                        .segmentBytes(1L << 20)
                        .blockBytes(8192)
                        .logSegmentBytes(8L << 20)
                        .coldAfter(Duration.ofHours(2))
                        .maxSpacePercent(200)
                        .separateValuesFrom(1 << 16);
        Path place = directory.resolve("db");
        try (Database database = Database.open(place, all);
                Keyspace keyspace = database.keyspace("default")) {
            keyspace.put(b("k"), b("v"));
        }
        assertEquals(ErrorCode.EXISTS, assertThrows(EskerException.class, () -> Database.open(place, all)).code());
        try (Database database = Database.open(place, new Options().readOnly(true));
                Keyspace keyspace = database.keyspace("default")) {
            assertEquals("v", s(keyspace.get(b("k"))));
            EskerException refused = assertThrows(EskerException.class, () -> keyspace.put(b("k"), b("w")));
            assertEquals(ErrorCode.READ_ONLY, refused.code());
        }
        Options none = new Options().createIfMissing(false);
        EskerException missing =
                assertThrows(EskerException.class, () -> Database.open(directory.resolve("none"), none));
        assertEquals(ErrorCode.MISSING, missing.code());
    }

    @Test
    void aPathThatTheLocaleMayNotHave() throws IOException {
        Path place = directory.resolve("a b%41#?");
        Database.open(place, Support.options()).close();
        assertTrue(Files.isDirectory(place));
    }

    @Test
    void readsAndWritesOfOneKey() {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            assertNull(keyspace.get(b("k")));
            assertFalse(keyspace.contains(b("k")));
            for (Durability durability : Durability.values()) {
                keyspace.put(b("k"), b(durability.name()), durability);
                assertEquals(durability.name(), s(keyspace.get(b("k"))));
            }
            assertTrue(keyspace.contains(b("k")));
            keyspace.tryPut(b("empty"), new byte[0]);
            assertEquals("", s(keyspace.get(b("empty"))));
            keyspace.put(new byte[0], b("under the empty key"));
            assertEquals("under the empty key", s(keyspace.get(new byte[0])));
            keyspace.delete(b("k"));
            keyspace.delete(b("k"), Durability.DISK);
            keyspace.tryDelete(b("empty"));
            assertNull(keyspace.get(b("empty")));
            byte[][] found = keyspace.multiGet(new byte[][] {b("k"), new byte[0], b("empty")});
            assertNull(found[0]);
            assertEquals("under the empty key", s(found[1]));
            assertNull(found[2]);
            assertEquals(0, keyspace.multiGet(new byte[0][]).length);
        }
    }

    @Test
    void valuesAndKeysOfAllSizes() {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            Random random = new Random(1);
            int[] sizes = {0, 1, 255, 256, 257, 4095, 4096, 4097, 65535, 100_000, 1 << 20};
            for (int round = 0; round < 2; round++) {
                for (int size : sizes) {
                    byte[] value = new byte[size];
                    random.nextBytes(value);
                    byte[] key = Arrays.copyOf(value, Math.min(size, 65535));
                    keyspace.put(key, value);
                    // Twice: a get goes by what the last value was.
                    assertArrayEquals(value, keyspace.get(key));
                    assertArrayEquals(value, keyspace.get(key));
                    assertArrayEquals(value, keyspace.multiGet(new byte[][] {key})[0]);
                    if (round == 1) {
                        database.flush();
                    }
                    ByteBuffer shown = keyspace.getBuffer(key);
                    assertTrue(shown.isReadOnly());
                    assertEquals(ByteBuffer.wrap(value), shown);
                    ByteBuffer direct = ByteBuffer.allocateDirect(size + 3);
                    direct.position(2);
                    assertEquals(size, keyspace.get(ByteBuffer.wrap(key), direct));
                    assertEquals(2 + size, direct.position());
                    assertEquals(ByteBuffer.wrap(value), direct.flip().position(2));
                }
            }
            assertNull(keyspace.getBuffer(b("nothing")));
        }
    }

    @Test
    void buffers() {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            for (boolean direct : new boolean[] {false, true}) {
                ByteBuffer key = direct ? ByteBuffer.allocateDirect(16) : ByteBuffer.allocate(16);
                ByteBuffer value = direct ? ByteBuffer.allocateDirect(16) : ByteBuffer.allocate(16);
                key.put(b("--key")).flip().position(2);
                value.put(b("-value")).flip().position(1);
                keyspace.put(key, value);
                assertEquals(2, key.position());
                assertEquals(1, value.position());
                assertEquals("value", s(keyspace.get(b("key"))));
                value.clear().limit(3);
                assertEquals(5, keyspace.get(key, value), "the whole length");
                assertEquals(3, value.position(), "what there was room for");
                assertEquals("val", s(Buffers.bytes(value.flip())));
                assertEquals(-1, keyspace.get(ByteBuffer.wrap(b("none")), value.clear()));
                assertEquals(0, value.position());
                ByteBuffer whole = value.clear();
                assertThrows(
                        InvalidArgumentException.class, () -> keyspace.get(key, whole.asReadOnlyBuffer()));
                try (Batch batch = new Batch()) {
                    batch.put(keyspace, key, value.clear().limit(2));
                    database.write(batch);
                }
                assertEquals("va", s(keyspace.get(b("key"))));
            }
        }
    }

    @Test
    void aBufferOutlivesTheDatabase() {
        byte[] value = new byte[100_000];
        Arrays.fill(value, (byte) 7);
        ByteBuffer shown;
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            keyspace.put(b("k"), value);
            database.flush();
            shown = keyspace.getBuffer(b("k"));
            keyspace.delete(b("k"));
        }
        assertEquals(ByteBuffer.wrap(value), shown);
    }

    @Test
    void conditionalWrites() {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            assertTrue(keyspace.insertIfAbsent(b("k"), b("1")));
            assertFalse(keyspace.insertIfAbsent(b("k"), b("2")));
            assertTrue(keyspace.compareAndSet(b("k"), b("1"), new byte[0]));
            assertFalse(keyspace.compareAndSet(b("k"), null, b("3")), "an empty value is a value");
            assertTrue(keyspace.compareAndSet(b("k"), new byte[0], null));
            assertTrue(keyspace.compareAndSet(b("k"), null, b("3")));
            assertEquals("33", s(keyspace.update(b("k"), old -> b(s(old) + s(old)))));
            assertNull(keyspace.update(b("k"), old -> null));
            assertFalse(keyspace.contains(b("k")));
            assertThrows(
                    IllegalStateException.class,
                    () ->
                            keyspace.update(
                                    b("k"),
                                    old -> {
                                        throw new IllegalStateException();
                                    }));
        }
    }

    @Test
    void timesToLive() {
        AtomicLong now = new AtomicLong(1_000_000_000_000L);
        try (Database database = Database.open(directory.resolve("db"), Support.options().clock(now::get));
                Keyspace keyspace =
                        database.keyspace("short", new KeyspaceOptions().ttl(Duration.ofSeconds(10)));
                Keyspace other = database.keyspace("default");
                Batch batch = new Batch();
                Ingestion ingestion = database.ingestion()) {
            assertEquals(Duration.ofSeconds(10), keyspace.ttl());
            keyspace.put(b("default"), b(""));
            keyspace.put(b("long"), b(""), Duration.ofHours(1));
            other.put(b("gone"), b(""), Duration.ZERO);
            assertFalse(other.contains(b("gone")));
            batch.put(other, b("batch"), b(""), Duration.ofSeconds(10));
            database.write(batch);
            database.transact(
                    transaction -> {
                        transaction.put(other, b("transaction"), b(""), Duration.ofSeconds(10));
                        return null;
                    });
            ingestion.put(other, b("ingestion"), b(""), Duration.ofSeconds(10));
            ingestion.commit();
            assertEquals(3, other.count());
            keyspace.setTtl(Duration.ZERO);
            assertEquals(Duration.ZERO, keyspace.ttl());
            keyspace.put(b("forever"), b(""));
            now.addAndGet(11_000);
            assertEquals(0, other.count());
            assertFalse(keyspace.contains(b("default")));
            assertTrue(keyspace.contains(b("long")) && keyspace.contains(b("forever")));
        }
    }

    @Test
    void batches() {
        try (Database database = Support.open(directory);
                Keyspace one = database.keyspace("one");
                Keyspace counts =
                        database.keyspace("counts", new KeyspaceOptions().mergeOperator("esker.counter-u64"));
                Batch batch = new Batch()) {
            for (String key : List.of("a", "b", "c", "pa", "pb")) {
                one.put(b(key), b(key));
            }
            batch.delete(one, b("a"))
                    .deleteRange(one, b("b"), b("c"))
                    .deletePrefix(one, b("p"))
                    .put(one, b("new"), b("1"))
                    .merge(counts, b("n"), new byte[] {5, 0, 0, 0, 0, 0, 0, 0});
            assertEquals(5, batch.size());
            long position = database.write(batch, Durability.PROCESS);
            assertTrue(position > 0);
            database.waitDurable(position);
            assertEquals(2, one.count());
            assertTrue(database.tryWrite(batch, Durability.DEFAULT) > position);
            assertEquals(10, counts.get(b("n"))[0]);
            batch.clear();
            assertEquals(0, batch.size());
            assertEquals(0, database.write(batch));
        }
    }

    @Test
    void rangesAndCounts() {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            for (int i = 0; i < 1000; i++) {
                keyspace.put(number(i), number(i));
            }
            database.flush();
            assertEquals(1000, keyspace.count());
            assertEquals(100, keyspace.count(number(100), number(200)));
            Keyspace.Estimate estimate = keyspace.approximateCount(number(100), number(200));
            assertTrue(Math.abs(estimate.entries() - 100) <= estimate.deviation());
            assertTrue(keyspace.approximateSize(null, null) > 0);
            assertTrue(keyspace.splitPoints(null, null, 4).size() <= 3);
            keyspace.deleteRange(number(100), number(200));
            keyspace.deleteRange(null, number(50), Durability.PROCESS);
            keyspace.deletePrefix(b("000009"));
            keyspace.deletePrefix(b("000008"), Durability.PROCESS);
            assertEquals(650, keyspace.count());
            keyspace.compact();
            keyspace.compact(number(0), number(500));
            database.compact();
            database.waitUntilIdle();
            assertEquals(650, keyspace.count());
            keyspace.clear();
            keyspace.put(b("k"), b(""));
            keyspace.clear(Durability.PROCESS);
            assertEquals(0, keyspace.count());
        }
    }

    @Test
    void snapshots() {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            keyspace.put(b("a"), b("1"));
            keyspace.put(b("b"), new byte[5000]);
            try (Snapshot first = database.snapshot();
                    Snapshot second = database.snapshot("report")) {
                keyspace.put(b("a"), b("2"));
                keyspace.delete(b("b"));
                try (Snapshot later = database.snapshot()) {
                    assertTrue(later.position() > first.position());
                }
                assertEquals("1", s(first.get(keyspace, b("a"))));
                assertTrue(second.contains(keyspace, b("b")));
                assertFalse(second.contains(keyspace, b("c")));
                assertEquals(5000, first.getBuffer(keyspace, b("b")).remaining());
                byte[][] both = first.multiGet(keyspace, new byte[][] {b("a"), b("c")});
                assertEquals("1", s(both[0]));
                assertNull(both[1]);
                assertTrue(first.explainGet(keyspace, b("a")).startsWith("{"));
                assertTrue(database.stats().contains("report"));
                try (Cursor cursor = first.cursor(keyspace, null, null);
                        Cursor prefixed = first.cursorOfPrefix(keyspace, b("b"));
                        ValueReader reader = first.openValue(keyspace, b("b"))) {
                    assertTrue(cursor.first());
                    assertEquals("1", s(cursor.value()));
                    assertTrue(prefixed.next());
                    assertFalse(prefixed.next());
                    assertEquals(5000, reader.length());
                }
                assertNull(first.openValue(keyspace, b("c")));
            }
        }
    }

    @Test
    void transactions() throws Exception {
        try (Database database = Support.open(directory);
                Keyspace keyspace =
                        database.keyspace("k", new KeyspaceOptions().mergeOperator("esker.append:2c"))) {
            for (String key : List.of("a", "b", "c", "d")) {
                keyspace.put(b(key), b(key));
            }
            try (Transaction transaction = database.begin()) {
                assertEquals("a", s(transaction.get(keyspace, b("a"))));
                assertEquals("b", s(transaction.getForUpdate(keyspace, b("b"))));
                assertEquals("c", s(transaction.getForShare(keyspace, b("c"))));
                assertTrue(transaction.contains(keyspace, b("d")));
                assertEquals("d", s(transaction.multiGet(keyspace, new byte[][] {b("d"), b("e")})[0]));
                transaction.put(keyspace, b("a"), b("1"));
                transaction.merge(keyspace, b("b"), b("2"));
                long savepoint = transaction.savepoint();
                transaction.delete(keyspace, b("c"));
                transaction.deleteRange(keyspace, null, null);
                assertNull(transaction.get(keyspace, b("a")));
                transaction.rollbackTo(savepoint);
                assertEquals("1", s(transaction.get(keyspace, b("a"))));
                assertEquals("a", s(keyspace.get(b("a"))), "nobody else sees it");
                try (TransactionCursor cursor = transaction.cursor(keyspace, null, null);
                        TransactionCursor prefixed = transaction.cursorOfPrefix(keyspace, b("a"))) {
                    cursor.seek(b("b"));
                    Map.Entry<byte[], byte[]> entry = cursor.next();
                    assertEquals("b=b,2", s(entry.getKey()) + "=" + s(entry.getValue()));
                    assertEquals("d", s(cursor.nextBack().getKey()));
                    assertEquals("c", s(cursor.next().getKey()));
                    assertNull(cursor.next());
                    assertEquals("1", s(prefixed.next().getValue()));
                    assertNull(prefixed.next());
                }
                assertTrue(transaction.commit() > 0);
                MisuseException ended = assertThrows(MisuseException.class, transaction::commit);
                assertEquals(ErrorCode.MISUSE, ended.code());
            }
            assertEquals("b,2", s(keyspace.get(b("b"))));
            try (Transaction transaction = database.begin()) {
                transaction.put(keyspace, b("x"), b(""));
                transaction.rollback();
            }
            assertFalse(keyspace.contains(b("x")));
            try (Transaction loses = database.begin()) {
                loses.get(keyspace, b("a"));
                loses.put(keyspace, b("z"), b(""));
                keyspace.put(b("a"), b("other"));
                ConflictException conflict = assertThrows(ConflictException.class, loses::commit);
                assertEquals(ErrorCode.CONFLICT, conflict.code());
                assertEquals("a", s(conflict.lowKey()));
                assertEquals("k", conflict.keyspace());
            }
            TransactionOptions locking = TransactionOptions.locking(Duration.ofMillis(20)).with(Durability.DISK);
            try (Transaction one = database.begin(locking);
                    Transaction two = database.begin(locking)) {
                one.put(keyspace, b("lock"), b("1"));
                ConflictException late =
                        assertThrows(ConflictException.class, () -> two.put(keyspace, b("lock"), b("2")));
                assertEquals(ErrorCode.LOCK_TIMEOUT, late.code());
                one.commit();
            }
        }
    }

    @Test
    void transactRepeats() throws Exception {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            keyspace.put(b("n"), b("0"));
            AtomicInteger attempts = new AtomicInteger();
            Support.inThreads(
                    4,
                    number -> {
                        TransactionOptions options =
                                number % 2 == 0
                                        ? TransactionOptions.OPTIMISTIC
                                        : TransactionOptions.locking(Duration.ofSeconds(60));
                        for (int i = 0; i < 100; i++) {
                            database.transact(
                                    options,
                                    transaction -> {
                                        attempts.incrementAndGet();
                                        int n = Integer.parseInt(s(transaction.getForUpdate(keyspace, b("n"))));
                                        transaction.put(keyspace, b("n"), b(Integer.toString(n + 1)));
                                        return n;
                                    });
                        }
                    });
            assertEquals("400", s(keyspace.get(b("n"))));
            assertTrue(attempts.get() >= 400);
            assertThrows(
                    IllegalStateException.class,
                    () ->
                            database.transact(
                                    transaction -> {
                                        transaction.put(keyspace, b("n"), b("lost"));
                                        throw new IllegalStateException();
                                    }));
            assertEquals("400", s(keyspace.get(b("n"))));
        }
    }

    @Test
    void ingestions() throws IOException {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("k", new KeyspaceOptions().mergeOperator("esker.max"))) {
            keyspace.put(b("0"), b("old"));
            try (Ingestion load = database.ingestion();
                    Ingestion other = database.ingestion();
                    Ingestion dropped = database.ingestion()) {
                load.deleteRange(keyspace, null, b("1"));
                load.put(keyspace, b("1"), b("one"));
                InvalidArgumentException order =
                        assertThrows(InvalidArgumentException.class, () -> load.put(keyspace, b("0"), b("")));
                assertEquals(ErrorCode.OUT_OF_ORDER, order.code());
                load.merge(keyspace, b("2"), b("two"));
                load.delete(keyspace, b("3"));
                assertEquals(2, load.putMany(keyspace, new byte[][] {b("4"), b("5")}, new byte[2][0]));
                assertThrows(
                        InvalidArgumentException.class,
                        () -> load.putMany(keyspace, new byte[1][0], new byte[2][0]));
                byte[][] turned = {b("50"), b("51"), b("5")};
                assertThrows(
                        InvalidArgumentException.class, () -> load.putMany(keyspace, turned, new byte[3][0]));
                assertEquals(2, load.added());
                assertEquals(300_000, load.putFrom(keyspace, b("6"), new ByteArrayInputStream(new byte[300_000])));
                other.put(keyspace, b("7"), b("seven"));
                other.sync();
                load.join(other);
                assertThrows(ClosedException.class, () -> other.put(keyspace, b("8"), b("")));
                assertThrows(InvalidArgumentException.class, () -> load.join(load));
                dropped.put(keyspace, b("9"), b(""));
                assertEquals(1, keyspace.count(), "nothing is visible yet");
                load.commit();
                assertEquals(8, keyspace.count());
                assertEquals("two", s(keyspace.get(b("2"))));
                assertThrows(MisuseException.class, load::commit);
            }
            assertFalse(keyspace.contains(b("9")));
            assertFalse(keyspace.contains(b("0")));
        }
    }

    @Test
    void valuesInPieces() throws IOException {
        byte[] value = new byte[1_000_003];
        new Random(2).nextBytes(value);
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            assertEquals(value.length, keyspace.putFrom(b("k"), new ByteArrayInputStream(value)));
            try (ValueReader reader = keyspace.openValue(b("k"))) {
                assertEquals(value.length, reader.length());
                assertEquals(value.length, reader.available());
                assertArrayEquals(value, reader.readAllBytes());
                assertEquals(-1, reader.read());
                reader.seek(700_000);
                assertEquals(value[700_000] & 0xff, reader.read());
                assertEquals(10, reader.skip(10));
                assertEquals(value[700_011] & 0xff, reader.read());
                assertEquals(value.length - 700_012, reader.skip(Long.MAX_VALUE));
                reader.seek(5);
                ByteBuffer direct = ByteBuffer.allocateDirect(1000).position(10);
                assertEquals(990, reader.read(direct));
                assertEquals(ByteBuffer.wrap(value, 5, 990), direct.flip().position(10));
                reader.seek(5);
                ByteBuffer heap = ByteBuffer.allocate(100);
                assertEquals(100, reader.read(heap));
                assertEquals(ByteBuffer.wrap(value, 5, 100), heap.flip());
                assertThrows(InvalidArgumentException.class, () -> reader.seek(-1));
                assertThrows(IndexOutOfBoundsException.class, () -> reader.read(new byte[1], 0, 2));
            }
            assertNull(keyspace.openValue(b("none")));
            InputStream broken =
                    new InputStream() {
                        @Override
                        public int read() throws IOException {
                            throw new IOException("broken");
                        }
                    };
            assertEquals(
                    "broken", assertThrows(IOException.class, () -> keyspace.putFrom(b("x"), broken)).getMessage());
            assertFalse(keyspace.contains(b("x")));
        }
    }

    @Test
    void branchesNamedSnapshotsAndCheckpoints() {
        Path copy = directory.resolve("copy");
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            keyspace.put(b("price"), b("10"));
            try (Database trial = database.branch("trial");
                    Keyspace there = trial.keyspace("default")) {
                assertEquals("trial", trial.branchName());
                assertNotEquals(Instant.EPOCH, trial.madeAt());
                there.put(b("price"), b("12"));
                assertEquals("10", s(keyspace.get(b("price"))));
            }
            assertEquals("10", s(keyspace.get(b("price"))), "closing a branch closes nothing else");
            assertEquals(List.of("trial"), database.branches());
            try (Database trial = database.openBranch("trial");
                    Keyspace there = trial.keyspace("default")) {
                assertEquals("12", s(there.get(b("price"))));
            }
            EskerException exists = assertThrows(EskerException.class, () -> database.branch("trial"));
            assertEquals(ErrorCode.BRANCH_EXISTS, exists.code());
            assertEquals("trial", exists.branch());
            assertTrue(database.dropBranch("trial"));
            assertFalse(database.dropBranch("trial"));

            database.nameSnapshot("monday");
            keyspace.delete(b("price"));
            assertEquals(List.of("monday"), database.namedSnapshots());
            try (Database monday = database.openNamedSnapshot("monday");
                    Keyspace there = monday.keyspace("default")) {
                assertEquals("10", s(there.get(b("price"))));
                assertEquals(
                        ErrorCode.READ_ONLY,
                        assertThrows(EskerException.class, () -> there.delete(b("price"))).code());
            }
            assertTrue(database.dropNamedSnapshot("monday"));

            keyspace.put(b("price"), b("11"));
            database.checkpoint(copy);
            assertThrows(EskerException.class, () -> database.checkpoint(copy));
        }
        try (Database database = Database.open(copy);
                Keyspace keyspace = database.keyspace("default")) {
            assertEquals("11", s(keyspace.get(b("price"))));
        }
    }

    @Test
    void maintenanceAndLooksInside() {
        Path place = directory.resolve("db");
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            for (int i = 0; i < 2000; i++) {
                keyspace.put(number(i), number(i));
            }
            database.sync();
            database.flush();
            database.flush(() -> false);
            database.compact(() -> false);
            keyspace.compact(null, null, () -> false);
            assertTrue(database.stats().startsWith("{"));
            assertTrue(database.openMetrics().endsWith("# EOF\n"));
            assertTrue(keyspace.segments().startsWith("["));
            assertTrue(keyspace.explainGet(number(1)).startsWith("{"));
            assertTrue(keyspace.explainScan(null, null, 10).startsWith("{"));
            assertTrue(keyspace.explainPut(number(1), b("new")).startsWith("{"));
            assertEquals("new", s(keyspace.get(number(1))));
            Database.Verified verified = database.verify();
            assertEquals(0, verified.problems());
            assertFalse(verified.ended());
            assertTrue(verified.json().startsWith("{"));
            assertTrue(database.verify(() -> true).ended());
            assertThrows(
                    IllegalStateException.class,
                    () ->
                            database.verify(
                                    () -> {
                                        throw new IllegalStateException();
                                    }));
        }
        Database.Repaired plan = Database.planRepair(place, new Options());
        assertTrue(plan.whole());
        assertNotNull(Database.repair(place, directory.resolve("repaired"), new Options()).json());
        try (Database database = Database.open(directory.resolve("repaired"));
                Keyspace keyspace = database.keyspace("default")) {
            assertEquals(2000, keyspace.count());
        }
    }

    @Test
    void aLongCallThatIsEnded() {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            for (int i = 0; i < 2000; i++) {
                keyspace.put(number(i), number(i));
            }
            EskerException ended = assertThrows(EskerException.class, () -> database.compact(() -> true));
            assertEquals(ErrorCode.INTERRUPTED, ended.code());
            assertEquals(
                    ErrorCode.INTERRUPTED,
                    assertThrows(EskerException.class, () -> keyspace.compact(null, null, () -> true)).code());
            keyspace.put(b("k"), b(""));
            assertThrows(
                    IllegalStateException.class,
                    () ->
                            database.flush(
                                    () -> {
                                        throw new IllegalStateException();
                                    }));
            assertEquals(2001, keyspace.count());
        }
    }

    @Test
    void copyOfAStream() throws IOException {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            keyspace.put(b("k"), b("some bytes"));
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            try (ValueReader reader = keyspace.openValue(b("k"))) {
                reader.transferTo(out);
            }
            assertEquals("some bytes", s(out.toByteArray()));
        }
    }
}
