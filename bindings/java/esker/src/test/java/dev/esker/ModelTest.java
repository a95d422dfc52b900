package dev.esker;

import static dev.esker.Support.b;
import static dev.esker.Support.s;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Random calls beside tree maps: keyspaces, batches, transactions, snapshots, and opening again. */
class ModelTest {
    private static final int KEYSPACES = 3;

    @TempDir Path directory;
    private final List<TreeMap<byte[], byte[]>> model = new ArrayList<>();
    private final List<Keyspace> keyspaces = new ArrayList<>();
    private final List<Snapshot> snapshots = new ArrayList<>();
    private final List<List<TreeMap<byte[], byte[]>>> kept = new ArrayList<>();
    private Database database;
    private Random random;
    private String again;

    @Test
    void randomCalls() {
        long seed = Support.seed();
        again = Support.again(seed);
        random = new Random(seed);
        for (int i = 0; i < KEYSPACES; i++) {
            model.add(new TreeMap<>(Support.BYTES));
        }
        open();
        int steps = Support.LONG ? 200_000 : 8_000;
        for (int step = 0; step < steps; step++) {
            try {
                step();
            } catch (AssertionError | RuntimeException failure) {
                throw new AssertionError(again + ", step " + step, failure);
            }
        }
        compareAll();
        close();
    }

    private void open() {
        database = Database.open(directory.resolve("db"), Support.options().memtableBytes(256 << 10));
        for (int i = 0; i < KEYSPACES; i++) {
            keyspaces.add(database.keyspace("k" + i, new KeyspaceOptions().mergeOperator("esker.append:2c")));
        }
    }

    private void close() {
        // In a random order: none of them needs another one for its end.
        List<AutoCloseable> all = new ArrayList<>(keyspaces);
        all.addAll(snapshots);
        all.add(database);
        java.util.Collections.shuffle(all, random);
        for (AutoCloseable one : all) {
            try {
                one.close();
            } catch (Exception failure) {
                throw new AssertionError(failure);
            }
        }
        keyspaces.clear();
        snapshots.clear();
        kept.clear();
    }

    private byte[] key() {
        return b(Integer.toString(random.nextInt(400), 7));
    }

    private byte[] value() {
        byte[] value = new byte[random.nextInt(50) == 0 ? random.nextInt(20_000) : random.nextInt(40)];
        random.nextBytes(value);
        return value;
    }

    private void step() {
        int which = random.nextInt(KEYSPACES);
        Keyspace keyspace = keyspaces.get(which);
        TreeMap<byte[], byte[]> map = model.get(which);
        byte[] key = key();
        int call = random.nextInt(100);
        if (call < 25) {
            byte[] value = value();
            keyspace.put(key, value);
            map.put(key, value);
        } else if (call < 40) {
            assertArrayEquals(map.get(key), keyspace.get(key));
        } else if (call < 48) {
            keyspace.delete(key);
            map.remove(key);
        } else if (call < 52) {
            byte[] low = key;
            byte[] high = key();
            if (Support.BYTES.compare(low, high) <= 0) {
                keyspace.deleteRange(low, high);
                map.subMap(low, high).clear();
            }
        } else if (call < 60) {
            merge(keyspace, map, key);
        } else if (call < 68) {
            batch();
        } else if (call < 76) {
            transaction();
        } else if (call < 84) {
            byte[] expected = random.nextBoolean() ? map.get(key) : value();
            byte[] value = random.nextInt(4) == 0 ? null : value();
            boolean same = java.util.Arrays.equals(expected, map.get(key));
            assertEquals(same, keyspace.compareAndSet(key, expected, value));
            if (same) {
                set(map, key, value);
            }
        } else if (call < 88) {
            compare(keyspace, map);
        } else if (call < 92) {
            snapshot();
        } else if (call < 95) {
            assertEquals(map.size(), keyspace.count());
        } else if (call < 98) {
            database.flush();
        } else if (random.nextInt(20) == 0) {
            close();
            open();
        } else if (random.nextInt(10) == 0) {
            database.compact();
        }
    }

    private static void set(Map<byte[], byte[]> map, byte[] key, byte[] value) {
        if (value == null) {
            map.remove(key);
        } else {
            map.put(key, value);
        }
    }

