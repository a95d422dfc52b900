package dev.esker.bench;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

final class RocksStore implements Store {
    static {
        RocksDB.loadLibrary();
    }

    private final Cache cache = new LRUCache(StoreBenchmark.MEMORY * 3 / 4);
    private final BloomFilter filter = new BloomFilter(10);
    private final Options options =
            new Options()
                    .setCreateIfMissing(true)
                    .setWriteBufferSize(StoreBenchmark.MEMORY / 8)
                    .setTableFormatConfig(
                            new BlockBasedTableConfig().setBlockCache(cache).setFilterPolicy(filter));
    private final WriteOptions writes = new WriteOptions();
    private final ReadOptions reads = new ReadOptions();
    private final RocksDB database;

    RocksStore(Path directory) {
        try {
            database = RocksDB.open(options, directory.toString());
        } catch (RocksDBException failure) {
            throw new IllegalStateException(failure);
        }
    }

    @Override
    public void put(byte[] key, byte[] value) {
        try {
            database.put(writes, key, value);
        } catch (RocksDBException failure) {
            throw new IllegalStateException(failure);
        }
    }

    @Override
    public void putAll(byte[][] keys, byte[][] values) {
        try (WriteBatch batch = new WriteBatch()) {
            for (int i = 0; i < keys.length; i++) {
                batch.put(keys[i], values[i]);
            }
            database.write(writes, batch);
        } catch (RocksDBException failure) {
            throw new IllegalStateException(failure);
        }
    }

    @Override
    public byte[] get(byte[] key) {
        try {
            return database.get(reads, key);
        } catch (RocksDBException failure) {
            throw new IllegalStateException(failure);
        }
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) {
        try {
            // It takes the key from the buffer.
            int length = database.get(reads, key, value);
            key.rewind();
            return length;
        } catch (RocksDBException failure) {
            throw new IllegalStateException(failure);
        }
    }

    @Override
    public long scan(byte[] from, int entries) {
        long sum = 0;
        try (RocksIterator iterator = database.newIterator(reads)) {
            iterator.seek(from);
            for (int i = 0; i < entries && iterator.isValid(); i++) {
                sum += iterator.key().length + iterator.value().length;
                iterator.next();
            }
        }
        return sum;
    }

    @Override
    public void close() {
        database.close();
        reads.close();
        writes.close();
        options.close();
        filter.close();
        cache.close();
    }
}
