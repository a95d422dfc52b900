package dev.esker;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import java.util.function.LongUnaryOperator;

/**
 * A handle of the engine that many threads use at once.
 *
 * <p>Each call counts itself in before it uses the handle and out afterwards, and {@link #close} never
 * waits: the handle is freed by whoever is the last to use it after the close. A call costs two additions
 * to a counter that threads on other processors mostly do not touch: the counters are striped by thread.
 *
 * <p>Why a handle is never freed under a call: a call adds to its counter, then looks whether the handle is
 * closed; a close says so, then looks at the counters. Both are in the one order of volatile accesses. So
 * either the call sees the close and does not use the handle, or the close sees the call in its counter.
 * After the close no counter can come to stand for a call that uses the handle, so it does not matter
 * that they are looked at one after the other. The last call out finds the handle closed, and looks too.
 */
abstract class SharedHandle implements AutoCloseable {
    private static final VarHandle COUNTS = MethodHandles.arrayElementVarHandle(int[].class);

    /** A power of two, about the number of processors. */
    private static final int STRIPES =
            Math.min(16, Integer.highestOneBit(Math.max(1, Runtime.getRuntime().availableProcessors()) * 2 - 1));

    /** Counters of two stripes are this many elements apart, so that they share no cache line. */
    private static final int APART = 16;

    private final State state;
    private final Cleaner.Cleanable cleanable;

    SharedHandle(long pointer, LongConsumer free, String what) {
        state = new State(pointer, free, what);
        cleanable = Leaks.CLEANER.register(this, state);
    }

    /** What is left when the object is gone: it does not refer to the object. */
    private static final class State implements Runnable {
        final int[] counts = new int[(STRIPES + 1) * APART];
        final long pointer;
        final LongConsumer free;
        final String what;
        final Throwable opened = Leaks.trace();
        volatile boolean closed;
        private boolean freed;

        State(long pointer, LongConsumer free, String what) {
            this.pointer = pointer;
            this.free = free;
            this.what = what;
        }

        /** Run when the object was closed, or when it became unreachable. */
        @Override
        public void run() {
            if (!closed) {
                closed = true;
                Leaks.report(what, opened);
            }
            freeIfUnused();
        }

        void freeIfUnused() {
            for (int stripe = 1; stripe <= STRIPES; stripe++) {
                if ((int) COUNTS.getVolatile(counts, stripe * APART) != 0) {
                    return;
                }
            }
            synchronized (this) {
                if (freed) {
                    return;
                }
                freed = true;
            }
            free.accept(pointer);
        }
    }

    /** Counts a call in. The result goes to {@link #exit}. */
    final int enter() {
        int[] counts = state.counts;
        int stripe = (((int) Thread.currentThread().getId() & (STRIPES - 1)) + 1) * APART;
        COUNTS.getAndAdd(counts, stripe, 1);
        if (state.closed) {
            exit(stripe);
            throw closedException();
        }
        return stripe;
    }

    /** Counts a call out. */
    final void exit(int stripe) {
        State state = this.state;
        COUNTS.getAndAdd(state.counts, stripe, -1);
        if (state.closed) {
            state.freeIfUnused();
        }
    }

    /** The handle; only between {@link #enter} and {@link #exit}. */
    final long pointer() {
        return state.pointer;
    }

    private ClosedException closedException() {
        return (ClosedException)
                EskerException.make(ErrorCode.CLOSED, "the " + state.what + " was closed: open another");
    }

    /** Whether {@link #close} was called. */
    final boolean wasClosed() {
        return state.closed;
    }

    /** Lets go of the handle. */
    final void release() {
        state.closed = true;
        cleanable.clean();
    }

    // For calls that take longer than these do themselves.

    final <R> R call(LongFunction<R> body) {
        int entered = enter();
        try {
            return body.apply(pointer());
        } finally {
            exit(entered);
        }
    }

    final long callLong(LongUnaryOperator body) {
        int entered = enter();
        try {
            return body.applyAsLong(pointer());
        } finally {
            exit(entered);
        }
    }

    final void run(LongConsumer body) {
        int entered = enter();
        try {
            body.accept(pointer());
        } finally {
            exit(entered);
        }
    }
}
