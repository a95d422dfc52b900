package dev.esker.kafka.bench;

/** Counts durations in classes that are at most a sixteenth wide; not for several threads. */
final class Histogram {
    private static final int PARTS = 16;
    private final long[] counts = new long[64 * PARTS];
    private long total;

    void add(long nanoseconds) {
        counts[index(Math.max(nanoseconds, 1))]++;
        total++;
    }

    private static int index(long value) {
        int exponent = 63 - Long.numberOfLeadingZeros(value);
        int part = (int) (exponent >= 4 ? (value >>> (exponent - 4)) & (PARTS - 1) : (value << (4 - exponent)) & (PARTS - 1));
        return exponent * PARTS + part;
    }

    void add(Histogram other) {
        for (int i = 0; i < counts.length; i++) {
            counts[i] += other.counts[i];
        }
        total += other.total;
    }

    /** The upper end, in microseconds, of the class in which this share of the durations ends. */
    double microseconds(double share) {
        long wanted = (long) Math.ceil(total * share);
        long seen = 0;
        for (int i = 0; i < counts.length; i++) {
            seen += counts[i];
            if (seen >= wanted && seen > 0) {
                int exponent = i / PARTS;
                double lower = Math.scalb(1.0 + (double) (i % PARTS) / PARTS, exponent);
                return (lower + Math.scalb(1.0 / PARTS, exponent)) / 1000;
            }
        }
        return 0;
    }

    long total() {
        return total;
    }
}
