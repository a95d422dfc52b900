package dev.esker;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;
import java.util.function.LongUnaryOperator;

/**
 * A handle of the engine that one thread uses at a time.
 *
 * <p>A call takes it, and a call during that one, of another thread or of a callback, is refused. A close
 * during a call does not wait: the call frees the handle when it ends, and later calls are refused.
 */
abstract class ExclusiveHandle implements AutoCloseable {
    private static final int FREE = 0;
    private static final int TAKEN = 1;
    private static final int TAKEN_AND_CLOSED = 2;
    private static final int CLOSED = 3;

    private static final VarHandle USE;

    static {
        try {
            USE = MethodHandles.lookup().findVarHandle(State.class, "use", int.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    private final State state;
    private final Cleaner.Cleanable cleanable;

    ExclusiveHandle(long pointer, LongConsumer free, String what) {
        state = new State(pointer, free, what);
        cleanable = Leaks.CLEANER.register(this, state);
    }

    /** What is left when the object is gone: it does not refer to the object. */
    private static final class State implements Runnable {
        final long pointer;
        final LongConsumer free;
        final String what;
        final Throwable opened = Leaks.trace();
        volatile int use;
        volatile boolean released;

        State(long pointer, LongConsumer free, String what) {
            this.pointer = pointer;
            this.free = free;
            this.what = what;
        }

        /** Run when the object was closed, or when it became unreachable. */
        @Override
        public void run() {
            if (!released) {
                Leaks.report(what, opened);
            }
            while (true) {
                if (USE.compareAndSet(this, FREE, CLOSED)) {
                    free.accept(pointer);
                    return;
                }
                if (use != TAKEN || USE.compareAndSet(this, TAKEN, TAKEN_AND_CLOSED)) {
                    return;
                }
            }
        }
    }

    /** Takes the handle for a call. */
    final void enter() {
        if (!USE.compareAndSet(state, FREE, TAKEN)) {
            throw refused();
        }
    }

    /** Ends the call that took it. */
    final void exit() {
        State state = this.state;
        if (!USE.compareAndSet(state, TAKEN, FREE)) {
            state.use = CLOSED;
            state.free.accept(state.pointer);
        }
    }

    /** Takes the handle for good: somebody else frees it. */
    final long surrender() {
        enter();
        state.released = true;
        state.use = CLOSED;
        cleanable.clean();
        return state.pointer;
    }

    /** The handle; only between {@link #enter} and {@link #exit}. */
    final long pointer() {
        return state.pointer;
    }

    private EskerException refused() {
        int use = state.use;
        if (use == CLOSED || use == TAKEN_AND_CLOSED) {
            return EskerException.make(ErrorCode.CLOSED, "the " + state.what + " was closed: open another");
        }
        return EskerException.make(
                ErrorCode.MISUSE,
                "the " + state.what + " is in use by another call: one thread may use it at a time");
    }

    /** Refuses what {@link #enter} would refuse, for looks at what a call left behind. */
    final void check() {
        if (state.use != FREE) {
            throw refused();
        }
    }

    /** Whether {@link #close} was called. */
    final boolean wasClosed() {
        return state.released;
    }

    /** Lets go of the handle. */
    final void release() {
        state.released = true;
        cleanable.clean();
    }

    final <R> R call(LongFunction<R> body) {
        enter();
        try {
            return body.apply(pointer());
        } finally {
            exit();
        }
    }

    final long callLong(LongUnaryOperator body) {
        enter();
        try {
            return body.applyAsLong(pointer());
        } finally {
            exit();
        }
    }

    final void run(LongConsumer body) {
        enter();
        try {
            body.accept(pointer());
        } finally {
            exit();
        }
    }

    // The same with a keyspace, which no close frees during the call.

    final <R> R call(Keyspace keyspace, LongFunction<R> body) {
        int entered = keyspace.begin();
        try {
            return call(body);
        } finally {
            keyspace.exit(entered);
        }
    }

    final long callLong(Keyspace keyspace, LongUnaryOperator body) {
        int entered = keyspace.begin();
        try {
            return callLong(body);
        } finally {
            keyspace.exit(entered);
        }
    }

    final void run(Keyspace keyspace, LongConsumer body) {
        int entered = keyspace.begin();
        try {
            run(body);
        } finally {
            keyspace.exit(entered);
        }
    }
}
