package dev.esker;

import java.util.AbstractCollection;
import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableSet;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.function.Function;

/**
 * A keyspace, or a range of it, as a map; in its order or against it.
 *
 * <p>Arrays are compared by their bytes everywhere. Each change of one key is atomic. Iterators hold
 * nothing of the engine between two steps: they fetch some entries at a time, and so are weakly consistent.
 */
final class KeyspaceMap extends AbstractMap<byte[], byte[]> implements ConcurrentNavigableMap<byte[], byte[]> {
    /** How many entries an iterator fetches first, and at most. */
    private static final int FEW = 4;

    private static final int MANY = 256;

    private final Keyspace keyspace;
    private final Comparator<? super byte[]> order;

    /** The bounds in the order of the keyspace; null for none. */
    private final byte[] low;

    private final boolean lowInclusive;
    private final byte[] high;
    private final boolean highInclusive;
    private final boolean descending;

    KeyspaceMap(Keyspace keyspace) {
        this(keyspace, null, false, null, false, false);
    }

    private KeyspaceMap(
            Keyspace keyspace,
            byte[] low,
            boolean lowInclusive,
            byte[] high,
            boolean highInclusive,
            boolean descending) {
        this.keyspace = keyspace;
        this.order = keyspace.comparator();
        this.low = low;
        this.lowInclusive = lowInclusive;
        this.high = high;
        this.highInclusive = highInclusive;
        this.descending = descending;
    }

    // The range, as the engine takes it: from a start, included, to an end, excluded.

    /** The first key behind a key, in byte order. */
    private static byte[] behind(byte[] key) {
        return Arrays.copyOf(key, key.length + 1);
    }

    /** With a comparator, an excluded lower bound is included, and {@link #fits} leaves it out. */
    private byte[] start() {
        return low == null || lowInclusive || !keyspace.isBytewise() ? low : behind(low);
    }

    /** With a comparator, an included upper bound is none, and {@link #fits} ends there. */
    private byte[] end() {
        if (high == null || !highInclusive) {
            return high;
        }
        return keyspace.isBytewise() ? behind(high) : null;
    }

    /** Whether no key can lie within the bounds. */
    private boolean isVoid() {
        if (low == null || high == null) {
            return false;
        }
        int compared = order.compare(low, high);
        return compared > 0 || (compared == 0 && !(lowInclusive && highInclusive)) || isVoidInBytes();
    }

    private boolean isVoidInBytes() {
        return keyspace.isBytewise() && Arrays.compareUnsigned(start(), end()) >= 0;
    }

    /** Whether {@link #start} and {@link #end} say all about the range. */
    private boolean isExact() {
        return keyspace.isBytewise() || ((low == null || lowInclusive) && (high == null || !highInclusive));
    }

    private boolean isAboveLow(byte[] key) {
        if (low == null) {
            return true;
        }
        int compared = order.compare(key, low);
        return compared > 0 || (compared == 0 && lowInclusive);
    }

    private boolean isBelowHigh(byte[] key) {
        if (high == null) {
            return true;
        }
        int compared = order.compare(key, high);
        return compared < 0 || (compared == 0 && highInclusive);
    }

    private boolean fits(byte[] key) {
        return isAboveLow(key) && isBelowHigh(key);
    }

    private static byte[] key(Object key) {
        return (byte[]) Objects.requireNonNull(key, "key");
    }

    private byte[] fitting(byte[] key) {
        if (!fits(key(key))) {
            throw new IllegalArgumentException("the key is out of the range of this map");
        }
        return key;
    }

    /** Fetches entries within the range, in one direction; {@code from} null: from the end where it begins. */
    private Scan scan(byte[] from, boolean inclusive, boolean back, int most) {
        if (isVoid()) {
            return Scan.empty();
        }
        // With a comparator, what is left out may be fetched first.
        int asked = keyspace.isBytewise() ? most : most + 2;
        Scan scan = Scan.of(keyspace, start(), end(), Scan.begin(from, inclusive, back), from, asked);
        if (!keyspace.isBytewise()) {
            if (scan.entries.removeIf(entry -> back ? !isAboveLow(entry.getKey()) : !isBelowHigh(entry.getKey()))) {
                scan.ended = true;
            }
            scan.entries.removeIf(
                    entry ->
                            !fits(entry.getKey())
                                    || (from != null && !inclusive && order.compare(entry.getKey(), from) == 0));
        }
        return scan;
    }

