package dev.esker;

import static dev.esker.Support.b;
import static dev.esker.Support.number;
import static dev.esker.Support.s;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Exceptions, and what they know. */
class ErrorsTest {
    @TempDir Path directory;

    @Test
    void anotherHandleHasIt() {
        try (Database database = Support.open(directory)) {
            EskerException locked = assertThrows(EskerException.class, () -> Support.open(directory));
            assertEquals(ErrorCode.LOCKED, locked.code());
            assertTrue(locked.path().endsWith("db"), locked.path());
            assertEquals(OptionalLong.empty(), locked.offset());
            assertNull(locked.section());
            assertNull(locked.keyspace());
            assertNull(locked.lowKey());
            assertNull(locked.highKey());
            assertEquals(Duration.ZERO, locked.retryAfter());
            assertEquals(3, locked.code().number());
        }
    }

    @Test
    void somethingElseIsThere() throws IOException {
        Files.writeString(directory.resolve("file"), "text");
        EskerException other = assertThrows(EskerException.class, () -> Database.open(directory));
        assertEquals(ErrorCode.NOT_A_DATABASE, other.code());
        EskerException file =
                assertThrows(EskerException.class, () -> Database.open(directory.resolve("file").resolve("db")));
        assertTrue(file.osCode() != 0 || file.code() != ErrorCode.IO, file.toString());
    }

