package dev.esker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Function;

/**
 * An open database: a directory with any number of {@link Keyspace}s. It may be used from any thread.
 *
 * <pre>{@code
 * try (Database database = Database.open(Path.of("my-database"));
 *         Keyspace users = database.keyspace("users");
 *         Keyspace log = database.keyspace("log");
 *         Batch batch = new Batch()) {
 *     // Writes that happen together or not at all.
 *     batch.put(users, "ann".getBytes(UTF_8), "engineer".getBytes(UTF_8));
 *     batch.put(log, "1".getBytes(UTF_8), "ann came".getBytes(UTF_8));
 *     database.write(batch);
 * }
 * }</pre>
 *
 * <p>A branch and a named snapshot are databases too, in the same directory. See {@link #close} for what
 * closing one of them does.
 */
public final class Database extends SharedHandle {
    // What has names, and how a branch comes about: the numbers are those of database.c.
    private static final int KEYSPACES = 0;
    private static final int BRANCHES = 1;
    private static final int NAMED_SNAPSHOTS = 2;
    private static final int BRANCH = 0;
    private static final int OPEN_BRANCH = 1;
    private static final int OPEN_NAMED_SNAPSHOT = 2;

    /** How often {@link #transact} tries, as the C interface does. */
    private static final int ATTEMPTS = 1000;

    private final Path path;
    /** By name, shared with the branches. */
    private final Map<String, OpenComparator> comparators;

    /** Null for the database itself. */
    private final String branch;

    private Database(long pointer, Path path, Map<String, OpenComparator> comparators, String branch) {
        super(
                pointer,
                Native::databaseFree,
                branch == null ? "database " + path : "branch or named snapshot " + branch + " of " + path);
        this.path = path;
        this.comparators = comparators;
        this.branch = branch;
    }

    /**
     * Opens the database in a directory, or makes one, with the default options.
     *
     * @param path the directory
     * @return the database
     * @throws EskerException {@link ErrorCode#LOCKED} if it is open elsewhere,
     *     {@link ErrorCode#NOT_A_DATABASE} if the directory holds something else, and others
     */
    public static Database open(Path path) {
        return open(path, new Options());
    }

    /**
     * Opens the database in a directory, or makes one.
     *
     * @param path the directory
     * @param options the options
     * @return the database
     * @throws EskerException as {@link #open(Path)}; {@link ErrorCode#MISSING} and
     *     {@link ErrorCode#EXISTS} as the options ask. A failed open changes nothing
     */
    public static Database open(Path path, Options options) {
        byte[] place = Paths.bytes(path);
        long made = options.toNative();
        try {
            Map<String, OpenComparator> comparators = new ConcurrentHashMap<>(options.comparators());
            return new Database(Native.databaseOpen(place, made), path, comparators, null);
        } finally {
            Native.optionsFree(made);
        }
    }

    /**
     * The version of the engine.
     *
     * @return the version, such as {@code 0.1.0}
     */
    public static String version() {
        NativeLibrary.load();
        return new String(Native.version(), UTF_8);
    }

    /**
     * The directory, as it was given to {@link #open(Path)}.
     *
     * @return the path
     */
    public Path path() {
        return path;
    }

    /**
     * The database's unique identifier, which was drawn at random when it was made. A copy of the directory
     * has the same one.
     *
     * @return 16 bytes
     */
    public byte[] id() {
        return call(Native::databaseId);
    }

    /**
     * The name of the branch or named snapshot that this is.
     *
     * @return the name, or null for the database itself
     */
    public String branchName() {
        return branch;
    }

    /**
     * When the branch or named snapshot that this is was made, by the system's clock.
     *
     * @return the time; the beginning of 1970 for the database itself
     */
    public Instant madeAt() {
        return Instant.ofEpochMilli(callLong(Native::databaseMadeAt));
    }

