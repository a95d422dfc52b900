package dev.esker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * The options of a database. They are copied when a database is opened with them.
 *
 * <pre>{@code
 * Options options = new Options().memory(256L << 20).durability(Durability.DISK);
 * Database database = Database.open(path, options);
 * }</pre>
 *
 * <p><b>Functions of the program</b> (merge operators, compaction filters, comparators, a clock, a listener
 * of events) are called by threads of the engine, which the virtual machine knows as daemon threads with
 * the name {@code esker}. What they throw is reported, as an error, to the {@link System.Logger} with the
 * name {@code dev.esker}.
 */
public final class Options {
    /** The numbers of the C interface. */
    private enum Option {
        MEMORY(1),
        DURABILITY(2),
        CREATE_IF_MISSING(3),
        ERROR_IF_EXISTS(4),
        READ_ONLY(5),
        WORKERS(6),
        COMPRESSION(7),
        LOG(8),
        RECOVERY(9),
        SYNC_INTERVAL_MS(10),
        MEMTABLE_BYTES(11),
        PARTITION_BYTES(12),
        SEGMENT_BYTES(13),
        BLOCK_BYTES(14),
        LOG_SEGMENT_BYTES(15),
        COLD_AFTER_MS(16),
        MAX_SPACE_PERCENT(17),
        SEPARATE_VALUES_FROM(18);

        final int number;

        Option(int number) {
            this.number = number;
        }
    }

    /** How blocks are compressed. */
    public enum Compression {
        /** New data raw, settled data LZ4. The default. */
        AUTO,
        /** Never. */
        NONE,
        /** LZ4 everywhere. */
        LZ4,
        /** New data raw, settled data Zstandard. */
        ZSTD
    }

    /** How the log is written. */
    public enum LogMode {
        /** Mapped if the file system supports it, else plain. The default. */
        AUTO,
        /** One system call for each record. */
        PLAIN,
        /** Copies into shared mappings. */
        MAPPED
    }

    /** How open handles a damaged log. */
    public enum Recovery {
        /** Fails, and names the choices. The default. */
        REFUSE,
        /** Keeps the records before the damage and discards the rest of the log. */
        KEEP_PREFIX
    }

    private final Map<Option, Long> numbers = new EnumMap<>(Option.class);
    private final Map<String, MergeOperator> mergeOperators = new LinkedHashMap<>();
    private final Map<String, CompactionFilter> compactionFilters = new LinkedHashMap<>();
    private final Map<String, OpenComparator> comparators = new LinkedHashMap<>();
    private LongSupplier clock;
    private Consumer<? super String> listener;

    /** Makes options, all at their defaults. */
    public Options() {}

    private Options set(Option option, long value) {
        if (value < 0) {
            throw EskerException.make(
                    ErrorCode.INVALID_ARGUMENT,
                    "the option " + option + " cannot be " + value + ": give no negative number");
        }
        numbers.put(option, value);
        return this;
    }

    private Options set(Option option, boolean value) {
        return set(option, value ? 1 : 0);
    }

    /**
     * Sets the memory budget.
     *
     * @param bytes the budget, at least 1 MiB; 0, the default: a quarter of the machine's memory or of the
     *     control group's limit. It is outside of the Java heap
     * @return these options
     */
    public Options memory(long bytes) {
        return set(Option.MEMORY, bytes);
    }

    /**
     * Sets what a write survives that gives no durability.
     *
     * @param durability the class; {@link Durability#PROCESS} is the default
     * @return these options
     */
    public Options durability(Durability durability) {
        return set(Option.DURABILITY, durability == Durability.DEFAULT ? Durability.PROCESS.number : durability.number);
    }

    /**
     * Sets whether open makes a missing database.
     *
     * @param makes yes by default
     * @return these options
     */
    public Options createIfMissing(boolean makes) {
        return set(Option.CREATE_IF_MISSING, makes);
    }

    /**
     * Sets whether open fails if the database exists.
     *
     * @param fails no by default
     * @return these options
     */
    public Options errorIfExists(boolean fails) {
        return set(Option.ERROR_IF_EXISTS, fails);
    }

    /**
     * Sets whether the database is opened without changing a byte: no writes, no background work.
     *
     * @param only no by default
     * @return these options
     */
    public Options readOnly(boolean only) {
        return set(Option.READ_ONLY, only);
    }

    /**
     * Sets how many compactions may run at the same time.
     *
     * @param number the number; 0, the default: the number of cores, at least 2
     * @return these options
     */
    public Options workers(int number) {
        return set(Option.WORKERS, number);
    }

    /**
     * Sets how blocks are compressed.
     *
     * @param compression how
     * @return these options
     */
    public Options compression(Compression compression) {
        return set(Option.COMPRESSION, compression.ordinal());
    }

    /**
     * Sets how the log is written.
     *
     * @param mode how
     * @return these options
     */
    public Options log(LogMode mode) {
        return set(Option.LOG, mode.ordinal());
    }

    /**
     * Sets how open handles a damaged log.
     *
     * @param recovery how
     * @return these options
     */
    public Options recovery(Recovery recovery) {
        return set(Option.RECOVERY, recovery.ordinal());
    }

    /**
     * Sets the longest time that a write of {@link Durability#PROCESS} stays unsynced.
     *
     * @param interval the time, five seconds by default; zero: only {@link Database#sync} and the system decide
     * @return these options
     */
    public Options syncInterval(Duration interval) {
        return set(Option.SYNC_INTERVAL_MS, Times.milliseconds(interval));
    }

