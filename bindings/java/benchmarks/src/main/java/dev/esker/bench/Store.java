package dev.esker.bench;

import java.nio.ByteBuffer;
import java.nio.file.Path;

/** A store under measurement, by the calls that its own documentation shows first. */
interface Store extends AutoCloseable {
    void put(byte[] key, byte[] value);

    /** Puts pairs together. */
    void putAll(byte[][] keys, byte[][] values);

    byte[] get(byte[] key);

    /** Gets with direct buffers; the length of the value. */
    int get(ByteBuffer key, ByteBuffer value);

    /** Walks from a key over so many entries, and sums the lengths of keys and values. */
    long scan(byte[] from, int entries);

    @Override
    void close();

    static Store open(String name, Path directory) {
        switch (name) {
            case "esker":
                return new EskerStore(directory);
            case "rocksdb":
                return new RocksStore(directory);
            case "lmdb":
                return new LmdbStore(directory);
            default:
                throw new IllegalArgumentException("there is no store " + name);
        }
    }
}
