package dev.esker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.function.Consumer;

/** What the native library calls, beside the objects of the program themselves. */
final class Callbacks {
    private Callbacks() {}

    /** The answers of a filter that are no value. The native library knows them by identity. */
    static final byte[] KEEP = new byte[0];

    static final byte[] REMOVE = new byte[0];

    private static final System.Logger LOGGER = System.getLogger("dev.esker");

    /** Whether this thread is in a listener of events: the engine waits for it when it closes. */
    private static final ThreadLocal<Boolean> LISTENING = new ThreadLocal<>();

    static byte[] filter(CompactionFilter filter, byte[] key, byte[] value) {
        return filter.filter(key, value).answer;
    }

    static void event(Consumer<? super String> listener, byte[] json) {
        LISTENING.set(true);
        try {
            listener.accept(new String(json, UTF_8));
        } finally {
            LISTENING.remove();
        }
    }

    /** Refuses what would wait for the end of the listener that calls it. */
    static void checkNotListening(String what) {
        if (LISTENING.get() != null) {
            throw EskerException.make(
                    ErrorCode.MISUSE, "a listener of events cannot " + what + ": do it in another thread");
        }
    }

    /** Reports what a function of the program threw in a thread that has nobody to throw it to. */
    static void failed(String what, Throwable thrown) {
        LOGGER.log(System.Logger.Level.ERROR, "the " + what + " of the program threw an exception", thrown);
    }
}
