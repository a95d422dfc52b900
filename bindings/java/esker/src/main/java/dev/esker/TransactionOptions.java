package dev.esker;

import java.time.Duration;
import java.util.Objects;

/** How a transaction deals with others, and what its commit survives. */
public final class TransactionOptions {
    /** Waits for nobody; the commit fails if something that was read has changed. The default. */
    public static final TransactionOptions OPTIMISTIC = new TransactionOptions(Durability.DEFAULT, -1);

    private final Durability durability;
    private final long lockTimeoutMillis;

    private TransactionOptions(Durability durability, long lockTimeoutMillis) {
        this.durability = durability;
        this.lockTimeoutMillis = lockTimeoutMillis;
    }

    /**
     * A transaction that locks the keys it reads for an update and writes. So it waits for others instead of
     * conflicting with them. Its reads and writes may fail with {@link ErrorCode#LOCK_TIMEOUT} and
     * {@link ErrorCode#DEADLOCK}. Writes outside transactions take no locks; such a write to a locked key
     * makes the commit fail with {@link ErrorCode#CONFLICT}.
     *
     * @param timeout the longest wait for each lock
     * @return the options
     */
    public static TransactionOptions locking(Duration timeout) {
        return new TransactionOptions(Durability.DEFAULT, Times.milliseconds(timeout));
    }

    /**
     * The same with another durability.
     *
     * @param durability what the commit survives
     * @return the options
     */
    public TransactionOptions with(Durability durability) {
        return new TransactionOptions(Objects.requireNonNull(durability, "durability"), lockTimeoutMillis);
    }

    Durability durability() {
        return durability;
    }

    /** Negative: it takes no locks. */
    long lockTimeoutMillis() {
        return lockTimeoutMillis;
    }
}
