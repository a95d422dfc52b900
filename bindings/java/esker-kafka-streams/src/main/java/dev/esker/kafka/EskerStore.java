package dev.esker.kafka;

import dev.esker.Batch;
import dev.esker.Cursor;
import dev.esker.EskerException;
import dev.esker.Keyspace;
import dev.esker.Snapshot;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What all stores have in common: opening and closing, offsets and positions, restoring, and failures. */
abstract class EskerStore implements StateStore {
    private static final Logger LOG = LoggerFactory.getLogger(EskerStore.class);

    /** How many bytes of restored records are written at a time: a small part of any memory budget. */
    private static final long RESTORED_AT_A_TIME = 1 << 20;

    private final String name;
    private final String kind;
    private final Set<EntryIterator> iterators = ConcurrentHashMap.newKeySet();

    private volatile boolean open;
    private volatile StoreSlot slot;
    private StateStoreContext context;
    private volatile Position position = Position.emptyPosition();
    private boolean consistency;
    private StoreMetrics metrics;

    EskerStore(String name, String kind) {
        this.name = Objects.requireNonNull(name, "name");
        this.kind = kind;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final boolean persistent() {
        return true;
    }

    @Override
    public final boolean isOpen() {
        return open;
    }

    @Override
    public final void init(StateStoreContext stateStoreContext, StateStore root) {
        context = stateStoreContext;
        consistency = Internals.isConsistencyOn(stateStoreContext);
        open();
        stateStoreContext.register(root, Internals.restoring(this::restoreBatch), this::writePosition);
    }

    private synchronized void open() {
        StoreSlot opened = StoreSlot.open(context, name, kind, opensAgain(), this::conversion);
        slot = opened;
        open = true;
        try {
            position = opened.position();
            opened(context);
            metrics = StoreMetrics.register(context, this, opened);
        } catch (EskerException e) {
            StreamsException failure = opened.failure(e, "opening");
            close();
            throw failure;
        }
    }

    /** How entries of a store of another kind become those of this one, or null if they cannot. */
    Conversion conversion(String was) {
        return null;
    }

    /**
     * Whether the store follows Kafka's stores of segments, which open a segment only when they need it: an empty
     * store may be open twice, and restoring to a store that is closed opens it.
     */
    boolean opensAgain() {
        return false;
    }

    /** Reads what a store of a kind has to know before it is used. */
    void opened(StateStoreContext stateStoreContext) {}

    /** Writes what a store has kept back to write it together with what comes next, if this thread has to see it. */
    void settle() {}

    /** Writes what a store has kept back. */
    void settleAll() {}

    final StateStoreContext context() {
        return context;
    }

    final Keyspace keyspace() {
        StoreSlot used = slot;
        if (!open || used == null) {
            throw notOpen();
        }
        return used.keyspace();
    }

    private InvalidStateStoreException notOpen() {
        return new InvalidStateStoreException("Store " + name + " is currently closed");
    }

    final void write(Batch batch) {
        StoreSlot used = slot;
        if (!open || used == null) {
            throw notOpen();
        }
        claim();
        used.database().write(batch);
    }

    /** The exception for a failure of the engine, such as while {@code reading from} the store. */
    final StreamsException failure(EskerException failure, String what) {
        StoreSlot used = slot;
        if (used == null) {
            return Failures.of(failure, what + " store " + name, name, null);
        }
        return used.failure(failure, what);
    }

    /** The entries of a range of the keyspace, in one direction. */
    final KeyValueIterator<Bytes, byte[]> entries(byte[] start, byte[] end, boolean forward, int skipped) {
        settle();
        try {
            Cursor cursor = keyspace().cursor(start, end);
            EntryIterator made = new EntryIterator(this, cursor, forward, skipped, iterators);
            if (!open) {
                made.close();
                throw notOpen();
            }
            return made;
        } catch (EskerException e) {
            throw failure(e, "reading from");
        }
    }

    /** A snapshot of the database. */
    final Snapshot snapshot() {
        StoreSlot used = slot;
        if (!open || used == null) {
            throw notOpen();
        }
        return used.database().database().snapshot();
    }

    /** The value of a key of the keyspace, or null. */
    final byte[] read(byte[] key) {
        settle();
        try {
            return keyspace().get(key);
        } catch (EskerException e) {
            throw failure(e, "getting a value from");
        }
    }

    /** To be called before the store writes. */
    final void claim() {
        StoreSlot used = slot;
        if (!open || used == null) {
            throw notOpen();
        }
        used.claim();
    }

    /** Sets the value of a key of the keyspace, or deletes the key if it is null. */
    final void write(byte[] key, byte[] value) {
        try {
            claim();
            if (value == null) {
                keyspace().delete(key);
            } else {
                keyspace().put(key, value);
            }
        } catch (EskerException e) {
            throw failure(e, "writing to");
        }
    }

    /** Adds a record of the changelog to a batch. Returns whether the store holds such records. */
    abstract boolean restore(Batch batch, ConsumerRecord<byte[], byte[]> record);

    /** Told of the records of the changelog that come next. */
    void restoring(Collection<ConsumerRecord<byte[], byte[]>> records) {}

    /** Adds what {@link #restore} has kept back to the batch, before it is written. */
    void restored(Batch batch) {}

    /** Writes records of the changelog, as many at a time as fit into a small part of the memory budget. */
    final void restoreBatch(Collection<ConsumerRecord<byte[], byte[]>> records) {
        if (!open && opensAgain()) {
            open();
        }
        synchronized (position) {
            settleAll();
            restoring(records);
            try (Batch batch = new Batch()) {
                long bytes = 0;
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    if (!restore(batch, record)) {
                        continue;
                    }
                    Internals.moveTo(position, record, consistency);
                    bytes += record.key().length + (record.value() == null ? 0 : record.value().length);
                    if (bytes >= RESTORED_AT_A_TIME) {
                        restored(batch);
                        write(batch);
                        batch.clear();
                        bytes = 0;
                    }
                }
                restored(batch);
                write(batch);
            } catch (EskerException e) {
                throw failure(e, "restoring");
            }
        }
    }