    /**
     * Opens the keyspace with a name, and makes it on first use. Each call returns another handle, which is
     * closed separately.
     *
     * @param name the name, of 1 to 255 bytes of UTF-8. Each database has the keyspace {@code default}
     * @return the keyspace
     */
    public Keyspace keyspace(String name) {
        return keyspace(name, new KeyspaceOptions());
    }

    /**
     * Opens the keyspace with a name, and makes it on first use with the options. They may change the time
     * to live and the compaction filter of an existing keyspace.
     *
     * @param name the name, of 1 to 255 bytes of UTF-8
     * @param options the options
     * @return the keyspace
     */
    public Keyspace keyspace(String name, KeyspaceOptions options) {
        byte[] text = name.getBytes(UTF_8);
        int entered = enter();
        try {
            OpenComparator comparator = known(options.comparator());
            long made = options.toNative(comparator);
            try {
                long keyspace = Native.databaseKeyspace(pointer(), text, made);
                return new Keyspace(keyspace, this, name, comparatorOf(keyspace));
            } finally {
                Native.keyspaceOptionsFree(made);
            }
        } finally {
            exit(entered);
        }
    }

    /**
     * The comparator that is used for the name of this one: the first that was given for it. So whoever uses a
     * keyspace sees that its comparator failed.
     */
    private OpenComparator known(OpenComparator given) {
        if (given == null) {
            return null;
        }
        OpenComparator known = comparators.putIfAbsent(given.name(), given);
        return known == null ? given : known;
    }

    private OpenComparator comparatorOf(long keyspace) {
        byte[] name = Native.keyspaceComparator(keyspace);
        return name == null ? null : comparators.get(new String(name, UTF_8));
    }

    private List<String> names(int of) {
        byte[][] texts = call(pointer -> Native.databaseNames(pointer, of));
        List<String> names = new ArrayList<>(texts.length);
        for (byte[] text : texts) {
            names.add(new String(text, UTF_8));
        }
        return names;
    }

    private boolean drop(String name, int of) {
        byte[] text = name.getBytes(UTF_8);
        return call(pointer -> Native.databaseDrop(pointer, text, of));
    }

    /**
     * The names of all keyspaces, in order.
     *
     * @return the names
     */
    public List<String> keyspaces() {
        return names(KEYSPACES);
    }

    /**
     * Drops a keyspace and all its entries. The time does not depend on its size. The keyspace
     * {@code default} cannot be dropped.
     *
     * @param name the name
     * @return whether it existed
     */
    public boolean dropKeyspace(String name) {
        return drop(name, KEYSPACES);
    }

    /**
     * Commits a batch with the durability of the database: all of it or nothing.
     *
     * @param batch the batch, which does not change
     * @return the position in the log after the batch, for {@link #waitDurable}; 0 if it is empty
     */
    public long write(Batch batch) {
        return write(batch, Durability.DEFAULT);
    }

    /**
     * Commits a batch: all of it or nothing.
     *
     * @param batch the batch, which does not change
     * @param durability what it survives when the call returns
     * @return the position in the log after the batch, for {@link #waitDurable}; 0 if it is empty
     */
    public long write(Batch batch, Durability durability) {
        return write(batch, durability.number, true);
    }

    /**
     * Commits a batch, but never waits because writers are slowed, for memory, or for space on a full
     * device. With {@link Durability#DISK} it waits for the sync.
     *
     * @param batch the batch, which does not change
     * @param durability what it survives when the call returns
     * @return the position in the log after the batch, for {@link #waitDurable}; 0 if it is empty
     * @throws WouldBlockException if it would have to wait; nothing is written
     */
    public long tryWrite(Batch batch, Durability durability) {
        return write(batch, durability.number, false);
    }

    private long write(Batch batch, int durability, boolean waits) {
        int entered = enter();
        try {
            return batch.callLong(other -> Native.databaseWrite(pointer(), other, durability, waits));
        } finally {
            exit(entered);
        }
    }

