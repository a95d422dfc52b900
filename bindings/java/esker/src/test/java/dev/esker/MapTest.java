package dev.esker;

import static dev.esker.Support.BYTES;
import static dev.esker.Support.b;
import static dev.esker.Support.s;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NavigableSet;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The map beside a ConcurrentSkipListMap, and what its contract says beyond. */
class MapTest {
    /** Shorter keys first; of the same length, in byte order. */
    private static final KeyComparator BY_LENGTH =
            new KeyComparator() {
                @Override
                public String name() {
                    return "by length";
                }

                @Override
                public int compare(byte[] a, byte[] b) {
                    return a.length != b.length ? Integer.compare(a.length, b.length) : BYTES.compare(a, b);
                }
            };

    @TempDir Path directory;
    private Database database;
    private Keyspace keyspace;
    private ConcurrentNavigableMap<byte[], byte[]> map;

    @BeforeEach
    void open() {
        database = Support.open(directory);
        keyspace = database.keyspace("default");
        map = keyspace.map();
    }

    @AfterEach
    void close() {
        keyspace.close();
        database.close();
    }

    private static String text(Map.Entry<byte[], byte[]> entry) {
        return entry == null ? null : s(entry.getKey()) + "=" + s(entry.getValue());
    }

    private static String text(Map<byte[], byte[]> map) {
        List<String> entries = new ArrayList<>();
        map.entrySet().forEach(entry -> entries.add(text(entry)));
        return entries.toString();
    }

    private void fill(String... keys) {
        for (String key : keys) {
            map.put(b(key), b(key.toUpperCase(Locale.ROOT)));
        }
    }

    @Test
    void oneKey() {
        assertNull(map.put(b("k"), b("1")));
        assertEquals("1", s(map.put(b("k"), b("2"))));
        assertEquals("2", s(map.putIfAbsent(b("k"), b("3"))));
        assertNull(map.putIfAbsent(b("l"), b("3")));
        assertEquals("3", s(map.replace(b("l"), b("4"))));
        assertNull(map.replace(b("m"), b("4")));
        assertTrue(map.replace(b("l"), b("4"), b("5")));
        assertFalse(map.replace(b("l"), b("4"), b("6")));
        assertFalse(map.remove(b("l"), b("4")));
        assertTrue(map.remove(b("l"), b("5")));
        assertEquals("2", s(map.remove(b("k"))));
        assertNull(map.remove(b("k")));
        assertTrue(map.isEmpty());
        assertEquals("d", s(map.getOrDefault(b("k"), b("d"))));
        assertEquals("1", s(map.computeIfAbsent(b("k"), key -> b("1"))));
        assertEquals("11", s(map.computeIfPresent(b("k"), (key, value) -> b(s(value) + "1"))));
        assertEquals("k11", s(map.compute(b("k"), (key, value) -> b(s(key) + s(value)))));
        assertEquals("k11+", s(map.merge(b("k"), b("+"), (old, more) -> b(s(old) + s(more)))));
        assertNull(map.compute(b("k"), (key, value) -> null));
        assertEquals("+", s(map.merge(b("k"), b("+"), (old, more) -> null)));
        assertNull(map.merge(b("k"), b("+"), (old, more) -> null));
        assertEquals(0, map.size());
        fill("a", "b");
        map.replaceAll((key, value) -> b(s(value) + s(value)));
        assertEquals("[a=AA, b=BB]", text(map));
        assertTrue(map.containsKey(b("a")));
        assertTrue(map.containsValue(b("BB")));
        assertFalse(map.containsValue(b("CC")));
        map.putAll(Map.of(b("c"), b("C")));
        assertEquals("C", s(map.get(b("c"))));
    }

    @Test
    void nullsAndOtherTypes() {
        assertThrows(NullPointerException.class, () -> map.get(null));
        assertThrows(NullPointerException.class, () -> map.put(null, b("")));
        assertThrows(NullPointerException.class, () -> map.put(b(""), null));
        assertThrows(NullPointerException.class, () -> map.putIfAbsent(b(""), null));
        assertThrows(NullPointerException.class, () -> map.remove(null));
        assertThrows(NullPointerException.class, () -> map.containsKey(null));
        assertThrows(NullPointerException.class, () -> map.replace(b(""), null));
        assertThrows(NullPointerException.class, () -> map.ceilingKey(null));
        assertThrows(NullPointerException.class, () -> map.headMap(null));
        assertThrows(ClassCastException.class, () -> map.get("text"));
        assertFalse(map.remove(b(""), null));
        assertThrows(NoSuchElementException.class, map::firstKey);
        assertThrows(NoSuchElementException.class, map::lastKey);
        assertNull(map.firstEntry());
        assertNull(map.pollLastEntry());
    }

