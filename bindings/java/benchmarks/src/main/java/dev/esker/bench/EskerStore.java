package dev.esker.bench;

import dev.esker.Batch;
import dev.esker.Cursor;
import dev.esker.Database;
import dev.esker.Keyspace;
import dev.esker.Options;
import java.nio.ByteBuffer;
import java.nio.file.Path;

final class EskerStore implements Store {
    private final Database database;
    private final Keyspace keyspace;

    EskerStore(Path directory) {
        database = Database.open(directory, new Options().memory(StoreBenchmark.MEMORY));
        keyspace = database.keyspace("default");
    }

    @Override
    public void put(byte[] key, byte[] value) {
        keyspace.put(key, value);
    }

    @Override
    public void putAll(byte[][] keys, byte[][] values) {
        try (Batch batch = new Batch()) {
            for (int i = 0; i < keys.length; i++) {
                batch.put(keyspace, keys[i], values[i]);
            }
            database.write(batch);
        }
    }

    @Override
    public byte[] get(byte[] key) {
        return keyspace.get(key);
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) {
        return keyspace.get(key, value);
    }

    @Override
    public long scan(byte[] from, int entries) {
        long sum = 0;
        try (Cursor cursor = keyspace.cursor(from, null)) {
            for (int i = 0; i < entries && cursor.next(); i++) {
                sum += cursor.key().length + cursor.value().length;
            }
        }
        return sum;
    }

    @Override
    public void close() {
        keyspace.close();
        database.close();
    }
}