    /** The nearest entry to a key in one direction, or the outermost one if the key is null. */
    private MapEntry nearest(byte[] from, boolean inclusive, boolean back) {
        boolean cut = from != null && (back ? !isBelowHigh(from) : !isAboveLow(from));
        // Beyond the range, it is the outermost one too. The engine's range has the bounds in bytes.
        byte[] near = cut ? null : from;
        if (near == null && !keyspace.isBytewise()) {
            near = back ? high : low;
            if (near != null) {
                Scan scan = scan(near, back ? highInclusive : lowInclusive, back, 1);
                return scan.entries.isEmpty() ? null : scan.entries.get(0).fixed();
            }
        }
        Scan scan = scan(near, inclusive, back, 1);
        return scan.entries.isEmpty() ? null : scan.entries.get(0).fixed();
    }

    private static byte[] keyOf(Map.Entry<byte[], byte[]> entry) {
        return entry == null ? null : entry.getKey();
    }

    // One key.

    @Override
    public byte[] get(Object key) {
        byte[] bytes = key(key);
        return fits(bytes) ? keyspace.get(bytes) : null;
    }

    @Override
    public boolean containsKey(Object key) {
        byte[] bytes = key(key);
        return fits(bytes) && keyspace.contains(bytes);
    }

    @Override
    public byte[] put(byte[] key, byte[] value) {
        fitting(key);
        Objects.requireNonNull(value, "value");
        while (true) {
            byte[] old = keyspace.get(key);
            if (keyspace.compareAndSet(key, old, value)) {
                return old;
            }
        }
    }

    @Override
    public byte[] putIfAbsent(byte[] key, byte[] value) {
        fitting(key);
        Objects.requireNonNull(value, "value");
        while (true) {
            if (keyspace.insertIfAbsent(key, value)) {
                return null;
            }
            byte[] old = keyspace.get(key);
            if (old != null) {
                return old;
            }
        }
    }

    @Override
    public byte[] remove(Object key) {
        byte[] bytes = key(key);
        while (fits(bytes)) {
            byte[] old = keyspace.get(bytes);
            if (old == null || keyspace.compareAndSet(bytes, old, null)) {
                return old;
            }
        }
        return null;
    }

    @Override
    public boolean remove(Object key, Object value) {
        byte[] bytes = key(key);
        return value instanceof byte[] expected && fits(bytes) && keyspace.compareAndSet(bytes, expected, null);
    }

    @Override
    public byte[] replace(byte[] key, byte[] value) {
        fitting(key);
        Objects.requireNonNull(value, "value");
        while (true) {
            byte[] old = keyspace.get(key);
            if (old == null || keyspace.compareAndSet(key, old, value)) {
                return old;
            }
        }
    }

    @Override
    public boolean replace(byte[] key, byte[] expected, byte[] value) {
        fitting(key);
        Objects.requireNonNull(expected, "expected");
        Objects.requireNonNull(value, "value");
        return keyspace.compareAndSet(key, expected, value);
    }

    // All keys.

    /** Without a look at the old values, which nobody asks for. */
    @Override
    public void putAll(Map<? extends byte[], ? extends byte[]> entries) {
        entries.forEach((key, value) -> keyspace.put(fitting(key), value));
    }

    @Override
    public int size() {
        if (isVoid()) {
            return 0;
        }
        long size;
        if (isExact()) {
            size = keyspace.count(start(), end());
        } else {
            size = keyspace.count(low, high);
            if (low != null && !lowInclusive && keyspace.contains(low)) {
                size--;
            }
            if (high != null && highInclusive && keyspace.contains(high)) {
                size++;
            }
        }
        return (int) Math.min(Integer.MAX_VALUE, size);
    }

    @Override
    public boolean isEmpty() {
        return firstEntry() == null;
    }

    @Override
    public boolean containsValue(Object value) {
        Objects.requireNonNull(value, "value");
        return value instanceof byte[] && values().contains(value);
    }

    @Override
    public void clear() {
        if (isVoid()) {
            return;
        }
        if (isExact()) {
            keyspace.deleteRange(start(), end());
            return;
        }
        for (Iterator<byte[]> keys = keySet().iterator(); keys.hasNext(); ) {
            keyspace.delete(keys.next());
        }
    }

    // Neighbours.

    @Override
    public Map.Entry<byte[], byte[]> lowerEntry(byte[] key) {
        return nearest(key(key), false, !descending);
    }

    @Override
    public byte[] lowerKey(byte[] key) {
        return keyOf(lowerEntry(key));
    }

    @Override
    public Map.Entry<byte[], byte[]> floorEntry(byte[] key) {
        return nearest(key(key), true, !descending);
    }

    @Override
    public byte[] floorKey(byte[] key) {
        return keyOf(floorEntry(key));
    }

    @Override
    public Map.Entry<byte[], byte[]> ceilingEntry(byte[] key) {
        return nearest(key(key), true, descending);
    }