    @Test
    void partsAndTheirBounds() {
        fill("a", "b", "c", "d", "e");
        assertEquals("[b=B, c=C]", text(map.subMap(b("b"), b("d"))));
        assertEquals("[c=C, d=D]", text(map.subMap(b("b"), false, b("d"), true)));
        assertEquals("[a=A]", text(map.headMap(b("b"))));
        assertEquals("[d=D, e=E]", text(map.tailMap(b("d"))));
        ConcurrentNavigableMap<byte[], byte[]> part = map.subMap(b("b"), true, b("d"), false);
        assertEquals("[c=C, b=B]", text(part.descendingMap()));
        assertEquals("[b=B]", text(part.descendingMap().tailMap(b("b"))));
        assertEquals("[c=C]", text(part.descendingMap().headMap(b("b"))));
        assertNull(part.get(b("d")));
        assertNull(part.remove(b("d")));
        assertFalse(part.containsKey(b("a")));
        assertThrows(IllegalArgumentException.class, () -> part.put(b("d"), b("")));
        assertThrows(IllegalArgumentException.class, () -> part.putIfAbsent(b("a"), b("")));
        assertThrows(IllegalArgumentException.class, () -> part.replace(b("d"), b("")));
        assertThrows(IllegalArgumentException.class, () -> part.subMap(b("a"), b("c")));
        assertThrows(IllegalArgumentException.class, () -> part.headMap(b("d"), true));
        assertThrows(IllegalArgumentException.class, () -> part.tailMap(b("e"), true));
        assertThrows(IllegalArgumentException.class, () -> map.subMap(b("c"), b("b")));
        assertEquals(0, map.subMap(b("c"), b("c")).size());
        assertEquals(0, map.subMap(b("c"), false, b("c"), false).size());
        assertTrue(map.subMap(b("c"), false, b("c\0"), false).isEmpty());
        assertEquals("[c=C]", text(map.subMap(b("c"), true, b("c"), true)));
        part.clear();
        assertEquals("[a=A, d=D, e=E]", text(map));
        assertEquals("d=D", text(map.pollFirstEntry()).equals("a=A") ? text(map.pollFirstEntry()) : "");
        assertEquals("e=E", text(map.pollLastEntry()));
        assertTrue(map.isEmpty());
    }

    @Test
    void entriesAndTheirValues() {
        fill("a", "b", "c");
        for (Map.Entry<byte[], byte[]> entry : map.entrySet()) {
            byte[] old = entry.getValue();
            assertArrayEquals(old, entry.setValue(b(s(old) + "!")));
            assertEquals(s(old) + "!", s(entry.getValue()));
        }
        assertEquals("[a=A!, b=B!, c=C!]", text(map));
        assertThrows(UnsupportedOperationException.class, () -> map.firstEntry().setValue(b("")));
        assertThrows(NullPointerException.class, () -> map.entrySet().iterator().next().setValue(null));
        assertTrue(map.entrySet().contains(Map.entry(b("a"), b("A!"))));
        assertFalse(map.entrySet().contains(Map.entry(b("a"), b("A"))));
        assertFalse(map.entrySet().remove(Map.entry(b("a"), b("A"))));
        assertTrue(map.entrySet().remove(Map.entry(b("a"), b("A!"))));
        Iterator<byte[]> keys = map.keySet().iterator();
        assertThrows(IllegalStateException.class, keys::remove);
        assertEquals("b", s(keys.next()));
        keys.remove();
        assertThrows(IllegalStateException.class, keys::remove);
        assertEquals("c", s(keys.next()));
        assertThrows(NoSuchElementException.class, keys::next);
        assertTrue(map.values().contains(b("C!")));
        assertTrue(map.values().remove(b("C!")));
        assertFalse(map.values().remove(b("C!")));
        assertTrue(map.entrySet().isEmpty());
        fill("x");
        map.entrySet().clear();
        fill("x");
        map.values().clear();
        assertTrue(map.values().isEmpty());
    }

