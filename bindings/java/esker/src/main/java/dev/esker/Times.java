package dev.esker;

import java.time.Duration;

/** Times as the C interface has them. */
final class Times {
    private Times() {}

    /** Whole milliseconds, rounded up so that a time that is not zero does not become zero. */
    static long milliseconds(Duration time) {
        if (time.isNegative()) {
            throw EskerException.make(
                    ErrorCode.INVALID_ARGUMENT, "the time " + time + " is negative: give zero or more");
        }
        try {
            return time.plusNanos(999_999).toMillis();
        } catch (ArithmeticException tooLong) {
            return Long.MAX_VALUE;
        }
    }
}
