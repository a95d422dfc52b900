package dev.esker;

import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * A stream of one value, as the value was when the reader was made, which can seek. One thread may use it at a
 * time. While it is open, the space of its value is not given back, and the database does not close by itself.
 *
 * <pre>{@code
 * try (ValueReader image = keyspace.openValue(key)) {
 *     image.seek(1 << 20);
 *     image.transferTo(out);
 * }
 * }</pre>
 *
 * <p>Its methods throw {@link EskerException}, not {@link java.io.IOException}.
 */
public final class ValueReader extends InputStream {
    private final Handle handle;

    private ValueReader(long pointer, Keyspace keyspace) {
        handle = new Handle(pointer, keyspace);
    }

    /** A stream is a class already, so it has the handle instead of being one. */
    private static final class Handle extends ExclusiveHandle {
        /** Where the reader is. */
        private long position;

        Handle(long pointer, Keyspace keyspace) {
            super(pointer, Native::readerFree, "reader of a value of " + keyspace);
        }

        @Override
        public void close() {
            release();
        }
    }

    static ValueReader of(long pointer, Keyspace keyspace) {
        return pointer == 0 ? null : new ValueReader(pointer, keyspace);
    }

    /**
     * The bytes of the whole value.
     *
     * @return their number
     */
    public long length() {
        return handle.callLong(Native::readerLength);
    }

    /**
     * Places the reader.
     *
     * @param offset the next byte to read, counted from 0; at or behind the end nothing is left to read
     */
    public void seek(long offset) {
        if (offset < 0) {
            throw EskerException.make(ErrorCode.INVALID_ARGUMENT, "the offset " + offset + " is negative");
        }
        handle.run(
                pointer -> {
                    Native.readerSeek(pointer, offset);
                    handle.position = offset;
                });
    }

    @Override
    public int read() {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 1 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] into, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, into.length);
        if (length == 0) {
            return 0;
        }
        handle.enter();
        try {
            int read = Native.readerRead(handle.pointer(), into, offset, length);
            handle.position += read;
            return read == 0 ? -1 : read;
        } finally {
            handle.exit();
        }
    }

    /**
     * Reads into what remains of a buffer, and moves its position behind what was read. If it is direct, this is
     * the only copy.
     *
     * @param into the buffer
     * @return how many bytes were read, or -1 at the end
     */
    public int read(ByteBuffer into) {
        if (into.isReadOnly()) {
            throw EskerException.make(ErrorCode.INVALID_ARGUMENT, "the buffer is read-only");
        }
        if (!into.hasRemaining()) {
            return 0;
        }
        if (!into.isDirect()) {
            byte[] bytes = new byte[Math.min(into.remaining(), 64 << 10)];
            int read = read(bytes, 0, bytes.length);
            if (read > 0) {
                into.put(bytes, 0, read);
            }
            return read;
        }
        int at = into.position();
        handle.enter();
        try {
            int read = Native.readerReadDirect(handle.pointer(), into, at, Buffers.from(into, at));
            handle.position += read;
            into.position(at + read);
            return read == 0 ? -1 : read;
        } finally {
            handle.exit();
        }
    }

    @Override
    public long skip(long bytes) {
        if (bytes <= 0) {
            return 0;
        }
        handle.enter();
        try {
            long left = Math.max(0, Native.readerLength(handle.pointer()) - handle.position);
            long skipped = Math.min(left, bytes);
            Native.readerSeek(handle.pointer(), handle.position + skipped);
            handle.position += skipped;
            return skipped;
        } finally {
            handle.exit();
        }
    }

    @Override
    public int available() {
        return (int)
                handle.callLong(
                        pointer ->
                                Math.min(
                                        Integer.MAX_VALUE,
                                        Math.max(0, Native.readerLength(pointer) - handle.position)));
    }

    @Override
    public void close() {
        handle.close();
    }
}