    @Test
    void keySets() {
        fill("a", "b", "c", "d");
        NavigableSet<byte[]> keys = map.navigableKeySet();
        assertEquals("a", s(keys.first()));
        assertEquals("d", s(keys.last()));
        assertEquals("a", s(keys.lower(b("b"))));
        assertEquals("b", s(keys.floor(b("bb"))));
        assertEquals("c", s(keys.ceiling(b("bb"))));
        assertEquals("c", s(keys.higher(b("b"))));
        assertEquals("d", s(map.descendingKeySet().first()));
        assertEquals("d", s(keys.descendingIterator().next()));
        assertEquals(2, keys.headSet(b("c")).size());
        assertEquals(2, keys.tailSet(b("c")).size());
        assertEquals(1, keys.subSet(b("b"), b("c")).size());
        assertEquals("c", s(keys.descendingSet().subSet(b("c"), true, b("b"), true).first()));
        assertTrue(keys.contains(b("a")));
        assertTrue(keys.removeAll(List.of(b("a"), b("z"))));
        assertTrue(keys.retainAll(List.of(b("b"), b("d"))));
        assertEquals("[b=B, d=D]", text(map));
        assertEquals("b", s(keys.pollFirst()));
        assertEquals("d", s(keys.pollLast()));
        assertNull(keys.pollFirst());
        fill("a");
        assertTrue(keys.remove(b("a")));
        assertFalse(keys.remove(b("a")));
        assertThrows(UnsupportedOperationException.class, () -> keys.add(b("a")));
    }

    @Test
    void equality() {
        fill("a", "b");
        TreeMap<byte[], byte[]> same = new TreeMap<>(BYTES);
        same.put(b("a"), b("A"));
        same.put(b("b"), b("B"));
        assertEquals(map, same);
        assertEquals(map, keyspace.map());
        assertEquals(map.hashCode(), keyspace.map().hashCode());
        assertEquals(map.keySet(), same.keySet());
        assertEquals(map.firstEntry(), map.entrySet().iterator().next());
        same.put(b("b"), b("C"));
        assertNotEquals(map, same);
        assertTrue(map.toString().contains("default"));
        assertTrue(map.keySet().toString().contains("default"));
    }

    @Test
    void iteratorsAreWeaklyConsistent() {
        for (int i = 0; i < 1000; i++) {
            map.put(Support.number(i), b(""));
        }
        int count = 0;
        for (byte[] key : map.keySet()) {
            map.remove(key);
            // It goes to where the iterator has been.
            map.put(b("-" + s(key)), b(""));
            count++;
        }
        assertEquals(1000, count);
        assertEquals(1000, map.size());
    }

    @Test
    void computeLosesNothing() throws Exception {
        Support.inThreads(
                4,
                number -> {
                    for (int i = 0; i < 200; i++) {
                        map.merge(b("n"), b("x"), (old, more) -> b(s(old) + s(more)));
                        map.compute(b("m"), (key, old) -> old == null ? b("x") : b(s(old) + "x"));
                    }
                });
        assertEquals(800, map.get(b("n")).length);
        assertEquals(800, map.get(b("m")).length);
    }

    @Test
    void besideASkipListMap() {
        long seed = Support.seed();
        Random random = new Random(seed);
        ConcurrentNavigableMap<byte[], byte[]> model = new ConcurrentSkipListMap<>(BYTES);
        compare(map, model, random, Support.LONG ? 100_000 : 5_000, Support.again(seed));
    }

    @Test
    void besideASkipListMapInAnotherOrder() {
        long seed = Support.seed();
        Random random = new Random(seed);
        try (Keyspace other = database.keyspace("other", new KeyspaceOptions().comparator(BY_LENGTH));
                Keyspace again = database.keyspace("other")) {
            assertEquals(BY_LENGTH, other.comparator());
            assertEquals(BY_LENGTH, again.comparator());
            ConcurrentNavigableMap<byte[], byte[]> model = new ConcurrentSkipListMap<>(BY_LENGTH);
            compare(other.map(), model, random, Support.LONG ? 20_000 : 2_000, Support.again(seed));
            assertThrows(InvalidArgumentException.class, () -> other.cursorOfPrefix(b("a")));
        }
    }

