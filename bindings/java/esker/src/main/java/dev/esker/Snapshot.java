package dev.esker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * The state of a whole database at one moment. It may be used from any thread. While it is open,
 * compactions keep what it sees.
 *
 * <pre>{@code
 * try (Snapshot before = database.snapshot()) {
 *     people.delete(key);
 *     byte[] value = before.get(people, key); // as it was
 * }
 * }</pre>
 */
public final class Snapshot extends SharedHandle {
    Snapshot(long pointer, Database database) {
        super(pointer, Native::snapshotFree, "snapshot of " + database);
    }

    /**
     * Its place in time: of two snapshots of one database, the one with the larger number is the later one.
     *
     * @return the number
     */
    public long position() {
        return callLong(Native::snapshotPosition);
    }

    /**
     * Reads the value that a key had.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @return the value, or null if there was none
     */
    public byte[] get(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        int entered = enter();
        try {
            int other = keyspace.begin();
            try {
                return Native.snapshotGet(pointer(), keyspace.pointer(), key);
            } finally {
                keyspace.exit(other);
            }
        } finally {
            exit(entered);
        }
    }

    /**
     * Reads the value that a key had as {@link Keyspace#getBuffer} does.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @return the value, or null if there was none
     */
    public ByteBuffer getBuffer(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        int entered = enter();
        try {
            int other = keyspace.begin();
            try {
                return Buffers.of(Native.keyspaceGetValue(keyspace.pointer(), pointer(), key));
            } finally {
                keyspace.exit(other);
            }
        } finally {
            exit(entered);
        }
    }

    /**
     * Whether a key had a value.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @return whether it had
     */
    public boolean contains(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        int entered = enter();
        try {
            int other = keyspace.begin();
            try {
                return Native.snapshotContains(pointer(), keyspace.pointer(), key);
            } finally {
                keyspace.exit(other);
            }
        } finally {
            exit(entered);
        }
    }

    /**
     * Reads the values that several keys had.
     *
     * @param keyspace the keyspace
     * @param keys the keys
     * @return a value, or null where there was none, for each key
     */
    public byte[][] multiGet(Keyspace keyspace, byte[][] keys) {
        Objects.requireNonNull(keys, "keys");
        int entered = enter();
        try {
            int other = keyspace.begin();
            try {
                return Native.snapshotMultiGet(pointer(), keyspace.pointer(), keys);
            } finally {
                keyspace.exit(other);
            }
        } finally {
            exit(entered);
        }
    }

    /**
     * Opens the value that a key had as {@link Keyspace#openValue} does.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @return the reader, or null if there was no value
     */
    public ValueReader openValue(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        int entered = enter();
        try {
            int other = keyspace.begin();
            try {
                return ValueReader.of(Native.readerNew(keyspace.pointer(), pointer(), key), keyspace);
            } finally {
                keyspace.exit(other);
            }
        } finally {
            exit(entered);
        }
    }

    /**
     * Makes a cursor over a range. It may outlive the snapshot.
     *
     * @param keyspace the keyspace
     * @param start the first key, or null
     * @param end the key behind the last one, or null
     * @return the cursor
     */
    public Cursor cursor(Keyspace keyspace, byte[] start, byte[] end) {
        int entered = enter();
        try {
            int other = keyspace.begin();
            try {
                return new Cursor(Native.cursorNew(keyspace.pointer(), pointer(), start, end), keyspace);
            } finally {
                keyspace.exit(other);
            }
        } finally {
            exit(entered);
        }
    }

    /**
     * Makes a cursor over the keys that begin with a prefix. It may outlive the snapshot.
     *
     * @param keyspace the keyspace
     * @param prefix the prefix
     * @return the cursor
     * @throws InvalidArgumentException in a keyspace with a comparator: use a range there
     */
    public Cursor cursorOfPrefix(Keyspace keyspace, byte[] prefix) {
        Objects.requireNonNull(prefix, "prefix");
        int entered = enter();
        try {
            int other = keyspace.begin();
            try {
                return new Cursor(Native.cursorNewPrefix(keyspace.pointer(), pointer(), prefix), keyspace);
            } finally {
                keyspace.exit(other);
            }
        } finally {
            exit(entered);
        }
    }

    /**
     * Reads a key, and says what the read did, as {@link Keyspace#explainGet} does.
     *
     * @param keyspace the keyspace
     * @param key the key
     * @return an object of JSON
     */
    public String explainGet(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        int entered = enter();
        try {
            int other = keyspace.begin();
            try {
                return new String(Native.keyspaceExplainGet(keyspace.pointer(), pointer(), key), UTF_8);
            } finally {
                keyspace.exit(other);
            }
        } finally {
            exit(entered);
        }
    }

    /** Lets go of the state. */
    @Override
    public void close() {
        release();
    }
}
