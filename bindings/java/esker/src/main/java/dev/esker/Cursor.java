package dev.esker;

import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * A position in a keyspace, as the keyspace was when the cursor was made, which moves in both directions.
 * One thread may use it at a time.
 *
 * <pre>{@code
 * try (Cursor cursor = keyspace.cursor()) {
 *     while (cursor.next()) { // begins at the first entry
 *         use(cursor.key(), cursor.value());
 *     }
 *     if (cursor.seek(key)) { // the first entry at or behind the key
 *         use(cursor.key(), cursor.value());
 *     }
 * }
 * }</pre>
 *
 * <p>A cursor fetches several entries with one call of the engine, more and more of them while it goes in
 * one direction, and few after it was placed. So a move that is no fetch costs no more than an array's
 * element.
 *
 * <p>While a cursor is open, the files that it needs keep their space on the device. Close it soon.
 */
public final class Cursor extends ExclusiveHandle {
    // Moves: the numbers are those of iterator.c.
    private static final int FIRST = 0;
    private static final int LAST = 1;
    private static final int SEEK = 2;
    private static final int SEEK_BACK = 3;
    private static final int NEXT = 4;
    private static final int PREV = 5;
    private static final int AFTER = 6;
    private static final int BEFORE = 7;

    /** In what a fetch returns, beside the number of entries. */
    static final long AT_END = 1L << 32;

    /** The bytes before the key: two lengths. */
    static final int HEAD = 8;

    /** How many entries are fetched after the cursor was placed, and how fast that grows. */
    private static final int FEW = 2;

    private static final int GROWTH = 4;
    private static final int MANY = 1024;

    /** Where the cursor is. */
    private enum Place {
        /** Nowhere yet. */
        NONE,
        /** On the entry of the buffer that {@code at} names. */
        ENTRY,
        /** On no entry: at an end, or nothing was found. */
        END,
        /** On no entry, because of an error: moves go on from where the engine is. */
        FAILED
    }

    private ByteBuffer buffer;
    private Place place = Place.NONE;

    /** Whether what was fetched last goes from greater keys to smaller ones. */
    private boolean back;

    /** How many entries of the buffer lie behind the one that the cursor is on. */
    private int left;

    /** Whether there is nothing behind the last entry of the buffer. */
    private boolean ended;

    /** How many entries the next fetch asks for. */
    private int wanted;

    private int at;
    private int keyLength;
    private int valueLength;

    Cursor(long pointer, Keyspace keyspace) {
        super(pointer, Native::cursorFree, "cursor on " + keyspace);
    }

    /**
     * Goes to the first entry.
     *
     * @return whether there is one
     */
    public boolean first() {
        return place(FIRST, null);
    }

    /**
     * Goes to the last entry.
     *
     * @return whether there is one
     */
    public boolean last() {
        return place(LAST, null);
    }

    /**
     * Goes to the first entry at or behind a key.
     *
     * @param key the key
     * @return whether there is one
     */
    public boolean seek(byte[] key) {
        return place(SEEK, Objects.requireNonNull(key, "key"));
    }

    /**
     * Goes to the last entry at or before a key.
     *
     * @param key the key
     * @return whether there is one
     */
    public boolean seekBack(byte[] key) {
        return place(SEEK_BACK, Objects.requireNonNull(key, "key"));
    }

    private boolean place(int how, byte[] key) {
        enter();
        try {
            wanted = FEW;
            return fetch(how, key);
        } finally {
            exit();
        }
    }

    /**
     * Goes to the next entry: to the first one if the cursor was not placed yet. It does nothing at an end.
     *
     * @return whether the cursor is on an entry
     * @throws EskerException if the data cannot be read. The cursor is on no entry then, and each move repeats
     *     the exception until it is placed again, unless it concerns a single entry
     *     ({@link ErrorCode#MERGE_FAILED} and the like): then moves go on to the neighbours
     */
    public boolean next() {
        enter();
        try {
            return step(false);
        } finally {
            exit();
        }
    }

    /**
     * Goes to the previous entry: to the last one if the cursor was not placed yet. It does nothing at an end.
     *
     * @return whether the cursor is on an entry
     * @throws EskerException as {@link #next}
     */
    public boolean prev() {
        enter();
        try {
            return step(true);
        } finally {
            exit();
        }
    }

