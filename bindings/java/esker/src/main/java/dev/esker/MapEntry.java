package dev.esker;

import java.util.Arrays;
import java.util.Map;
import java.util.Objects;

/** An entry as a map hands it out: as it was then. Entries are equal if their bytes are. */
final class MapEntry implements Map.Entry<byte[], byte[]> {
    /** Where a new value is written; null: nowhere. */
    private final Keyspace keyspace;

    private final byte[] key;
    private byte[] value;

    MapEntry(Keyspace keyspace, byte[] key, byte[] value) {
        this.keyspace = keyspace;
        this.key = key;
        this.value = value;
    }

    /** The same, without a way to write. */
    MapEntry fixed() {
        return new MapEntry(null, key, value);
    }

    @Override
    public byte[] getKey() {
        return key;
    }

    @Override
    public byte[] getValue() {
        return value;
    }

    @Override
    public byte[] setValue(byte[] value) {
        Objects.requireNonNull(value, "value");
        if (keyspace == null) {
            throw new UnsupportedOperationException("this entry is a copy: put the value into the map");
        }
        keyspace.put(key, value);
        byte[] old = this.value;
        this.value = value.clone();
        return old;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Map.Entry<?, ?> entry
                && entry.getKey() instanceof byte[] otherKey
                && entry.getValue() instanceof byte[] otherValue
                && Arrays.equals(key, otherKey)
                && Arrays.equals(value, otherValue);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(key) ^ Arrays.hashCode(value);
    }

    @Override
    public String toString() {
        return Arrays.toString(key) + "=" + Arrays.toString(value);
    }
}
