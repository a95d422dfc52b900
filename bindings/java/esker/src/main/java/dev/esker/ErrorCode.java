package dev.esker;

import java.util.HashMap;
import java.util.Map;

/** What kind of failure an {@link EskerException} is about. */
public enum ErrorCode {
    /** The operating system refused an operation on a file. */
    IO(1),
    /** Bytes on disk differ from what was written. */
    CORRUPTION(2),
    /** Another handle, in this process or another, has the database open. */
    LOCKED(3),
    /** The directory holds something else than an Esker database. */
    NOT_A_DATABASE(4),
    /** There is no database, and the options forbid making one. */
    MISSING(5),
    /** There is a database, and the options demand a new one. */
    EXISTS(6),
    /** A file was written by a format version that this build does not know. */
    UNKNOWN_FORMAT(7),
    /** The key is longer than 65,535 bytes. */
    KEY_TOO_LONG(8),
    /** The value is larger than an eighth of the memory option, or than 1 GiB. */
    VALUE_TOO_LARGE(9),
    /** The batch is larger than an eighth of the memory option. */
    BATCH_TOO_LARGE(10),
    /** The device is full; writes go on by themselves when it has space again. */
    DISK_FULL(11),
    /** An earlier failure, the exception's cause, ended writing until the database is reopened. */
    POISONED(12),
    /** The database, or the object of the call, was closed. */
    CLOSED(13),
    /** This is a child process of the one that opened the database. */
    FORKED(14),
    /** The keyspace was dropped. */
    KEYSPACE_DROPPED(15),
    /** The keyspace needs a comparator that was not given. */
    COMPARATOR_MISSING(16),
    /** The keyspace has another comparator than the one given. */
    COMPARATOR_MISMATCH(17),
    /** A function of the program failed in a way that could be contained. */
    USER_CODE_FAILED(18),
    /** The database is open read-only. */
    READ_ONLY(19),
    /** The call does not accept this argument. */
    INVALID_ARGUMENT(20),
    /** Something that the transaction read was written meanwhile: begin a new transaction. */
    CONFLICT(21),
    /** Transactions waited for each other's locks: begin a new transaction. */
    DEADLOCK(22),
    /** The transaction did not get a lock in time: begin a new transaction, or wait longer. */
    LOCK_TIMEOUT(23),
    /** The transaction's own code ended it. */
    ABORTED(24),
    /** The keyspace needs a merge operator that was not given. */
    MERGE_OPERATOR_MISSING(25),
    /** The keyspace has another merge operator than the one given. */
    MERGE_OPERATOR_MISMATCH(26),
    /** A merge operator could not combine its operands into a value. */
    MERGE_FAILED(27),
    /** There is no branch or named snapshot of this name, or it was dropped. */
    BRANCH_MISSING(28),
    /** A branch or named snapshot of this name exists already. */
    BRANCH_EXISTS(29),
    /** The directory holds the incomplete output of an interrupted repair. */
    UNFINISHED(30),
    /** A call that does not wait would have had to; nothing was written. */
    WOULD_BLOCK(31),
    /** Keys of an ingestion do not ascend. */
    OUT_OF_ORDER(32),
    /** The program ended a long call. What the call did so far stays. */
    INTERRUPTED(33),
    /** The call is wrong in this state: such as one during the call of another thread. */
    MISUSE(100),
    /** The library has a defect, which was contained. Please report the message. */
    PANIC(101),
    /** The library does not know more about the failure than its message says. */
    OTHER(102),
    /** There is no native library for this platform, or it could not be loaded. */
    NO_LIBRARY(1000);

    private static final Map<Integer, ErrorCode> BY_NUMBER = new HashMap<>();

    static {
        for (ErrorCode code : values()) {
            BY_NUMBER.put(code.number, code);
        }
    }

    private final int number;

    ErrorCode(int number) {
        this.number = number;
    }

    /**
     * The number that the C interface gives to this kind of failure. It never changes.
     *
     * @return the number; for {@link #NO_LIBRARY}, which is Java's alone, 1000
     */
    public int number() {
        return number;
    }

    /** The code for a number, {@link #OTHER} for one that this version does not know. */
    static ErrorCode of(int number) {
        return BY_NUMBER.getOrDefault(number, OTHER);
    }
}
