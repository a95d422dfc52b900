package dev.esker.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.esker.Batch;
import dev.esker.Cursor;
import dev.esker.ErrorCode;
import dev.esker.EskerException;
import dev.esker.Keyspace;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.query.Position;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What an open store has of the database: its keyspace, and its fields in the directory of stores. The fields
 * are the kind of the store, whether it is open, its position, and the committed offset of each partition of
 * its changelog.
 */
final class StoreSlot {
    private static final Logger LOG = LoggerFactory.getLogger(StoreSlot.class);

    private static final String KIND = "kind";
    private static final String STATUS = "status";
    private static final String POSITION = "position";
    private static final String OFFSET = "offset ";

    private static final long CONVERTED_AT_A_TIME = 1 << 20;

    private static final byte[] IS_OPEN = {1};
    private static final byte[] IS_CLOSED = {0};

    private final StoreHome home;
    private final TaskId task;
    private final StoreDatabase database;
    private String name;
    private Keyspace keyspace;
    private volatile boolean claimed;
    private boolean closed;

    /** The position as it was last written. */
    private Position written;

    private StoreSlot(StoreHome home, TaskId task, StoreDatabase database, String name) {
        this.home = home;
        this.task = task;
        this.database = database;
        this.name = name;
        this.keyspace = database.database().keyspace(name);
    }

    /**
     * Opens the place of a store.
     *
     * @param kind what the keyspace holds; another kind cannot read it
     * @param late whether an empty store may be open elsewhere until one of them writes, as with Kafka's stores of
     *     segments
     * @param conversions for another kind that was found, how its entries become those of this one, or null
     * @throws TaskCorruptedException under exactly-once, if the store was not closed: it may hold what was
     *     never committed
     * @throws ProcessorStateException if the store is open elsewhere, is of another kind or is RocksDB's, and
     *     if the database cannot be opened
     */
    static StoreSlot open(
            StateStoreContext context,
            String store,
            String kind,
            boolean late,
            Function<String, Conversion> conversions) {
        StoreHome home = StoreHome.of(context, store);
        home.refuseRocksDb();
        StoreDatabase database = StoreDatabase.acquire(home.database(), StoreSettings.of(context.appConfigs()));
        try {
            String name = database.enter(home);
            StoreSlot slot = new StoreSlot(home, context.taskId(), database, name);
            try {
                slot.begin(kind, late, isExactlyOnce(context), conversions);
                return slot;
            } catch (RuntimeException | IOException e) {
                slot.keyspace.close();
                database.leave(home, slot.claimed);
                throw e;
            }
        } catch (EskerException e) {
            database.release();
            if (Failures.isDamage(e)) {
                StoreDatabase.forget(home);
            }
            throw Failures.of(e, "opening store " + store, store, context.taskId());
        } catch (IOException e) {
            database.release();
            throw new ProcessorStateException("Error opening store " + store + " at " + home.marker(), e);
        } catch (StreamsException e) {
            database.release();
            throw e;
        }
    }

    private void begin(
            String kind, boolean late, boolean exactlyOnce, Function<String, Conversion> conversions)
            throws IOException {
        boolean empty;
        try (Cursor cursor = keyspace.cursor()) {
            empty = !cursor.first();
        }
        if (!late || !empty) {
            claim();
        }
        checkStatus(exactlyOnce);
        checkKind(kind, empty, conversions);
    }

    /**
     * Takes the store for this slot alone: to be called before it writes.
     *
     * @throws ProcessorStateException if the store is open elsewhere
     */
    void claim() {
        if (!claimed) {
            database.claim(home);
            claimed = true;
        }
    }

