package dev.esker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.Objects;

/**
 * The options of a keyspace. A new keyspace is made with them; an existing one must have the same
 * comparator and merge operator, while its time to live and compaction filter change.
 *
 * <pre>{@code
 * Keyspace visits = database.keyspace("visits", new KeyspaceOptions().mergeOperator("esker.counter-u64"));
 * }</pre>
 */
public final class KeyspaceOptions {
    private OpenComparator comparator;
    private String mergeOperator;
    private String compactionFilter;
    private Duration ttl;

    /** Makes options with nothing set. */
    public KeyspaceOptions() {}

    /**
     * Sets the order of keys.
     *
     * @param comparator the comparator
     * @return these options
     */
    public KeyspaceOptions comparator(KeyComparator comparator) {
        this.comparator = new OpenComparator(comparator);
        return this;
    }

    /**
     * Sets the merge operator by its name: one of {@link Options#mergeOperator}, or one that comes with the
     * engine. {@code esker.counter-u64} and {@code esker.counter-i64} add 8-byte little-endian numbers;
     * {@code esker.max} keeps the greatest in byte order; {@code esker.append:} with hexadecimal digits
     * joins the operands with those bytes in between.
     *
     * @param name the name
     * @return these options
     */
    public KeyspaceOptions mergeOperator(String name) {
        mergeOperator = Objects.requireNonNull(name, "name");
        return this;
    }

    /**
     * Sets the compaction filter, by its name in {@link Options#compactionFilter}.
     *
     * @param name the name
     * @return these options
     */
    public KeyspaceOptions compactionFilter(String name) {
        compactionFilter = Objects.requireNonNull(name, "name");
        return this;
    }

    /**
     * Sets the time to live of writes that give none.
     *
     * @param ttl the time, more than zero
     * @return these options
     */
    public KeyspaceOptions ttl(Duration ttl) {
        Times.milliseconds(ttl);
        this.ttl = ttl;
        return this;
    }

    OpenComparator comparator() {
        return comparator;
    }

    /** Options of the native library with this comparator, or none; the caller frees them. */
    long toNative(OpenComparator comparator) {
        long options = Native.keyspaceOptionsNew();
        boolean done = false;
        try {
            if (comparator != null) {
                long made = Native.comparatorNew(comparator.name().getBytes(UTF_8), comparator);
                try {
                    Native.keyspaceOptionsSetComparator(options, made);
                } finally {
                    Native.comparatorFree(made);
                }
            }
            if (mergeOperator != null) {
                Native.keyspaceOptionsSetMergeOperator(options, mergeOperator.getBytes(UTF_8));
            }
            if (compactionFilter != null) {
                Native.keyspaceOptionsSetCompactionFilter(options, compactionFilter.getBytes(UTF_8));
            }
            if (ttl != null) {
                Native.keyspaceOptionsSetTtl(options, Times.milliseconds(ttl));
            }
            done = true;
            return options;
        } finally {
            if (!done) {
                Native.keyspaceOptionsFree(options);
            }
        }
    }
}
