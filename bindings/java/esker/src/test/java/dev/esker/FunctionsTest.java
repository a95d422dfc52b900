package dev.esker;

import static dev.esker.Support.b;
import static dev.esker.Support.number;
import static dev.esker.Support.s;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Functions of the program that the engine calls. */
class FunctionsTest {
    @TempDir Path directory;

    /** Joins operands with commas; refuses the operand "bad". */
    private static final MergeOperator JOIN =
            new MergeOperator() {
                @Override
                public byte[] fullMerge(byte[] key, byte[] existing, byte[][] operands) {
                    StringBuilder joined = new StringBuilder(existing == null ? "" : s(existing));
                    for (byte[] operand : operands) {
                        if (s(operand).contains("bad")) {
                            throw new IllegalArgumentException("bad");
                        }
                        joined.append(',').append(s(operand));
                    }
                    return s(operands[operands.length - 1]).equals("none") ? null : b(joined.toString());
                }

                @Override
                public byte[] partialMerge(byte[] key, byte[][] operands) {
                    List<String> all = new ArrayList<>();
                    for (byte[] operand : operands) {
                        all.add(s(operand));
                    }
                    return all.contains("none") ? null : b(String.join(",", all));
                }
            };

    @Test
    void mergeOperators() {
        Options options = Support.options().mergeOperator("join", JOIN);
        KeyspaceOptions join = new KeyspaceOptions().mergeOperator("join");
        try (Database database = Database.open(directory.resolve("db"), options);
                Keyspace keyspace = database.keyspace("k", join)) {
            assertEquals("join", keyspace.mergeOperator());
            keyspace.put(b("a"), b("0"));
            for (int i = 1; i <= 5; i++) {
                keyspace.merge(b("a"), b("" + i), Durability.PROCESS);
                keyspace.merge(b("b"), b("" + i));
                database.flush();
            }
            assertEquals("0,1,2,3,4,5", s(keyspace.get(b("a"))));
            assertEquals(",1,2,3,4,5", s(keyspace.get(b("b"))));
            database.compact();
            assertEquals("0,1,2,3,4,5", s(keyspace.get(b("a"))));
            keyspace.merge(b("a"), b("none"));
            assertNull(keyspace.get(b("a")));
            keyspace.merge(b("c"), b("bad"));
            EskerException failed = assertThrows(EskerException.class, () -> keyspace.get(b("c")));
            assertEquals(ErrorCode.MERGE_FAILED, failed.code());
            keyspace.put(b("c"), b("again"));
            assertEquals("again", s(keyspace.get(b("c"))));
        }
        // Without the operator, its keyspace is not opened.
        try (Database database = Support.open(directory)) {
            EskerException missing = assertThrows(EskerException.class, () -> database.keyspace("k", join));
            assertEquals(ErrorCode.MERGE_OPERATOR_MISSING, missing.code());
        }
    }

    @Test
    void mergesFromManyThreads() throws Exception {
        Options options = Support.options().mergeOperator("join", JOIN);
        try (Database database = Database.open(directory.resolve("db"), options);
                Keyspace keyspace = database.keyspace("k", new KeyspaceOptions().mergeOperator("join"))) {
            Support.inThreads(
                    4,
                    thread -> {
                        for (int i = 0; i < 200; i++) {
                            keyspace.merge(number(i % 20), b("x"));
                            if (i % 10 == 0) {
                                keyspace.get(number(i % 20));
                            }
                            if (i % 50 == 0) {
                                database.flush();
                            }
                        }
                    });
            database.compact();
            for (int i = 0; i < 20; i++) {
                assertEquals(40, s(keyspace.get(number(i))).replace(",", "").length());
            }
        }
    }

