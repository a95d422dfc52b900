package dev.esker.kafka;

import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Predicate;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * The entries of several segments, one segment after the other. Each is looked at when the iterator comes to
 * it, so it shows what was written until then. One that has expired by then is left out.
 */
final class SegmentsIterator implements KeyValueIterator<Bytes, byte[]> {
    private final SegmentedStore store;
    private final Iterator<Long> segments;
    private final byte[] lower;
    private final byte[] upper;
    private final Predicate<byte[]> wanted;
    private final boolean forward;

    private long segment;
    private KeyValueIterator<Bytes, byte[]> entries;
    private Bytes next;
    private volatile boolean closed;

    SegmentsIterator(
            SegmentedStore store,
            List<Long> segments,
            byte[] lower,
            byte[] upper,
            Predicate<byte[]> wanted,
            boolean forward) {
        this.store = store;
        this.segments = segments.iterator();
        this.lower = lower;
        this.upper = upper;
        this.wanted = wanted;
        this.forward = forward;
    }

    @Override
    public boolean hasNext() {
        if (closed) {
            throw new InvalidStateStoreException("The iterator of store " + store.name() + " has closed");
        }
        if (!store.isOpen()) {
            return false;
        }
        while (true) {
            if (entries != null && store.isLive(segment)) {
                while (entries.hasNext()) {
                    if (next == null) {
                        next = entries.peekNextKey();
                    }
                    if (wanted.test(next.get())) {
                        return true;
                    }
                    next = null;
                    skip();
                }
            }
            leave();
            if (!segments.hasNext()) {
                return false;
            }
            segment = segments.next();
            entries = store.entriesOf(segment, lower, upper, forward);
        }
    }

    private void skip() {
        if (entries instanceof EntryIterator found) {
            found.skip();
        } else {
            entries.next();
        }
    }

    private void leave() {
        next = null;
        if (entries != null) {
            entries.close();
            entries = null;
        }
    }

    @Override
    public Bytes peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return next;
    }

    @Override
    public KeyValue<Bytes, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        next = null;
        return entries.next();
    }

    @Override
    public void close() {
        closed = true;
        leave();
    }
}
