package dev.esker;

import java.util.Arrays;
import java.util.Comparator;

/**
 * A comparator of the program as the engine calls it. The engine expects an answer to each call, so one
 * that fails answers with byte order from then on, and says that it failed.
 */
final class OpenComparator implements Comparator<byte[]> {
    private final KeyComparator comparator;
    private final String name;
    private volatile Throwable failure;

    OpenComparator(KeyComparator comparator) {
        this.comparator = comparator;
        this.name = comparator.name();
    }

    KeyComparator comparator() {
        return comparator;
    }

    String name() {
        return name;
    }

    /** Called by the engine. */
    @Override
    public int compare(byte[] a, byte[] b) {
        if (failure == null) {
            try {
                return comparator.compare(a, b);
            } catch (Throwable thrown) {
                failure = thrown;
                Callbacks.failed("comparator " + name, thrown);
            }
        }
        return Arrays.compareUnsigned(a, b);
    }

    /** Refuses calls after a failure. */
    void check() {
        Throwable failed = failure;
        if (failed != null) {
            throw EskerException.make(
                    ErrorCode.USER_CODE_FAILED,
                    "the comparator " + name + " threw an exception: mend it, and open the database again",
                    failed);
        }
    }
}
