package dev.esker;

import java.util.Map;
import java.util.Objects;

/**
 * The entries of a keyspace as a transaction sees them, from both ends. One thread may use it at a time.
 *
 * <p>What it has walked counts as read by the transaction. So, unlike {@link Cursor}, it fetches nothing
 * that was not asked for.
 *
 * <pre>{@code
 * try (TransactionCursor cursor = transaction.cursor(accounts, null, null)) {
 *     Map.Entry<byte[], byte[]> entry;
 *     while ((entry = cursor.next()) != null) {
 *         use(entry.getKey(), entry.getValue());
 *     }
 * }
 * }</pre>
 */
public final class TransactionCursor extends ExclusiveHandle {
    TransactionCursor(long pointer, Keyspace keyspace) {
        super(pointer, Native::transactionIterFree, "cursor of a transaction on " + keyspace);
    }

    /**
     * Places the front before the first entry at or behind a key; {@link #next} then takes that entry.
     *
     * @param key the key
     */
    public void seek(byte[] key) {
        Objects.requireNonNull(key, "key");
        run(pointer -> Native.transactionIterSeek(pointer, key));
    }

    /**
     * Takes the next entry from the front.
     *
     * @return the entry, or null if there is none left before the back
     */
    public Map.Entry<byte[], byte[]> next() {
        return take(false);
    }

    /**
     * Takes the next entry from the back.
     *
     * @return the entry, or null if there is none left behind the front
     */
    public Map.Entry<byte[], byte[]> nextBack() {
        return take(true);
    }

    private Map.Entry<byte[], byte[]> take(boolean back) {
        byte[][] taken = call(pointer -> Native.transactionIterTake(pointer, back));
        return taken == null ? null : Map.entry(taken[0], taken[1]);
    }

    /** Lets go of the position. */
    @Override
    public void close() {
        release();
    }
}