    /**
     * Takes a snapshot of the present state of all keyspaces.
     *
     * @return the snapshot
     */
    public Snapshot snapshot() {
        return new Snapshot(callLong(pointer -> Native.snapshotNew(pointer, null)), this);
    }

    /**
     * Takes a snapshot with a label, by which the statistics show who holds old data, and for how long.
     *
     * @param label the label, which need not be unique
     * @return the snapshot
     */
    public Snapshot snapshot(String label) {
        byte[] text = label.getBytes(UTF_8);
        return new Snapshot(callLong(pointer -> Native.snapshotNew(pointer, text)), this);
    }

    /**
     * Begins an optimistic transaction, which reads the database as it is now.
     *
     * @return the transaction
     */
    public Transaction begin() {
        return begin(TransactionOptions.OPTIMISTIC);
    }

    /**
     * Begins a transaction, which reads the database as it is now.
     *
     * @param options whether it locks, and what its commit survives
     * @return the transaction
     */
    public Transaction begin(TransactionOptions options) {
        long made =
                callLong(
                        pointer ->
                                Native.transactionBegin(
                                        pointer, options.durability().number, options.lockTimeoutMillis()));
        return new Transaction(made, this);
    }

    /**
     * Runs a function in an optimistic transaction, commits it, and does so again whenever something that it
     * read was written meanwhile.
     *
     * <pre>{@code
     * long left = database.transact(transaction -> {
     *     long stock = number(transaction.get(goods, key));
     *     transaction.put(goods, key, bytes(stock - 1));
     *     return stock - 1;
     * });
     * }</pre>
     *
     * @param <T> what the function returns
     * @param body the function. It may be called more than once, and must not commit, roll back or close the
     *     transaction. If it throws an exception, nothing is written
     * @return what the function returned
     * @throws ConflictException if 1,000 attempts have met a conflict
     */
    public <T> T transact(Function<? super Transaction, ? extends T> body) {
        return transact(TransactionOptions.OPTIMISTIC, body);
    }

    /**
     * Runs a function in a transaction as {@link #transact(Function)} does.
     *
     * @param <T> what the function returns
     * @param options whether it locks, and what its commit survives
     * @param body the function, as there
     * @return what the function returned
     * @throws ConflictException if 1,000 attempts have met a conflict, or a lock did not come in time
     */
    public <T> T transact(TransactionOptions options, Function<? super Transaction, ? extends T> body) {
        Objects.requireNonNull(body, "body");
        for (int attempt = 1; ; attempt++) {
            try (Transaction transaction = begin(options)) {
                T result = body.apply(transaction);
                transaction.commit();
                return result;
            } catch (ConflictException conflict) {
                if (attempt == ATTEMPTS || conflict.code() == ErrorCode.LOCK_TIMEOUT) {
                    throw conflict;
                }
            }
            // The transaction that won may go on to use the same keys.
            Thread.yield();
        }
    }

    /**
     * Begins an ingestion: the fastest way to load sorted entries.
     *
     * @return the ingestion
     */
    public Ingestion ingestion() {
        return new Ingestion(callLong(Native::ingestionBegin), this);
    }

    private Database branch(String name, int how) {
        byte[] text = name.getBytes(UTF_8);
        long made = callLong(pointer -> Native.databaseBranch(pointer, text, how));
        return new Database(made, path, comparators, name);
    }

    /**
     * Makes a branch of this database (or branch) as it is now: a database in the same directory that begins
     * with the same entries and then changes independently. No data is copied.
     *
     * @param name its name, of 1 to 255 bytes of UTF-8
     * @return the branch
     * @throws EskerException {@link ErrorCode#BRANCH_EXISTS} if there is a branch or named snapshot of this
     *     name
     */
    public Database branch(String name) {
        return branch(name, BRANCH);
    }