    /**
     * Sets the bytes of one memtable. Small sizes are for tests.
     *
     * @param bytes the size; 0, the default: from the memory budget
     * @return these options
     */
    public Options memtableBytes(long bytes) {
        return set(Option.MEMTABLE_BYTES, bytes);
    }

    /**
     * Sets the bytes of one partition's base. Small sizes are for tests.
     *
     * @param bytes the size; 0, the default: from the size of write buffers
     * @return these options
     */
    public Options partitionBytes(long bytes) {
        return set(Option.PARTITION_BYTES, bytes);
    }

    /**
     * Sets the bytes of one run segment. Small sizes are for tests.
     *
     * @param bytes the size, 1 MiB by default
     * @return these options
     */
    public Options segmentBytes(long bytes) {
        return set(Option.SEGMENT_BYTES, bytes);
    }

    /**
     * Sets the bytes of one block before compression.
     *
     * @param bytes the size, 4 KiB by default
     * @return these options
     */
    public Options blockBytes(long bytes) {
        return set(Option.BLOCK_BYTES, bytes);
    }

    /**
     * Sets the bytes of the largest log file. Small sizes are for tests.
     *
     * @param bytes the size, 64 MiB by default
     * @return these options
     */
    public Options logSegmentBytes(long bytes) {
        return set(Option.LOG_SEGMENT_BYTES, bytes);
    }

    /**
     * Sets after which time data that nobody reads is compressed with Zstandard.
     *
     * @param time the time, an hour by default; zero: never
     * @return these options
     */
    public Options coldAfter(Duration time) {
        return set(Option.COLD_AFTER_MS, Times.milliseconds(time));
    }

    /**
     * Sets how much the run files may take, in percent of the live data. What snapshots and branches hold
     * and the first 16 MiB do not count.
     *
     * @param percent from 110 to 10,000; 145 by default
     * @return these options
     */
    public Options maxSpacePercent(int percent) {
        return set(Option.MAX_SPACE_PERCENT, percent);
    }

    /**
     * Sets from which size on values are separated from their keys: compactions leave them where they are.
     *
     * @param bytes the size, at least 16; 4,096 by default; 0: none is
     * @return these options
     */
    public Options separateValuesFrom(long bytes) {
        return set(Option.SEPARATE_VALUES_FROM, bytes);
    }

    /**
     * Adds a merge operator, which keyspaces find by its name.
     *
     * @param name the name, of 1 to 255 bytes of UTF-8
     * @param operator the operator
     * @return these options
     */
    public Options mergeOperator(String name, MergeOperator operator) {
        mergeOperators.put(Objects.requireNonNull(name, "name"), Objects.requireNonNull(operator, "operator"));
        return this;
    }

    /**
     * Adds a compaction filter, which keyspaces find by its name.
     *
     * @param name the name, of 1 to 255 bytes of UTF-8
     * @param filter the filter
     * @return these options
     */
    public Options compactionFilter(String name, CompactionFilter filter) {
        compactionFilters.put(Objects.requireNonNull(name, "name"), Objects.requireNonNull(filter, "filter"));
        return this;
    }

    /**
     * Adds a comparator that keyspaces of the database may need; they find it by its name.
     *
     * @param comparator the comparator
     * @return these options
     */
    public Options comparator(KeyComparator comparator) {
        OpenComparator open = new OpenComparator(comparator);
        comparators.put(Objects.requireNonNull(open.name(), "name"), open);
        return this;
    }

    /**
     * Sets the clock for times to live, in place of the system's: for tests. It gives milliseconds since
     * the beginning of 1970 (UTC), and must not call the database.
     *
     * @param clock the clock; null for the system's
     * @return these options
     */
    public Options clock(LongSupplier clock) {
        this.clock = clock;
        return this;
    }

    /**
     * Sets who is told about events: flushes, compactions, stalls of writers, damage and others. An event
     * is an object of JSON, whose members docs/operations.md describes. A thread of the engine calls the
     * listener, for one event after the other; closing waits until it has returned from the last one. It
     * cannot close the database.
     *
     * @param listener the listener; null for none
     * @return these options
     */
    public Options listener(Consumer<? super String> listener) {
        this.listener = listener;
        return this;
    }

    /** The comparators of a database that is opened with these options. */
    Map<String, OpenComparator> comparators() {
        return Map.copyOf(comparators);
    }

    /** Options of the native library, which the caller frees. */
    long toNative() {
        NativeLibrary.load();
        long options = Native.optionsNew();
        boolean done = false;
        try {
            numbers.forEach((option, value) -> Native.optionsSet(options, option.number, value));
            mergeOperators.forEach(
                    (name, operator) -> Native.optionsAddMergeOperator(options, name.getBytes(UTF_8), operator));
            compactionFilters.forEach(
                    (name, filter) -> Native.optionsAddCompactionFilter(options, name.getBytes(UTF_8), filter));
            for (OpenComparator comparator : comparators.values()) {
                long made = Native.comparatorNew(comparator.name().getBytes(UTF_8), comparator);
                try {
                    Native.optionsAddComparator(options, made);
                } finally {
                    Native.comparatorFree(made);
                }
            }
            if (clock != null) {
                Native.optionsSetClock(options, clock);
            }
            if (listener != null) {
                Native.optionsSetListener(options, listener);
            }
            done = true;
            return options;
        } finally {
            if (!done) {
                Native.optionsFree(options);
            }
        }
    }
}
