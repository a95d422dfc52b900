package dev.esker;

import static dev.esker.Support.b;
import static dev.esker.Support.number;
import static dev.esker.Support.s;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Cursors: what they show, however many entries they fetch at a time, and whichever way they go. */
class CursorTest {
    @TempDir Path directory;
    private Database database;
    private Keyspace keyspace;

    @BeforeEach
    void open() {
        database =
                Database.open(
                        directory.resolve("db"),
                        Support.options()
                                .mergeOperator(
                                        "picky",
                                        (key, existing, operands) -> {
                                            if (s(key).endsWith("3")) {
                                                throw new IllegalArgumentException("3");
                                            }
                                            return operands[operands.length - 1];
                                        }));
        keyspace = database.keyspace("default");
    }

    @AfterEach
    void close() {
        keyspace.close();
        database.close();
    }

    @Test
    void forwardsAndBackwards() {
        for (int i = 0; i < 10_000; i++) {
            keyspace.put(number(i), number(i * 2));
        }
        try (Cursor cursor = keyspace.cursor()) {
            assertFalse(cursor.isValid());
            int count = 0;
            while (cursor.next()) {
                assertArrayEquals(number(count), cursor.key());
                assertArrayEquals(number(count * 2), cursor.value());
                count++;
            }
            assertEquals(10_000, count);
            assertFalse(cursor.isValid());
            assertFalse(cursor.next());
            assertThrows(MisuseException.class, cursor::key);
            assertTrue(cursor.last());
            for (count = 9_999; cursor.isValid(); cursor.prev()) {
                assertArrayEquals(number(count), cursor.key());
                count--;
            }
            assertEquals(-1, count);
        }
        try (Cursor cursor = keyspace.cursor(number(100), number(200))) {
            assertTrue(cursor.prev(), "it begins at the last one");
            assertArrayEquals(number(199), cursor.key());
            assertTrue(cursor.seek(b("")));
            assertArrayEquals(number(100), cursor.key());
            assertFalse(cursor.seek(number(200)));
            assertTrue(cursor.seekBack(number(5000)));
            assertEquals(s(number(199)), s(Buffers.bytes(cursor.keyBuffer())));
            assertEquals(s(number(398)), s(Buffers.bytes(cursor.valueBuffer())));
            assertTrue(cursor.keyBuffer().isReadOnly());
        }
        try (Cursor cursor = keyspace.cursorOfPrefix(b("0000001"))) {
            int count = 0;
            while (cursor.next()) {
                count++;
            }
            assertEquals(10, count);
        }
    }

    @Test
    void aCursorStaysAsItWas() {
        keyspace.put(b("a"), b("1"));
        try (Cursor cursor = keyspace.cursor()) {
            keyspace.put(b("b"), b("2"));
            keyspace.put(b("a"), b("3"));
            assertTrue(cursor.next());
            assertEquals("1", s(cursor.value()));
            assertFalse(cursor.next());
        }
    }

    @Test
    void entriesThatFillTheBuffer() {
        byte[] large = new byte[300_000];
        for (int i = 0; i < 40; i++) {
            keyspace.put(number(i), i % 7 == 3 ? large : new byte[i * 1000]);
        }
        for (boolean flushed : new boolean[] {false, true}) {
            if (flushed) {
                database.flush();
            }
            try (Cursor cursor = keyspace.cursor()) {
                for (boolean back : new boolean[] {false, true}) {
                    int count = 0;
                    for (boolean on = back ? cursor.last() : cursor.first(); on; on = back ? cursor.prev() : cursor.next()) {
                        int i = back ? 39 - count : count;
                        assertArrayEquals(number(i), cursor.key());
                        assertEquals(i % 7 == 3 ? large.length : i * 1000, cursor.value().length);
                        count++;
                    }
                    assertEquals(40, count);
                }
            }
        }
    }

