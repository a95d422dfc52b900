package dev.esker.kafka;

import dev.esker.ClosedException;
import dev.esker.EskerException;
import dev.esker.Keyspace;
import dev.esker.Snapshot;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;

/** Versions of a key, as they were when the iterator was made. One row of them is in memory at a time. */
final class VersionsIterator implements VersionedRecordIterator<byte[]> {
    private final VersionedStore store;
    private final Snapshot snapshot;
    private final Keyspace keyspace;
    private final Iterator<byte[]> places;
    private final long from;
    private final long to;
    private final boolean ascending;

    private Iterator<VersionedRecord<byte[]>> found = Collections.emptyIterator();
    private volatile boolean closed;

    VersionsIterator(
            VersionedStore store,
            Snapshot snapshot,
            Keyspace keyspace,
            List<byte[]> places,
            long from,
            long to,
            boolean ascending) {
        this.store = store;
        this.snapshot = snapshot;
        this.keyspace = keyspace;
        this.places = places.iterator();
        this.from = from;
        this.to = to;
        this.ascending = ascending;
    }

    @Override
    public boolean hasNext() {
        if (closed) {
            throw closed();
        }
        while (!found.hasNext()) {
            if (!places.hasNext()) {
                return false;
            }
            byte[] place = places.next();
            try {
                byte[] bytes = snapshot.get(keyspace, place);
                if (bytes != null) {
                    found = VersionedStore.isLatest(place) ? latest(bytes) : row(bytes);
                }
            } catch (ClosedException e) {
                throw closed();
            } catch (EskerException e) {
                throw store.failure(e, "reading from");
            }
        }
        return true;
    }

    private InvalidStateStoreException closed() {
        return new InvalidStateStoreException("The iterator of store " + store.name() + " has closed");
    }

    private Iterator<VersionedRecord<byte[]>> latest(byte[] bytes) {
        long time = ByteBuffer.wrap(bytes).getLong();
        if (time > to) {
            return Collections.emptyIterator();
        }
        return List.of(new VersionedRecord<>(Arrays.copyOfRange(bytes, Long.BYTES, bytes.length), time)).iterator();
    }

    private Iterator<VersionedRecord<byte[]>> row(byte[] bytes) {
        VersionRow row = VersionRow.of(bytes);
        List<VersionedRecord<byte[]>> records = new ArrayList<>();
        for (int index = 0; index < row.size(); index++) {
            VersionRow.Version version = row.version(index);
            if (version.value() != null && version.from() <= to && row.endOf(index) > from) {
                records.add(new VersionedRecord<>(version.value(), version.from(), row.endOf(index)));
            }
        }
        if (ascending) {
            Collections.reverse(records);
        }
        return records.iterator();
    }

    @Override
    public VersionedRecord<byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return found.next();
    }

    @Override
    public void close() {
        closed = true;
        snapshot.close();
    }
}
