package dev.esker.kafka;

import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.LongFunction;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;

/** The sessions of several segments in the order of their times, by an index. */
final class SessionsByTime implements KeyValueIterator<Windowed<Bytes>, byte[]> {
    private final SegmentedStore store;
    private final Iterator<Long> segments;
    private final LongFunction<KeyValueIterator<Bytes, byte[]>> indexOf;
    private final UnaryOperator<byte[]> toKey;

    private long segment;
    private KeyValueIterator<Bytes, byte[]> index;
    private KeyValue<Windowed<Bytes>, byte[]> next;
    private volatile boolean closed;

    /**
     * Makes an iterator.
     *
     * @param indexOf the entries of the index of a segment
     * @param toKey the key of an entry for a key of the index
     */
    SessionsByTime(
            SegmentedStore store,
            List<Long> segments,
            LongFunction<KeyValueIterator<Bytes, byte[]>> indexOf,
            UnaryOperator<byte[]> toKey) {
        this.store = store;
        this.segments = segments.iterator();
        this.indexOf = indexOf;
        this.toKey = toKey;
    }

    @Override
    public boolean hasNext() {
        if (closed) {
            throw new InvalidStateStoreException("The iterator of store " + store.name() + " has closed");
        }
        if (!store.isOpen()) {
            return false;
        }
        while (next == null) {
            if (index != null && store.isLive(segment) && index.hasNext()) {
                byte[] key = toKey.apply(index.next().key.get());
                // It may have been removed since the index was read.
                byte[] value = store.read(store.inSegment(segment, key));
                if (value != null) {
                    next = KeyValue.pair(SessionBytesStore.session(key), value);
                }
                continue;
            }
            leave();
            if (!segments.hasNext()) {
                return false;
            }
            segment = segments.next();
            index = indexOf.apply(segment);
        }
        return true;
    }

    private void leave() {
        if (index != null) {
            index.close();
            index = null;
        }
    }

    @Override
    public Windowed<Bytes> peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return next.key;
    }

    @Override
    public KeyValue<Windowed<Bytes>, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        KeyValue<Windowed<Bytes>, byte[]> found = next;
        next = null;
        return found;
    }

    @Override
    public void close() {
        closed = true;
        leave();
    }
}