    /**
     * Opens a branch that was made before.
     *
     * @param name its name
     * @return the branch
     * @throws EskerException {@link ErrorCode#BRANCH_MISSING} if there is none of this name
     */
    public Database openBranch(String name) {
        return branch(name, OPEN_BRANCH);
    }

    /**
     * The names of all branches of the directory, in order.
     *
     * @return the names
     */
    public List<String> branches() {
        return names(BRANCHES);
    }

    /**
     * Drops a branch and all its entries. Branches made from it, and the one it was made from, keep what they
     * share with it.
     *
     * @param name its name
     * @return whether it existed
     */
    public boolean dropBranch(String name) {
        return drop(name, BRANCHES);
    }

    /**
     * Keeps the present state of this database (or branch) as a named snapshot, which survives closing and
     * reopening. It is durable when the call returns.
     *
     * @param name its name, of 1 to 255 bytes of UTF-8
     */
    public void nameSnapshot(String name) {
        byte[] text = name.getBytes(UTF_8);
        run(pointer -> Native.databaseNameSnapshot(pointer, text));
    }

    /**
     * Opens a named snapshot as a read-only database. Branches can be made of it.
     *
     * @param name its name
     * @return the named snapshot
     */
    public Database openNamedSnapshot(String name) {
        return branch(name, OPEN_NAMED_SNAPSHOT);
    }

    /**
     * The names of all named snapshots of the directory, in order.
     *
     * @return the names
     */
    public List<String> namedSnapshots() {
        return names(NAMED_SNAPSHOTS);
    }

    /**
     * Drops a named snapshot.
     *
     * @param name its name
     * @return whether it existed
     */
    public boolean dropNamedSnapshot(String name) {
        return drop(name, NAMED_SNAPSHOTS);
    }

    /**
     * Makes an independent database in another directory, with the state of all keyspaces at one moment,
     * while reads and writes go on. It is durable when the call returns. Data files are shared by hard links,
     * or copied where that is impossible.
     *
     * @param directory the directory, which must not exist
     */
    public void checkpoint(Path directory) {
        byte[] place = Paths.bytes(directory);
        run(pointer -> Native.databaseCheckpoint(pointer, place));
    }

    /** Makes everything written so far survive power loss, also what was written with {@link Durability#BUFFERED}. */
    public void sync() {
        run(Native::databaseSync);
    }

    /**
     * Waits until everything logged before a position survives power loss.
     *
     * @param position what a write returned
     */
    public void waitDurable(long position) {
        run(pointer -> Native.databaseWaitDurable(pointer, position));
    }

    /** Writes what is in memory to files. */
    public void flush() {
        run(pointer -> Native.databaseFlush(pointer, null));
    }

    /**
     * Writes what is in memory to files, until it is to end.
     *
     * @param ends asked about twenty times a second, on this thread; true ends the call. What was begun goes
     *     on in the background
     * @throws EskerException {@link ErrorCode#INTERRUPTED} if it was ended
     */
    public void flush(BooleanSupplier ends) {
        Objects.requireNonNull(ends, "ends");
        run(pointer -> Native.databaseFlush(pointer, ends));
    }

    /** Flushes, and compacts what a compaction can make smaller, in all keyspaces. */
    public void compact() {
        run(pointer -> Native.databaseCompact(pointer, null));
    }

    /**
     * As {@link #compact()}, until it is to end.
     *
     * @param ends asked about twenty times a second, on this thread; true ends the call. What is compacted
     *     stays so
     * @throws EskerException {@link ErrorCode#INTERRUPTED} if it was ended
     */
    public void compact(BooleanSupplier ends) {
        Objects.requireNonNull(ends, "ends");
        run(pointer -> Native.databaseCompact(pointer, ends));
    }

    /** Waits until no background work is left. */
    public void waitUntilIdle() {
        run(Native::databaseWaitUntilIdle);
    }

