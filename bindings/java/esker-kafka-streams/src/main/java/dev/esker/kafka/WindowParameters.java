package dev.esker.kafka;

/**
 * What a window store is made with. Times are in milliseconds.
 *
 * @param retention how long windows are kept
 * @param interval the length of a segment
 * @param size the length of a window
 * @param duplicates whether a window of a key may have several values
 * @param closes whether the windows are forwarded only when they have closed
 */
record WindowParameters(String name, long retention, long interval, long size, boolean duplicates, boolean closes) {
    /** The shortest segment of an ordinary store. */
    private static final long SHORTEST = 60_000;

    /** How many segments a store of windows that close has at most, about. */
    private static final long MANY = 1_000;

    static WindowParameters of(String name, long retention, long size, boolean duplicates) {
        return new WindowParameters(name, retention, Math.max(retention / 2, SHORTEST), size, duplicates, false);
    }

    /**
     * The windows that have closed are looked for by their times again and again. So segments are about as
     * long as a window: few entries are looked at that are not wanted. A segment costs nothing by itself.
     */
    static WindowParameters closing(String name, long retention, long size, boolean duplicates) {
        long interval = Math.max(1, Math.max(size, retention / MANY));
        return new WindowParameters(name, retention, interval, size, duplicates, true);
    }
}