    @Override
    public byte[] ceilingKey(byte[] key) {
        return keyOf(ceilingEntry(key));
    }

    @Override
    public Map.Entry<byte[], byte[]> higherEntry(byte[] key) {
        return nearest(key(key), false, descending);
    }

    @Override
    public byte[] higherKey(byte[] key) {
        return keyOf(higherEntry(key));
    }

    @Override
    public Map.Entry<byte[], byte[]> firstEntry() {
        return nearest(null, true, descending);
    }

    @Override
    public Map.Entry<byte[], byte[]> lastEntry() {
        return nearest(null, true, !descending);
    }

    private static byte[] some(Map.Entry<byte[], byte[]> entry) {
        if (entry == null) {
            throw new NoSuchElementException("the map is empty");
        }
        return entry.getKey();
    }

    @Override
    public byte[] firstKey() {
        return some(firstEntry());
    }

    @Override
    public byte[] lastKey() {
        return some(lastEntry());
    }

    private Map.Entry<byte[], byte[]> poll(boolean back) {
        while (true) {
            MapEntry entry = nearest(null, true, back);
            if (entry == null || keyspace.compareAndSet(entry.getKey(), entry.getValue(), null)) {
                return entry;
            }
        }
    }

    @Override
    public Map.Entry<byte[], byte[]> pollFirstEntry() {
        return poll(descending);
    }

    @Override
    public Map.Entry<byte[], byte[]> pollLastEntry() {
        return poll(!descending);
    }

    // Parts.

    @Override
    public Comparator<? super byte[]> comparator() {
        return descending ? Collections.reverseOrder(order) : order;
    }

    /** A part between bounds in the order of the keyspace; null leaves the bound as it is. */
    private KeyspaceMap part(byte[] from, boolean fromInclusive, byte[] to, boolean toInclusive) {
        if (from != null && to != null && order.compare(from, to) > 0) {
            throw new IllegalArgumentException("the range begins behind its end");
        }
        if (from != null && low != null) {
            int compared = order.compare(from, low);
            if (compared < 0 || (compared == 0 && fromInclusive && !lowInclusive)) {
                throw new IllegalArgumentException("the range begins before that of this map");
            }
        }
        if (to != null && high != null) {
            int compared = order.compare(to, high);
            if (compared > 0 || (compared == 0 && toInclusive && !highInclusive)) {
                throw new IllegalArgumentException("the range ends behind that of this map");
            }
        }
        // A bound of one side may also lie beyond the other side.
        if ((from != null && !isBelowOrAtHigh(from)) || (to != null && !isAboveOrAtLow(to))) {
            throw new IllegalArgumentException("the range lies outside of that of this map");
        }
        return new KeyspaceMap(
                keyspace,
                from == null ? low : from.clone(),
                from == null ? lowInclusive : fromInclusive,
                to == null ? high : to.clone(),
                to == null ? highInclusive : toInclusive,
                descending);
    }

    private boolean isBelowOrAtHigh(byte[] key) {
        return high == null || order.compare(key, high) <= 0;
    }

    private boolean isAboveOrAtLow(byte[] key) {
        return low == null || order.compare(key, low) >= 0;
    }

    @Override
    public KeyspaceMap subMap(byte[] from, boolean fromInclusive, byte[] to, boolean toInclusive) {
        key(from);
        key(to);
        return descending ? part(to, toInclusive, from, fromInclusive) : part(from, fromInclusive, to, toInclusive);
    }

    @Override
    public KeyspaceMap headMap(byte[] to, boolean inclusive) {
        key(to);
        return descending ? part(to, inclusive, null, false) : part(null, false, to, inclusive);
    }

    @Override
    public KeyspaceMap tailMap(byte[] from, boolean inclusive) {
        key(from);
        return descending ? part(null, false, from, inclusive) : part(from, inclusive, null, false);
    }

    @Override
    public KeyspaceMap subMap(byte[] from, byte[] to) {
        return subMap(from, true, to, false);
    }

    @Override
    public KeyspaceMap headMap(byte[] to) {
        return headMap(to, false);
    }

    @Override
    public KeyspaceMap tailMap(byte[] from) {
        return tailMap(from, true);
    }

    @Override
    public KeyspaceMap descendingMap() {
        return new KeyspaceMap(keyspace, low, lowInclusive, high, highInclusive, !descending);
    }

    // Views.

    /** Walks over the entries as they are fetched, and gives what {@code made} makes of each. */
    private final class Walk<T> implements Iterator<T> {
        private final Function<MapEntry, T> made;
        private Scan scan;
        private int at;
        private int most = FEW;
        private MapEntry given;

        Walk(Function<MapEntry, T> made) {
            this.made = made;
        }

