package dev.esker;

import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeSet;

/** The keys of a {@link KeyspaceMap}, compared by their bytes. */
final class KeyspaceKeys extends AbstractSet<byte[]> implements NavigableSet<byte[]> {
    private final KeyspaceMap map;

    KeyspaceKeys(KeyspaceMap map) {
        this.map = map;
    }

    @Override
    public int size() {
        return map.size();
    }

    @Override
    public boolean isEmpty() {
        return map.isEmpty();
    }

    @Override
    public boolean contains(Object key) {
        return map.containsKey(key);
    }

    @Override
    public boolean remove(Object key) {
        return map.remove(key) != null;
    }

    @Override
    public void clear() {
        map.clear();
    }

    @Override
    public boolean removeAll(Collection<?> keys) {
        boolean changed = false;
        for (Object key : keys) {
            changed |= remove(key);
        }
        return changed;
    }

    @Override
    public boolean retainAll(Collection<?> keys) {
        Set<byte[]> kept = new TreeSet<>(map.comparator());
        for (Object key : keys) {
            kept.add((byte[]) key);
        }
        return removeIf(key -> !kept.contains(key));
    }

    @Override
    public Iterator<byte[]> iterator() {
        return map.keys();
    }

    @Override
    public Iterator<byte[]> descendingIterator() {
        return map.descendingMap().keys();
    }

    @Override
    public Comparator<? super byte[]> comparator() {
        return map.comparator();
    }

    @Override
    public byte[] first() {
        return map.firstKey();
    }

    @Override
    public byte[] last() {
        return map.lastKey();
    }

    @Override
    public byte[] lower(byte[] key) {
        return map.lowerKey(key);
    }

    @Override
    public byte[] floor(byte[] key) {
        return map.floorKey(key);
    }

    @Override
    public byte[] ceiling(byte[] key) {
        return map.ceilingKey(key);
    }

    @Override
    public byte[] higher(byte[] key) {
        return map.higherKey(key);
    }

    private static byte[] keyOf(Map.Entry<byte[], byte[]> entry) {
        return entry == null ? null : entry.getKey();
    }

    @Override
    public byte[] pollFirst() {
        return keyOf(map.pollFirstEntry());
    }

    @Override
    public byte[] pollLast() {
        return keyOf(map.pollLastEntry());
    }

    @Override
    public NavigableSet<byte[]> descendingSet() {
        return map.descendingKeySet();
    }

    @Override
    public NavigableSet<byte[]> subSet(byte[] from, boolean fromInclusive, byte[] to, boolean toInclusive) {
        return map.subMap(from, fromInclusive, to, toInclusive).keySet();
    }

    @Override
    public NavigableSet<byte[]> headSet(byte[] to, boolean inclusive) {
        return map.headMap(to, inclusive).keySet();
    }

    @Override
    public NavigableSet<byte[]> tailSet(byte[] from, boolean inclusive) {
        return map.tailMap(from, inclusive).keySet();
    }

    @Override
    public NavigableSet<byte[]> subSet(byte[] from, byte[] to) {
        return subSet(from, true, to, false);
    }

    @Override
    public NavigableSet<byte[]> headSet(byte[] to) {
        return headSet(to, false);
    }

    @Override
    public NavigableSet<byte[]> tailSet(byte[] from) {
        return tailSet(from, true);
    }

    /** Equal to a set with the same arrays by content. */
    @Override
    public boolean equals(Object other) {
        if (other == this) {
            return true;
        }
        if (!(other instanceof Set<?> set) || set.size() != size()) {
            return false;
        }
        for (Object key : set) {
            if (!(key instanceof byte[]) || !contains(key)) {
                return false;
            }
        }
        return true;
    }

    @Override
    public int hashCode() {
        int hash = 0;
        for (byte[] key : this) {
            hash += Arrays.hashCode(key);
        }
        return hash;
    }

    /** Without the keys, of which there may be any number. */
    @Override
    public String toString() {
        return "keys of " + map;
    }
}