    /**
     * The database's statistics: counters since open, sampled latencies and stalls in microseconds, sizes in
     * bytes, and the shape of each keyspace's tree. Names do not change; later versions may add some.
     *
     * @return an object of JSON
     */
    public String stats() {
        return new String(call(Native::databaseStats), UTF_8);
    }

    /**
     * The database's statistics as text in the format OpenMetrics 1.0, for Prometheus and other collectors.
     *
     * @return the text
     */
    public String openMetrics() {
        return new String(call(Native::databaseOpenMetrics), UTF_8);
    }

    /**
     * What {@link Database#verify} found.
     *
     * @param problems the number of problems
     * @param ended whether the call was ended before it had read everything
     * @param json the report, an object of JSON
     */
    public record Verified(long problems, boolean ended, String json) {}

    /**
     * Reads everything that is stored and reports damage. Damage is no failure of this call.
     *
     * @return what it found
     */
    public Verified verify() {
        return verified(null);
    }

    /**
     * As {@link #verify()}, until it is to end. The end is no failure of this call either.
     *
     * @param ends asked before each part of a file that is read, on this thread; true ends the call
     * @return what it found until then
     */
    public Verified verify(BooleanSupplier ends) {
        return verified(Objects.requireNonNull(ends, "ends"));
    }

    private Verified verified(BooleanSupplier ends) {
        long[] found = new long[2];
        byte[] json = call(pointer -> Native.databaseVerify(pointer, ends, found));
        return new Verified(found[0], found[1] != 0, new String(json, UTF_8));
    }

    /**
     * What {@link Database#planRepair} found, or {@link Database#repair} did.
     *
     * @param whole whether nothing is damaged or lost; only of a plan
     * @param json the report, an object of JSON
     */
    public record Repaired(boolean whole, String json) {}

    /**
     * Reports what is intact in the database in a directory, what is lost, and what {@link #repair} would
     * save. It changes nothing.
     *
     * @param directory the directory of a database that is not open
     * @param options options with the comparators of its keyspaces
     * @return the report
     */
    public static Repaired planRepair(Path directory, Options options) {
        return repaired(Paths.bytes(directory), null, options);
    }

    /**
     * Saves everything readable of the database in a directory into a new one. The damaged database is not
     * changed.
     *
     * @param directory the directory of a database that is not open
     * @param to the new directory, which must not exist or must be empty
     * @param options options with the comparators of its keyspaces
     * @return the report
     */
    public static Repaired repair(Path directory, Path to, Options options) {
        return repaired(Paths.bytes(directory), Paths.bytes(to), options);
    }

    private static Repaired repaired(byte[] directory, byte[] to, Options options) {
        long made = options.toNative();
        boolean[] whole = new boolean[1];
        try {
            byte[] json = Native.repair(directory, to, made, whole);
            return new Repaired(whole[0], new String(json, UTF_8));
        } finally {
            Native.optionsFree(made);
        }
    }

    /**
     * Closes the database, for all its keyspaces, snapshots, cursors, branches and whatever else was opened of
     * it: it ends background work and writes what is in memory. Calls on them throw {@link ClosedException}
     * from then on; calls that are under way end.
     *
     * <p>On a branch or named snapshot, this closes the handle alone: the database, and what was opened of the
     * branch, stay open.
     *
     * @throws EskerException what went wrong with work in the background or with the last writes. The database
     *     is closed nevertheless
     */
    @Override
    public void close() {
        if (branch != null) {
            release();
            return;
        }
        if (wasClosed()) {
            return;
        }
        Callbacks.checkNotListening("close the database");
        int entered;
        try {
            entered = enter();
        } catch (ClosedException alreadyClosed) {
            return;
        }
        try {
            Native.databaseClose(pointer());
        } finally {
            exit(entered);
            release();
        }
    }

    @Override
    public String toString() {
        return "Database[" + path + (branch == null ? "" : ", " + branch) + "]";
    }
}