    @Test
    void compactionFilters() {
        Options options =
                Support.options()
                        .compactionFilter(
                                "tidy",
                                (key, value) -> {
                                    switch (s(key).charAt(0)) {
                                        case 'd':
                                            return CompactionFilter.Decision.REMOVE;
                                        case 'c':
                                            return CompactionFilter.Decision.change(b("changed"));
                                        case 'f':
                                            throw new IllegalStateException("it fails");
                                        case 'n':
                                            return null;
                                        default:
                                            return CompactionFilter.Decision.KEEP;
                                    }
                                });
        try (Database database = Database.open(directory.resolve("db"), options);
                Keyspace keyspace = database.keyspace("k", new KeyspaceOptions().compactionFilter("tidy"))) {
            for (String key : List.of("c", "d", "f", "k", "n")) {
                keyspace.put(b(key), b("value"));
            }
            keyspace.compact();
            assertEquals("changed", s(keyspace.get(b("c"))));
            assertNull(keyspace.get(b("d")));
            for (String key : List.of("f", "k", "n")) {
                assertEquals("value", s(keyspace.get(b(key))), key);
            }
        }
    }

    @Test
    void comparators() {
        AtomicInteger fails = new AtomicInteger();
        KeyComparator backwards =
                new KeyComparator() {
                    @Override
                    public String name() {
                        return "backwards";
                    }

                    @Override
                    public int compare(byte[] a, byte[] b) {
                        if (fails.get() > 0) {
                            throw new IllegalStateException("it fails");
                        }
                        return Support.BYTES.compare(b, a);
                    }
                };
        KeyspaceOptions ordered = new KeyspaceOptions().comparator(backwards);
        try (Database database = Support.open(directory);
                Keyspace keyspace = database.keyspace("k", ordered)) {
            keyspace.put(b("a"), b("1"));
            keyspace.put(b("b"), b("2"));
            database.flush();
            try (Cursor cursor = keyspace.cursor()) {
                assertTrue(cursor.next());
                assertEquals("b", s(cursor.key()));
            }
        }
        try (Database database = Support.open(directory)) {
            EskerException missing = assertThrows(EskerException.class, () -> database.keyspace("k"));
            assertEquals(ErrorCode.COMPARATOR_MISSING, missing.code());
        }
        try (Database database =
                        Database.open(directory.resolve("db"), Support.options().comparator(backwards));
                Keyspace keyspace = database.keyspace("k")) {
            assertEquals(backwards, keyspace.comparator());
            assertEquals("1", s(keyspace.get(b("a"))));
            fails.set(1);
            // One that fails is noticed at the latest by the next call.
            try {
                keyspace.get(b("a"));
            } catch (EskerException noticed) {
                assertEquals(ErrorCode.USER_CODE_FAILED, noticed.code());
            }
            EskerException refused = assertThrows(EskerException.class, () -> keyspace.get(b("a")));
            assertEquals(ErrorCode.USER_CODE_FAILED, refused.code());
            assertEquals("it fails", refused.getCause().getMessage());
            assertThrows(EskerException.class, () -> keyspace.put(b("a"), b("")));
        }
    }

    @Test
    void events() {
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        AtomicReference<Database> opened = new AtomicReference<>();
        AtomicReference<RuntimeException> refused = new AtomicReference<>();
        Options options =
                Support.options()
                        .listener(
                                event -> {
                                    seen.add(event);
                                    Database database = opened.get();
                                    if (database != null && refused.get() == null) {
                                        try {
                                            database.close();
                                        } catch (RuntimeException one) {
                                            refused.set(one);
                                        }
                                    }
                                    throw new IllegalStateException("reported, and later events still come");
                                });
        try (Database database = Database.open(directory.resolve("db"), options);
                Keyspace keyspace = database.keyspace("default")) {
            opened.set(database);
            keyspace.put(b("k"), b("v"));
            database.flush();
            database.compact();
            assertEquals("v", s(keyspace.get(b("k"))));
        }
        assertTrue(seen.size() > 1);
        assertTrue(seen.get(seen.size() - 1).contains("database_closed"), seen.toString());
        assertTrue(refused.get() instanceof MisuseException);
        assertFalse(seen.get(0).contains("\n"));
    }
}