    @Test
    void limits() {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            InvalidArgumentException key =
                    assertThrows(InvalidArgumentException.class, () -> keyspace.put(new byte[65_536], b("")));
            assertEquals(ErrorCode.KEY_TOO_LONG, key.code());
            InvalidArgumentException value =
                    assertThrows(InvalidArgumentException.class, () -> keyspace.put(b(""), new byte[4 << 20]));
            assertEquals(ErrorCode.VALUE_TOO_LARGE, value.code());
            try (Batch batch = new Batch()) {
                for (int i = 0; i < 4; i++) {
                    batch.put(keyspace, number(i), new byte[1 << 20]);
                }
                InvalidArgumentException large =
                        assertThrows(InvalidArgumentException.class, () -> database.write(batch));
                assertEquals(ErrorCode.BATCH_TOO_LARGE, large.code());
            }
            assertThrows(InvalidArgumentException.class, () -> keyspace.merge(b("k"), b("")));
            assertThrows(InvalidArgumentException.class, () -> database.keyspace(""));
            assertThrows(InvalidArgumentException.class, () -> new Options().memory(-1));
            assertThrows(InvalidArgumentException.class, () -> keyspace.put(b(""), b(""), Duration.ofSeconds(-1)));
            assertThrows(InvalidArgumentException.class, () -> keyspace.splitPoints(null, null, 0));
            assertThrows(InvalidArgumentException.class, () -> keyspace.explainScan(null, null, -1));
            assertThrows(
                    EskerException.class,
                    () -> database.keyspace("k", new KeyspaceOptions().ttl(Duration.ZERO)));
            EskerException operator =
                    assertThrows(
                            EskerException.class,
                            () -> database.keyspace("k", new KeyspaceOptions().mergeOperator("none")));
            assertEquals(ErrorCode.MERGE_OPERATOR_MISSING, operator.code());
        }
    }

    @Test
    void nulls() {
        assertThrows(NullPointerException.class, () -> Database.open(null));
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default");
                Batch batch = new Batch();
                Transaction transaction = database.begin()) {
            List<org.junit.jupiter.api.function.Executable> calls =
                    List.of(
                            () -> database.keyspace(null),
                            () -> database.write(null),
                            () -> database.branch(null),
                            () -> database.transact(null),
                            () -> database.checkpoint(null),
                            () -> keyspace.get((byte[]) null),
                            () -> keyspace.get(null, null),
                            () -> keyspace.put((byte[]) null, b("")),
                            () -> keyspace.put(b(""), null),
                            () -> keyspace.put(b(""), b(""), (Durability) null),
                            () -> keyspace.multiGet(null),
                            () -> keyspace.multiGet(new byte[][] {null}),
                            () -> keyspace.delete(null),
                            () -> keyspace.compareAndSet(null, null, null),
                            () -> keyspace.insertIfAbsent(b(""), null),
                            () -> keyspace.merge(b(""), null),
                            () -> keyspace.deletePrefix(null),
                            () -> keyspace.putFrom(b(""), null),
                            () -> keyspace.update(b(""), null),
                            () -> batch.put(null, b(""), b("")),
                            () -> batch.put(keyspace, null, b("")),
                            () -> transaction.get(null, b("")),
                            () -> transaction.put(keyspace, b(""), null));
            for (int i = 0; i < calls.size(); i++) {
                assertThrows(NullPointerException.class, calls.get(i), "call " + i);
            }
        }
    }

    @Test
    void droppedThings() {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("gone");
                Database branch = database.branch("branch");
                Keyspace there = branch.keyspace("default")) {
            database.dropKeyspace("gone");
            EskerException gone = assertThrows(EskerException.class, () -> keyspace.put(b("k"), b("")));
            assertEquals(ErrorCode.KEYSPACE_DROPPED, gone.code());
            assertEquals("gone", gone.keyspace());
            database.dropBranch("branch");
            EskerException missing = assertThrows(EskerException.class, () -> branch.keyspace("new"));
            assertEquals(ErrorCode.BRANCH_MISSING, missing.code());
            assertThrows(EskerException.class, () -> there.put(b("k"), b("")));
            EskerException none = assertThrows(EskerException.class, () -> database.openBranch("none"));
            assertEquals("none", none.branch());
        }
    }

    @Test
    void damage() throws IOException {
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            for (int i = 0; i < 5000; i++) {
                keyspace.put(number(i), number(i));
            }
            database.compact();
        }
        Path largest;
        try (Stream<Path> files = Files.walk(directory.resolve("db"))) {
            largest =
                    files.filter(file -> file.toString().endsWith(".run"))
                            .max((a, b) -> Long.compare(a.toFile().length(), b.toFile().length()))
                            .orElse(null);
        }
        org.junit.jupiter.api.Assumptions.assumeTrue(largest != null, "run files have another ending");
        byte[] bytes = Files.readAllBytes(largest);
        for (int i = bytes.length / 4; i < bytes.length / 4 + 64; i++) {
            bytes[i] ^= 0x55;
        }
        Files.write(largest, bytes);
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("default")) {
            CorruptionException damage =
                    assertThrows(
                            CorruptionException.class,
                            () -> {
                                for (int i = 0; i < 5000; i++) {
                                    keyspace.get(number(i));
                                }
                            });
            assertEquals(ErrorCode.CORRUPTION, damage.code());
            assertTrue(damage.path().endsWith(largest.getFileName().toString()));
            assertTrue(damage.offset().isPresent());
            assertNotNull(damage.section());
            assertEquals("default", damage.keyspace());
            assertTrue(damage.getMessage().length() > 20);
            assertTrue(database.verify().problems() > 0);
        }
    }

    @Test
    void anExceptionCanBeSent() throws Exception {
        EskerException thrown = assertThrows(EskerException.class, () -> Database.open(directory, new Options().createIfMissing(false)));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(thrown);
        }
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            EskerException read = (EskerException) in.readObject();
            assertEquals(thrown.code(), read.code());
            assertEquals(thrown.getMessage(), read.getMessage());
            assertEquals(0, read.osCode());
            assertNull(read.path());
        }
    }

    @Test
    void everyFieldOfAnException() {
        EskerException cause = EskerException.make(ErrorCode.IO, "no");
        EskerException made =
                EskerException.make(
                        31, b("why"), b("/p"), true, 7, b("block"), b("k"), b("br"), b("low"), b("high"), 5, 250, cause);
        assertTrue(made instanceof WouldBlockException);
        assertEquals("why", made.getMessage());
        assertEquals("/p", made.path());
        assertEquals(OptionalLong.of(7), made.offset());
        assertEquals("block", made.section());
        assertEquals("k", made.keyspace());
        assertEquals("br", made.branch());
        assertEquals("low", s(made.lowKey()));
        assertEquals("high", s(made.highKey()));
        assertEquals(5, made.osCode());
        assertEquals(Duration.ofNanos(250_000), made.retryAfter());
        assertEquals(cause, made.getCause());
        assertEquals(ErrorCode.OTHER, EskerException.make(12345, b("new"), null, false, 0, null, null, null, null, null, 0, 0, null).code());
    }
}