        @Override
        public boolean hasNext() {
            while (scan == null || at == scan.entries.size()) {
                if (scan != null && scan.ended) {
                    return false;
                }
                byte[] last = scan == null ? null : scan.entries.isEmpty() ? null : scan.entries.get(at - 1).getKey();
                if (scan != null && last == null) {
                    return false;
                }
                scan = last == null ? outermost() : scan(last, false, descending, most);
                at = 0;
                most = Math.min(MANY, most * 4);
            }
            return true;
        }

        /** With a comparator, the engine's range may be wider than the map's. */
        private Scan outermost() {
            if (!keyspace.isBytewise()) {
                byte[] bound = descending ? high : low;
                if (bound != null) {
                    return scan(bound, descending ? highInclusive : lowInclusive, descending, most);
                }
            }
            return scan(null, true, descending, most);
        }

        @Override
        public T next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            given = scan.entries.get(at++);
            return made.apply(given);
        }

        @Override
        public void remove() {
            if (given == null) {
                throw new IllegalStateException("nothing to remove");
            }
            keyspace.delete(given.getKey());
            given = null;
        }
    }

    @Override
    public Set<Map.Entry<byte[], byte[]>> entrySet() {
        return new Entries();
    }

    private final class Entries extends AbstractSet<Map.Entry<byte[], byte[]>> {
        @Override
        public Iterator<Map.Entry<byte[], byte[]>> iterator() {
            return new Walk<>(entry -> entry);
        }

        @Override
        public int size() {
            return KeyspaceMap.this.size();
        }

        @Override
        public boolean isEmpty() {
            return KeyspaceMap.this.isEmpty();
        }

        @Override
        public void clear() {
            KeyspaceMap.this.clear();
        }

        @Override
        public boolean contains(Object other) {
            return other instanceof Map.Entry<?, ?> entry
                    && entry.getKey() instanceof byte[] key
                    && entry.getValue() instanceof byte[] value
                    && Arrays.equals(value, KeyspaceMap.this.get(key));
        }

        @Override
        public boolean remove(Object other) {
            return other instanceof Map.Entry<?, ?> entry
                    && entry.getKey() instanceof byte[] key
                    && KeyspaceMap.this.remove(key, entry.getValue());
        }
    }

    @Override
    public Collection<byte[]> values() {
        return new Values();
    }

    private final class Values extends AbstractCollection<byte[]> {
        @Override
        public Iterator<byte[]> iterator() {
            return new Walk<>(MapEntry::getValue);
        }

        @Override
        public int size() {
            return KeyspaceMap.this.size();
        }

        @Override
        public boolean isEmpty() {
            return KeyspaceMap.this.isEmpty();
        }

        @Override
        public void clear() {
            KeyspaceMap.this.clear();
        }

        @Override
        public boolean contains(Object value) {
            return value instanceof byte[] bytes && stream().anyMatch(other -> Arrays.equals(other, bytes));
        }

        @Override
        public boolean remove(Object value) {
            for (Iterator<Map.Entry<byte[], byte[]>> entries = entrySet().iterator(); entries.hasNext(); ) {
                Map.Entry<byte[], byte[]> entry = entries.next();
                if (value instanceof byte[] bytes
                        && Arrays.equals(entry.getValue(), bytes)
                        && KeyspaceMap.this.remove(entry.getKey(), bytes)) {
                    return true;
                }
            }
            return false;
        }
    }

    @Override
    public NavigableSet<byte[]> keySet() {
        return new KeyspaceKeys(this);
    }

    @Override
    public NavigableSet<byte[]> navigableKeySet() {
        return keySet();
    }

    @Override
    public NavigableSet<byte[]> descendingKeySet() {
        return descendingMap().keySet();
    }

    Iterator<byte[]> keys() {
        return new Walk<>(MapEntry::getKey);
    }

    @Override
    public boolean equals(Object other) {
        if (other == this) {
            return true;
        }
        if (!(other instanceof Map<?, ?> map) || map.size() != size()) {
            return false;
        }
        try {
            for (Map.Entry<byte[], byte[]> entry : entrySet()) {
                if (!(map.get(entry.getKey()) instanceof byte[] value) || !Arrays.equals(value, entry.getValue())) {
                    return false;
                }
            }
        } catch (ClassCastException | NullPointerException otherKeys) {
            return false;
        }
        return true;
    }

    @Override
    public int hashCode() {
        int hash = 0;
        for (Map.Entry<byte[], byte[]> entry : entrySet()) {
            hash += entry.hashCode();
        }
        return hash;
    }

    /** Without the entries, of which there may be any number. */
    @Override
    public String toString() {
        return "map of " + keyspace;
    }
}