    @Test
    void randomMoves() {
        long seed = Support.seed();
        Random random = new Random(seed);
        TreeMap<byte[], byte[]> model = new TreeMap<>(Support.BYTES);
        for (int i = 0; i < 2000; i++) {
            byte[] key = number(random.nextInt(5000));
            byte[] value = new byte[random.nextInt(random.nextInt(100) == 0 ? 100_000 : 100)];
            random.nextBytes(value);
            keyspace.put(key, value);
            model.put(key, value);
            if (i % 700 == 0) {
                database.flush();
            }
        }
        for (int round = 0; round < 20; round++) {
            byte[] one = number(random.nextInt(5000));
            byte[] other = number(random.nextInt(5000));
            boolean swapped = Arrays.compareUnsigned(one, other) > 0;
            byte[] low = random.nextInt(3) == 0 ? null : swapped ? other : one;
            byte[] high = random.nextInt(3) == 0 ? null : swapped ? one : other;
            NavigableMap<byte[], byte[]> part = model;
            part = low == null ? part : part.tailMap(low, true);
            part = high == null ? part : part.headMap(high, false);
            try (Cursor cursor = keyspace.cursor(low, high)) {
                walk(cursor, part, random, Support.again(seed));
            }
        }
    }

    private void walk(Cursor cursor, NavigableMap<byte[], byte[]> part, Random random, String again) {
        Map.Entry<byte[], byte[]> expected = null;
        for (int step = 0; step < 500; step++) {
            byte[] to = number(random.nextInt(5000));
            boolean found;
            int move = random.nextInt(40);
            switch (move) {
                case 0:
                    found = cursor.first();
                    expected = part.firstEntry();
                    break;
                case 1:
                    found = cursor.last();
                    expected = part.lastEntry();
                    break;
                case 2:
                case 3:
                    found = cursor.seek(to);
                    expected = part.ceilingEntry(to);
                    break;
                case 4:
                case 5:
                    found = cursor.seekBack(to);
                    expected = part.floorEntry(to);
                    break;
                default:
                    if (expected == null) {
                        continue;
                    }
                    // In long stretches, so that fetches grow.
                    boolean back = (step / 60) % 2 == 1 ^ move < 9;
                    found = back ? cursor.prev() : cursor.next();
                    expected = back ? part.lowerEntry(expected.getKey()) : part.higherEntry(expected.getKey());
            }
            assertEquals(expected != null, found, again);
            assertEquals(found, cursor.isValid(), again);
            if (found) {
                assertArrayEquals(expected.getKey(), cursor.key(), again);
                assertArrayEquals(expected.getValue(), cursor.value(), again);
            }
        }
    }

    @Test
    void theErrorOfOneEntry() {
        try (Keyspace picky = database.keyspace("picky", new KeyspaceOptions().mergeOperator("picky"))) {
            for (int i = 0; i < 20; i++) {
                picky.merge(b(String.format("%02d", i)), b("v" + i));
            }
            for (boolean back : new boolean[] {false, true}) {
                StringBuilder seen = new StringBuilder();
                try (Cursor cursor = picky.cursor()) {
                    for (int i = 0; i < 20; i++) {
                        try {
                            assertTrue(back ? cursor.prev() : cursor.next());
                            seen.append(s(cursor.key())).append(' ');
                        } catch (EskerException failed) {
                            assertEquals(ErrorCode.MERGE_FAILED, failed.code());
                            assertFalse(cursor.isValid());
                            seen.append("failed ");
                        }
                    }
                    assertFalse(back ? cursor.prev() : cursor.next());
                }
                String all =
                        back
                                ? "19 18 17 16 15 14 failed 12 11 10 09 08 07 06 05 04 failed 02 01 00 "
                                : "00 01 02 failed 04 05 06 07 08 09 10 11 12 failed 14 15 16 17 18 19 ";
                assertEquals(all, seen.toString());
            }
        }
    }
}