    @Override
    public final void commit(Map<TopicPartition, Long> changelogOffsets) {
        StoreSlot used = slot;
        if (!open || used == null) {
            return;
        }
        try {
            synchronized (position) {
                settleAll();
                used.commit(changelogOffsets, position);
            }
        } catch (EskerException e) {
            throw failure(e, "committing");
        }
    }

    private void writePosition() {
        StoreSlot used = slot;
        if (!open || used == null) {
            throw notOpen();
        }
        try {
            synchronized (position) {
                settleAll();
                used.commit(position);
            }
        } catch (EskerException e) {
            throw failure(e, "committing");
        }
    }

    @Override
    public final Long committedOffset(TopicPartition partition) {
        StoreSlot used = slot;
        if (!open || used == null) {
            throw notOpen();
        }
        try {
            return used.offset(partition);
        } catch (EskerException e) {
            throw failure(e, "reading the offset of");
        }
    }

    @Override
    @Deprecated
    public final boolean managesOffsets() {
        return true;
    }

    @Override
    public Position getPosition() {
        return position;
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound positionBound, QueryConfig config) {
        return Internals.answer(query, positionBound, config, this, position, context);
    }

    /**
     * Closes what was opened. In any order with iterators, from any thread, and any number of times; later
     * calls throw {@link InvalidStateStoreException}.
     */
    @Override
    public final synchronized void close() {
        if (!open) {
            return;
        }
        try {
            settleAll();
        } catch (StreamsException e) {
            LOG.error("Error closing store {}: an entry that was removed last may come back", name, e);
        }
        open = false;
        List<EntryIterator> left = List.copyOf(iterators);
        if (!left.isEmpty()) {
            LOG.warn("Closing {} open iterators for store {}", left.size(), name);
            left.forEach(EntryIterator::close);
        }
        if (metrics != null) {
            metrics.close();
            metrics = null;
        }
        slot.close();
    }
}