    private static byte[] key(Random random) {
        byte[] key = new byte[random.nextInt(4)];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) (random.nextInt(4) * 85);
        }
        return key;
    }

    /** Random calls on a map and a model, and on parts of them. */
    private void compare(
            ConcurrentNavigableMap<byte[], byte[]> map,
            ConcurrentNavigableMap<byte[], byte[]> model,
            Random random,
            int steps,
            String again) {
        for (int step = 0; step < steps; step++) {
            ConcurrentNavigableMap<byte[], byte[]> part = map;
            ConcurrentNavigableMap<byte[], byte[]> modelPart = model;
            for (int depth = random.nextInt(4); depth > 0; depth--) {
                byte[] from = key(random);
                byte[] to = key(random);
                boolean fromIn = random.nextBoolean();
                boolean toIn = random.nextBoolean();
                int how = random.nextInt(4);
                ConcurrentNavigableMap<byte[], byte[]> next = cut(modelPart, how, from, fromIn, to, toIn);
                ConcurrentNavigableMap<byte[], byte[]> mine = cut(part, how, from, fromIn, to, toIn);
                assertEquals(next == null, mine == null, again + ", step " + step);
                if (next != null) {
                    modelPart = next;
                    part = mine;
                }
            }
            byte[] key = key(random);
            byte[] value = b("v" + step);
            int call = random.nextInt(24);
            assertEquals(
                    answer(modelPart, call, key, value), answer(part, call, key, value), again + ", step " + step + ", call " + call);
            if (step % 500 == 0) {
                database.flush();
                assertEquals(text(model), text(map), again);
            }
        }
        assertEquals(text(model), text(map), again);
    }

    private static ConcurrentNavigableMap<byte[], byte[]> cut(
            ConcurrentNavigableMap<byte[], byte[]> map, int how, byte[] from, boolean fromIn, byte[] to, boolean toIn) {
        try {
            switch (how) {
                case 0:
                    return map.subMap(from, fromIn, to, toIn);
                case 1:
                    return map.headMap(to, toIn);
                case 2:
                    return map.tailMap(from, fromIn);
                default:
                    return map.descendingMap();
            }
        } catch (IllegalArgumentException outside) {
            return null;
        }
    }

    private static String answer(ConcurrentNavigableMap<byte[], byte[]> map, int call, byte[] key, byte[] value) {
        try {
            switch (call) {
                case 0:
                case 1:
                case 2:
                case 3:
                    return s(map.put(key, value));
                case 4:
                    return s(map.putIfAbsent(key, value));
                case 5:
                    return s(map.remove(key));
                case 6:
                    return s(map.replace(key, value));
                case 7:
                    return String.valueOf(map.remove(key, value));
                case 8:
                    return text(map.lowerEntry(key));
                case 9:
                    return text(map.floorEntry(key));
                case 10:
                    return text(map.ceilingEntry(key));
                case 11:
                    return text(map.higherEntry(key));
                case 12:
                    return text(map.firstEntry()) + text(map.lastEntry());
                case 13:
                    return text(map.pollFirstEntry());
                case 14:
                    return text(map.pollLastEntry());
                case 15:
                    return map.size() + " " + map.isEmpty();
                case 16:
                    return text(map);
                case 17:
                    return s(map.get(key)) + map.containsKey(key);
                case 18:
                    if (value[value.length - 1] == '7') {
                        map.clear();
                    }
                    return "";
                case 19:
                    return s(map.compute(key, (k, old) -> old == null ? value : old.length > 4 ? null : Arrays.copyOf(old, 6)));
                case 20:
                    return texts(map.keySet()) + texts(map.descendingKeySet());
                case 21:
                    return texts(map.values());
                case 22:
                    map.entrySet().removeIf(entry -> entry.getKey().length == 3 && entry.getKey()[0] == 0);
                    return "";
                default:
                    return s(map.getOrDefault(key, value));
            }
        } catch (IllegalArgumentException outside) {
            return "outside";
        }
    }

    private static String texts(Collection<byte[]> all) {
        List<String> texts = new ArrayList<>();
        all.forEach(one -> texts.add(Arrays.toString(one)));
        return texts.toString();
    }
}