    private boolean step(boolean back) {
        switch (place) {
            case NONE:
                wanted = FEW;
                return fetch(back ? LAST : FIRST, null);
            case END:
                return false;
            case FAILED:
                wanted = 1;
                return fetch(back ? PREV : NEXT, null);
            default:
                break;
        }
        if (this.back == back) {
            if (left > 0) {
                left--;
                read(at + HEAD + keyLength + valueLength);
                return true;
            }
            if (ended) {
                place = Place.END;
                return false;
            }
            wanted = Math.min(MANY, wanted * GROWTH);
            return fetch(back ? PREV : NEXT, null);
        }
        // The engine is somewhere ahead: it begins anew at this entry, in the other direction.
        wanted = FEW;
        return fetch(back ? BEFORE : AFTER, bytes(at + HEAD, keyLength));
    }

    /** Moves the engine's iterator, and fills the buffer in the direction of the move. */
    private boolean fetch(int how, byte[] key) {
        if (buffer == null) {
            buffer = Buffers.borrow();
        }
        place = Place.FAILED;
        back = how == LAST || how == SEEK_BACK || how == PREV || how == BEFORE;
        left = 0;
        ended = false;
        long filled = Native.cursorFill(pointer(), how, key, buffer, buffer.capacity(), wanted);
        if (filled < 0) {
            ByteBuffer greater = Buffers.allocate(-filled);
            Buffers.giveBack(buffer);
            buffer = greater;
            filled = Native.cursorRefill(pointer(), how, buffer, buffer.capacity(), wanted);
        }
        int count = (int) filled;
        ended = (filled & AT_END) != 0;
        if (count == 0) {
            place = Place.END;
            return false;
        }
        left = count - 1;
        place = Place.ENTRY;
        read(0);
        return true;
    }

    /** Reads the lengths of an entry. */
    private void read(int offset) {
        at = offset;
        keyLength = buffer.getInt(offset);
        valueLength = buffer.getInt(offset + 4);
    }

    /**
     * Whether the cursor is on an entry.
     *
     * @return whether it is
     */
    public boolean isValid() {
        check();
        return place == Place.ENTRY;
    }

    private void checkValid() {
        check();
        if (place != Place.ENTRY) {
            throw EskerException.make(ErrorCode.MISUSE, "the cursor is on no entry: place it, and look at the answer");
        }
    }

    private byte[] bytes(int offset, int length) {
        ByteBuffer from = buffer;
        try {
            byte[] bytes = new byte[length];
            from.get(offset, bytes);
            return bytes;
        } catch (NullPointerException | IndexOutOfBoundsException | NegativeArraySizeException moved) {
            throw moved();
        }
    }

    private ByteBuffer slice(int offset, int length) {
        ByteBuffer from = buffer;
        try {
            return from.slice(offset, length).asReadOnlyBuffer();
        } catch (NullPointerException | IndexOutOfBoundsException moved) {
            throw moved();
        }
    }

    /** Looks at an entry are not counted as calls, so another thread may move the cursor under one. */
    private EskerException moved() {
        check();
        return EskerException.make(ErrorCode.MISUSE, "the cursor was moved meanwhile: one thread may use it at a time");
    }

    /**
     * The key of the entry.
     *
     * @return a copy
     * @throws MisuseException if the cursor is on no entry
     */
    public byte[] key() {
        checkValid();
        return bytes(at + HEAD, keyLength);
    }

    /**
     * The value of the entry.
     *
     * @return a copy
     * @throws MisuseException if the cursor is on no entry
     */
    public byte[] value() {
        checkValid();
        return bytes(at + HEAD + keyLength, valueLength);
    }

    /**
     * The key of the entry, without a copy.
     *
     * @return a read-only buffer, whose content is undefined after the cursor was moved or closed
     * @throws MisuseException if the cursor is on no entry
     */
    public ByteBuffer keyBuffer() {
        checkValid();
        return slice(at + HEAD, keyLength);
    }

    /**
     * The value of the entry, without a copy.
     *
     * @return a read-only buffer, whose content is undefined after the cursor was moved or closed
     * @throws MisuseException if the cursor is on no entry
     */
    public ByteBuffer valueBuffer() {
        checkValid();
        return slice(at + HEAD + keyLength, valueLength);
    }

    /** Lets go of the position. */
    @Override
    public void close() {
        boolean mine = false;
        if (!wasClosed()) {
            try {
                enter();
                mine = true;
            } catch (EskerException inUse) {
                // The call that uses it ends first; its buffer is then left to the garbage collector.
            }
        }
        if (mine) {
            ByteBuffer used = buffer;
            buffer = null;
            place = Place.NONE;
            exit();
            release();
            if (used != null) {
                Buffers.giveBack(used);
            }
            return;
        }
        release();
    }
}
