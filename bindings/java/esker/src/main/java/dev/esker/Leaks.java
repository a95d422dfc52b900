package dev.esker;

import java.lang.ref.Cleaner;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * Reports of what became unreachable without having been closed. It is freed as well, but late: when the
 * garbage collector comes upon it.
 *
 * <p>Without a listener, a report goes to the {@link System.Logger} with the name {@code dev.esker}, as a
 * warning. With {@code -Desker.leaks=trace} everything that is opened keeps where it was opened, which
 * takes time, and the report says it.
 *
 * <pre>{@code
 * Leaks.setListener(leak -> fail("not closed: " + leak.what()));
 * }</pre>
 */
public final class Leaks {
    private Leaks() {}

    /** One cleaner, and so one thread, for all of this package. */
    static final Cleaner CLEANER = Cleaner.create();

    private static final boolean TRACE = "trace".equals(System.getProperty("esker.leaks"));
    private static final System.Logger LOGGER = System.getLogger("dev.esker");
    private static final AtomicLong COUNT = new AtomicLong();

    private static volatile Consumer<? super Leak> listener = Leaks::log;

    /**
     * What was not closed.
     *
     * @param what the kind of object and what it belonged to
     * @param opened where it was opened; null unless {@code -Desker.leaks=trace} is given
     */
    public record Leak(String what, Throwable opened) {}

    /**
     * Sets who is told about leaks, on a thread of this package.
     *
     * @param told the listener; null for the one that logs
     */
    public static void setListener(Consumer<? super Leak> told) {
        listener = told == null ? Leaks::log : told;
    }

    /**
     * How many leaks there were since the program began.
     *
     * @return the number
     */
    public static long count() {
        return COUNT.get();
    }

    /** Where something is opened, if that is wanted. */
    static Throwable trace() {
        return TRACE ? new Throwable("opened here") : null;
    }

    static void report(String what, Throwable opened) {
        COUNT.incrementAndGet();
        try {
            listener.accept(new Leak(Objects.requireNonNull(what), opened));
        } catch (RuntimeException | Error fault) {
            // It must not keep the cleaner from freeing.
            LOGGER.log(System.Logger.Level.ERROR, "a listener of leaks failed", fault);
        }
    }

    private static void log(Leak leak) {
        LOGGER.log(System.Logger.Level.WARNING, leak.what() + " was not closed", leak.opened());
    }
}
