package dev.esker.kafka.bench;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.WriteBufferManager;

/**
 * What Kafka's guide to memory advises for the store of RocksDB: one block cache for all stores of the process, which also
 * holds indexes and filters, and a manager that charges the write buffers to it.
 */
public final class TunedRocksDb implements RocksDBConfigSetter {
    static {
        RocksDB.loadLibrary();
    }

    /** The bytes that all stores of the process share. */
    static final long MEMORY = Long.getLong("bench.memory", 256L << 20);

    private static final double INDEX_FILTER_SHARE = 0.1;
    private static final Cache CACHE = new LRUCache(MEMORY, -1, false, INDEX_FILTER_SHARE);
    private static final WriteBufferManager BUFFERS = new WriteBufferManager(MEMORY / 2, CACHE);

    @Override
    public void setConfig(String store, Options options, Map<String, Object> configs) {
        BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
        table.setBlockCache(CACHE);
        table.setCacheIndexAndFilterBlocks(true);
        table.setCacheIndexAndFilterBlocksWithHighPriority(true);
        table.setPinTopLevelIndexAndFilter(true);
        options.setWriteBufferManager(BUFFERS);
        options.setTableFormatConfig(table);
    }

    @Override
    public void close(String store, Options options) {
        // Cache and manager are those of the process.
    }
}