    private static boolean isExactlyOnce(StateStoreContext context) {
        Object guarantee = context.appConfigs().get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG);
        return StreamsConfig.EXACTLY_ONCE_V2.equals(guarantee);
    }

    private void checkKind(String kind, boolean empty, Function<String, Conversion> conversions) throws IOException {
        byte[] found = field(KIND);
        if (found == null || empty) {
            put(KIND, kind.getBytes(UTF_8));
            return;
        }
        String was = new String(found, UTF_8);
        if (was.equals(kind)) {
            return;
        }
        Conversion conversion = conversions.apply(was);
        if (conversion == null) {
            throw new ProcessorStateException("Store " + home.store() + " of the task " + task + " was made as ["
                    + was + "], and cannot be opened as [" + kind + "]. Delete " + home.marker()
                    + " while the application is stopped: the store is then restored from its changelog. A store "
                    + "without a changelog loses its entries");
        }
        LOG.info("Store {} of the task {} was made as [{}]: its entries become those of [{}]",
                home.store(), task, was, kind);
        convert(kind, conversion);
    }

    /** Writes all entries to a new keyspace, which then takes the place of this one. */
    private void convert(String kind, Conversion conversion) throws IOException {
        String fresh = database.prepare(home);
        Keyspace to = database.database().keyspace(fresh);
        try (Cursor cursor = keyspace.cursor();
                Batch batch = new Batch()) {
            long bytes = 0;
            while (cursor.next()) {
                byte[] key = cursor.key();
                byte[] value = cursor.value();
                conversion.convert(batch, to, key, value);
                bytes += key.length + value.length;
                if (bytes >= CONVERTED_AT_A_TIME) {
                    database.write(batch);
                    batch.clear();
                    bytes = 0;
                }
            }
            copyFields(batch, fresh);
            batch.put(database.directory(), StoreDatabase.key(fresh, KIND), kind.getBytes(UTF_8));
            database.write(batch);
        } catch (RuntimeException e) {
            to.close();
            throw e;
        }
        home.write(fresh);
        keyspace.close();
        name = fresh;
        keyspace = to;
    }

    private void copyFields(Batch batch, String fresh) {
        try (Cursor fields = database.directory().cursorOfPrefix(StoreDatabase.key(name, ""))) {
            while (fields.next()) {
                String field = new String(fields.key(), UTF_8).substring(name.length() + 1);
                if (isOfChangelog(field) || field.equals(STATUS)) {
                    batch.put(database.directory(), StoreDatabase.key(fresh, field), fields.value());
                }
            }
        }
    }

    private static boolean isOfChangelog(String field) {
        return field.equals(POSITION) || field.startsWith(OFFSET);
    }

    private void checkStatus(boolean exactlyOnce) {
        if (exactlyOnce && Arrays.equals(field(STATUS), IS_OPEN)) {
            throw new TaskCorruptedException(Set.of(task), new ProcessorStateException("Store " + home.store()
                    + " was not closed: it may hold what its transaction has not committed, and is restored"));
        }
        put(STATUS, IS_OPEN);
    }

    private byte[] field(String field) {
        return database.directory().get(StoreDatabase.key(name, field));
    }

    private void put(String field, byte[] value) {
        database.directory().put(StoreDatabase.key(name, field), value);
    }

    Keyspace keyspace() {
        return keyspace;
    }

    TaskId task() {
        return task;
    }

    StoreDatabase database() {
        return database;
    }

    /** The exception for a failure of the engine. Damage makes the store be dropped when it is next opened. */
    StreamsException failure(EskerException failure, String what) {
        if (Failures.isDamage(failure)) {
            LOG.error("Store {} of the task {} is damaged, and is restored from its changelog", home.store(), task, failure);
            StoreDatabase.forget(home);
        }
        if (failure.code() == ErrorCode.POISONED) {
            database.retire();
        }
        return Failures.of(failure, what + " store " + home.store(), home.store(), task);
    }

    /** The position that was written last, or an empty one. */
    Position position() {
        byte[] bytes = field(POSITION);
        return bytes == null ? Position.emptyPosition() : Internals.toPosition(bytes);
    }

    /** The committed offset of a partition, or null. */
    Long offset(TopicPartition partition) {
        byte[] bytes = field(OFFSET + partition);
        return bytes == null ? null : ByteBuffer.wrap(bytes).getLong();
    }

    /**
     * Keeps offsets, as those behind all entries that were written before, with the position. No offsets at
     * all: forgets those that there are, and the position.
     */
    void commit(Map<TopicPartition, Long> offsets, Position position) {
        try (Batch batch = new Batch()) {
            if (offsets.isEmpty()) {
                if (!deleteOffsets(batch)) {
                    return;
                }
                written = null;
            } else {
                for (Map.Entry<TopicPartition, Long> offset : offsets.entrySet()) {
                    byte[] key = StoreDatabase.key(name, OFFSET + offset.getKey());
                    if (offset.getValue() == null) {
                        batch.delete(database.directory(), key);
                    } else {
                        byte[] value = ByteBuffer.allocate(Long.BYTES).putLong(offset.getValue()).array();
                        batch.put(database.directory(), key, value);
                    }
                }
                addPosition(batch, position);
            }
            database.write(batch);
        }
    }

    private boolean deleteOffsets(Batch batch) {
        boolean any = false;
        try (Cursor cursor = database.directory().cursorOfPrefix(StoreDatabase.key(name, ""))) {
            while (cursor.next()) {
                byte[] key = cursor.key();
                String field = new String(key, UTF_8).substring(name.length() + 1);
                if (isOfChangelog(field)) {
                    batch.delete(database.directory(), key);
                    any = true;
                }
            }
        }
        return any;
    }

    /** Keeps the position if it has changed. */
    void commit(Position position) {
        try (Batch batch = new Batch()) {
            if (addPosition(batch, position)) {
                database.write(batch);
            }
        }
    }

    private boolean addPosition(Batch batch, Position position) {
        if (position.equals(written)) {
            return false;
        }
        Position copy = position.copy();
        batch.put(database.directory(), StoreDatabase.key(name, POSITION), Internals.toBytes(copy));
        written = copy;
        return true;
    }

    /** Gives the place back. It may be called more than once, and throws nothing. */
    void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            put(STATUS, IS_CLOSED);
        } catch (EskerException e) {
            LOG.error("Error closing store {} of the task {}: under exactly-once, it is restored", home.store(), task, e);
        }
        keyspace.close();
        database.leave(home, claimed);
        database.release();
    }
}