    private static byte[] appended(byte[] old, byte[] operand) {
        if (old == null) {
            return operand;
        }
        byte[] joined = java.util.Arrays.copyOf(old, old.length + 1 + operand.length);
        joined[old.length] = ',';
        System.arraycopy(operand, 0, joined, old.length + 1, operand.length);
        return joined;
    }

    private void merge(Keyspace keyspace, TreeMap<byte[], byte[]> map, byte[] key) {
        byte[] operand = new byte[random.nextInt(5)];
        keyspace.merge(key, operand);
        map.put(key, appended(map.get(key), operand));
    }

    private void batch() {
        try (Batch batch = new Batch()) {
            for (int i = random.nextInt(20); i >= 0; i--) {
                int which = random.nextInt(KEYSPACES);
                byte[] key = key();
                if (random.nextInt(3) == 0) {
                    batch.delete(keyspaces.get(which), key);
                    model.get(which).remove(key);
                } else {
                    byte[] value = value();
                    batch.put(keyspaces.get(which), key, value);
                    model.get(which).put(key, value);
                }
            }
            database.write(batch);
        }
    }

    private void transaction() {
        List<TreeMap<byte[], byte[]>> changed = copies();
        try (Transaction transaction = database.begin()) {
            for (int i = random.nextInt(10); i >= 0; i--) {
                int which = random.nextInt(KEYSPACES);
                byte[] key = key();
                if (random.nextBoolean()) {
                    assertArrayEquals(changed.get(which).get(key), transaction.get(keyspaces.get(which), key));
                } else {
                    byte[] value = value();
                    transaction.put(keyspaces.get(which), key, value);
                    changed.get(which).put(key, value);
                }
            }
            try (TransactionCursor cursor = transaction.cursor(keyspaces.get(0), null, null)) {
                for (Map.Entry<byte[], byte[]> expected : changed.get(0).entrySet()) {
                    Map.Entry<byte[], byte[]> entry = cursor.next();
                    assertArrayEquals(expected.getKey(), entry.getKey());
                    assertArrayEquals(expected.getValue(), entry.getValue());
                    if (random.nextInt(30) == 0) {
                        break;
                    }
                }
            }
            if (random.nextInt(3) > 0) {
                transaction.commit();
                model.clear();
                model.addAll(changed);
            }
        }
    }

    private List<TreeMap<byte[], byte[]>> copies() {
        List<TreeMap<byte[], byte[]>> copies = new ArrayList<>();
        for (TreeMap<byte[], byte[]> map : model) {
            copies.add(new TreeMap<>(map));
        }
        return copies;
    }

    private void snapshot() {
        if (snapshots.size() < 3 && random.nextBoolean()) {
            snapshots.add(database.snapshot());
            kept.add(copies());
            return;
        }
        if (snapshots.isEmpty()) {
            return;
        }
        int at = random.nextInt(snapshots.size());
        int which = random.nextInt(KEYSPACES);
        TreeMap<byte[], byte[]> map = kept.get(at).get(which);
        byte[] key = key();
        assertArrayEquals(map.get(key), snapshots.get(at).get(keyspaces.get(which), key));
        try (Cursor cursor = snapshots.get(at).cursor(keyspaces.get(which), null, null)) {
            compare(cursor, map);
        }
        if (random.nextInt(3) == 0) {
            snapshots.remove(at).close();
            kept.remove(at);
        }
    }

    private void compare(Keyspace keyspace, TreeMap<byte[], byte[]> map) {
        try (Cursor cursor = keyspace.cursor()) {
            compare(cursor, map);
        }
    }

    private static void compare(Cursor cursor, TreeMap<byte[], byte[]> map) {
        for (Map.Entry<byte[], byte[]> expected : map.entrySet()) {
            assertEquals(true, cursor.next());
            assertEquals(s(expected.getKey()), s(cursor.key()));
            assertArrayEquals(expected.getValue(), cursor.value());
        }
        assertEquals(false, cursor.next());
    }

    private void compareAll() {
        for (int i = 0; i < KEYSPACES; i++) {
            compare(keyspaces.get(i), model.get(i));
        }
    }
}
