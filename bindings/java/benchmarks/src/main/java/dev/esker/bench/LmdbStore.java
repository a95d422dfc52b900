package dev.esker.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.lmdbjava.CursorIterable;
import org.lmdbjava.Dbi;
import org.lmdbjava.DbiFlags;
import org.lmdbjava.Env;
import org.lmdbjava.EnvFlags;
import org.lmdbjava.KeyRange;
import org.lmdbjava.Txn;

/** LMDB syncs each commit by default; as the others, it does not here. */
final class LmdbStore implements Store {
    private final Env<ByteBuffer> environment;
    private final Dbi<ByteBuffer> database;
    private final ThreadLocal<ByteBuffer> keys = ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(511));
    private final ThreadLocal<ByteBuffer> values = ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(1 << 20));

    LmdbStore(Path directory) {
        try {
            Files.createDirectories(directory);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
        environment =
                Env.create()
                        .setMapSize(64L << 30)
                        .setMaxDbs(1)
                        .setMaxReaders(512)
                        .open(directory.toFile(), EnvFlags.MDB_NOSYNC, EnvFlags.MDB_WRITEMAP);
        database = environment.openDbi("default", DbiFlags.MDB_CREATE);
    }

    private static ByteBuffer in(ThreadLocal<ByteBuffer> buffers, byte[] bytes) {
        return buffers.get().clear().put(bytes).flip();
    }

    @Override
    public void put(byte[] key, byte[] value) {
        database.put(in(keys, key), in(values, value));
    }

    @Override
    public void putAll(byte[][] all, byte[][] of) {
        try (Txn<ByteBuffer> transaction = environment.txnWrite()) {
            for (int i = 0; i < all.length; i++) {
                database.put(transaction, in(keys, all[i]), in(values, of[i]));
            }
            transaction.commit();
        }
    }

    @Override
    public byte[] get(byte[] key) {
        try (Txn<ByteBuffer> transaction = environment.txnRead()) {
            ByteBuffer found = database.get(transaction, in(keys, key));
            if (found == null) {
                return null;
            }
            byte[] value = new byte[found.remaining()];
            found.get(value);
            return value;
        }
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) {
        try (Txn<ByteBuffer> transaction = environment.txnRead()) {
            ByteBuffer found = database.get(transaction, key);
            if (found == null) {
                return -1;
            }
            int length = found.remaining();
            value.put(found);
            return length;
        }
    }

    @Override
    public long scan(byte[] from, int entries) {
        long sum = 0;
        try (Txn<ByteBuffer> transaction = environment.txnRead();
                CursorIterable<ByteBuffer> cursor =
                        database.iterate(transaction, KeyRange.atLeast(in(keys, from)))) {
            int left = entries;
            for (CursorIterable.KeyVal<ByteBuffer> entry : cursor) {
                byte[] key = new byte[entry.key().remaining()];
                entry.key().get(key);
                byte[] value = new byte[entry.val().remaining()];
                entry.val().get(value);
                sum += key.length + value.length;
                if (--left == 0) {
                    break;
                }
            }
        }
        return sum;
    }

    @Override
    public void close() {
        environment.close();
    }
}
