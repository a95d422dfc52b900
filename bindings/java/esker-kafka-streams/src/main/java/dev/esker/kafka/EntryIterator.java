package dev.esker.kafka;

import dev.esker.ClosedException;
import dev.esker.Cursor;
import dev.esker.EskerException;
import java.nio.ByteBuffer;
import java.util.NoSuchElementException;
import java.util.Set;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * The entries of a cursor, in one direction, as they were when it was made. One thread uses it, but another one may
 * close its store meanwhile: a call then ends as usual, and the next one says that it is closed.
 */
final class EntryIterator implements KeyValueIterator<Bytes, byte[]> {
    private final EskerStore store;
    private final Cursor cursor;
    private final boolean forward;

    /** How many bytes in front of the keys are the store's own. */
    private final int skipped;

    private final Set<EntryIterator> open;

    /** Whether the cursor is on the entry that comes next. */
    private boolean placed;

    private boolean ended;
    private volatile boolean closed;

    /**
     * Makes an iterator.
     *
     * @param open the iterators that are open, which it is one of until it is closed
     */
    EntryIterator(EskerStore store, Cursor cursor, boolean forward, int skipped, Set<EntryIterator> open) {
        this.store = store;
        this.cursor = cursor;
        this.forward = forward;
        this.skipped = skipped;
        this.open = open;
        open.add(this);
    }

    @Override
    public synchronized boolean hasNext() {
        if (closed) {
            throw closed();
        }
        if (!placed && !ended) {
            try {
                placed = forward ? cursor.next() : cursor.prev();
                ended = !placed;
            } catch (EskerException e) {
                throw failure(e);
            }
        }
        return placed;
    }

    /** The database may be closed for all its stores during a call. */
    private StreamsException failure(EskerException failure) {
        return failure instanceof ClosedException ? closed() : store.failure(failure, "reading from");
    }

    private InvalidStateStoreException closed() {
        return new InvalidStateStoreException("The iterator of store " + store.name() + " has closed");
    }

    @Override
    public synchronized Bytes peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        try {
            return Bytes.wrap(key());
        } catch (EskerException e) {
            throw failure(e);
        }
    }

    private byte[] key() {
        if (skipped == 0) {
            return cursor.key();
        }
        ByteBuffer whole = cursor.keyBuffer();
        byte[] key = new byte[whole.remaining() - skipped];
        whole.get(skipped, key);
        return key;
    }

    @Override
    public synchronized KeyValue<Bytes, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        try {
            KeyValue<Bytes, byte[]> entry = new KeyValue<>(Bytes.wrap(key()), cursor.value());
            placed = false;
            return entry;
        } catch (EskerException e) {
            throw failure(e);
        }
    }

    /** Goes on behind the entry that comes next, without a look at its value. */
    synchronized void skip() {
        placed = false;
    }

    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        open.remove(this);
        cursor.close();
    }
}
