package dev.esker;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Buffers that show memory of the engine, and buffers that calls fill. */
final class Buffers {
    private Buffers() {}

    /** Shorter values are copied by the engine, so that a buffer on them saves nothing. */
    private static final int SHOWN_FROM = 4096;

    /**
     * What buffers may hold of the engine's memory. The garbage collector does not know of that memory, so
     * it may take long to come upon them; beyond this bound values are copied into the heap, which it knows.
     */
    private static final long MOST_HELD = 64L << 20;

    private static final AtomicLong HELD = new AtomicLong();

    /** What buffers hold now, for tests. */
    static long held() {
        return HELD.get();
    }

    /** What remains in a buffer, which does not change. */
    static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(buffer.position(), bytes);
        return bytes;
    }

    /**
     * The bytes from a place, which was the buffer's position, to its limit. Another thread may move both, against
     * the rules: whatever it does, what the native library gets lies within the buffer.
     */
    static int from(ByteBuffer buffer, int at) {
        return Math.max(0, buffer.limit() - at);
    }

    /** A read-only buffer for a value of the engine, which is taken over; null for none. */
    static ByteBuffer of(long value) {
        if (value == 0) {
            return null;
        }
        int length = Native.valueLength(value);
        if (length < SHOWN_FROM || HELD.addAndGet(length) > MOST_HELD) {
            if (length >= SHOWN_FROM) {
                HELD.addAndGet(-length);
            }
            return ByteBuffer.wrap(Native.valueTake(value)).asReadOnlyBuffer();
        }
        ByteBuffer shown = Native.valueBuffer(value);
        // Slices and copies of a buffer refer to the one that they come from, so this one goes last.
        Leaks.CLEANER.register(
                shown,
                () -> {
                    Native.valueFree(value);
                    HELD.addAndGet(-length);
                });
        return shown.asReadOnlyBuffer();
    }

    // Buffers that cursors and maps have filled.

    /** The bytes of a buffer that is used again. */
    static final int FILLED = 64 << 10;

    private static final int MOST_KEPT = 64;

    private static final ConcurrentLinkedQueue<ByteBuffer> KEPT = new ConcurrentLinkedQueue<>();
    private static final AtomicInteger KEPT_COUNT = new AtomicInteger();

    /** A direct buffer in the order of the processor, of {@link #FILLED} bytes. */
    static ByteBuffer borrow() {
        ByteBuffer buffer = KEPT.poll();
        if (buffer == null) {
            return allocate(FILLED);
        }
        KEPT_COUNT.decrementAndGet();
        return buffer;
    }

    /** A direct buffer in the order of the processor, for an entry of so many bytes. */
    static ByteBuffer allocate(long bytes) {
        long size = Math.min(Integer.MAX_VALUE - 8, Math.max(bytes, FILLED));
        return ByteBuffer.allocateDirect((int) size).order(ByteOrder.nativeOrder());
    }

    /** Gives a buffer back that nobody uses any more. */
    static void giveBack(ByteBuffer buffer) {
        if (buffer.capacity() != FILLED) {
            return;
        }
        if (KEPT_COUNT.incrementAndGet() > MOST_KEPT) {
            KEPT_COUNT.decrementAndGet();
            return;
        }
        KEPT.add(buffer);
    }
}
