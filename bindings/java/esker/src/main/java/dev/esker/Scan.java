package dev.esker;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Some neighbouring entries of a keyspace, fetched by one call of the engine that leaves nothing open. What
 * maps do is made of these.
 */
final class Scan {
    /** The entries, in the direction of the scan. */
    final List<MapEntry> entries = new ArrayList<>();

    /** Whether there are no others behind them. */
    boolean ended;

    private Scan() {}

    /** No entries. */
    static Scan empty() {
        Scan scan = new Scan();
        scan.ended = true;
        return scan;
    }

    /** Where a scan begins: the numbers are those of iterator.c. */
    static int begin(byte[] from, boolean inclusive, boolean back) {
        if (from == null) {
            return back ? 1 : 0;
        }
        if (inclusive) {
            return back ? 3 : 2;
        }
        return back ? 7 : 6;
    }

    /** Fetches at most {@code most} entries of a range from where {@code how} says. */
    static Scan of(Keyspace keyspace, byte[] start, byte[] end, int how, byte[] from, int most) {
        ByteBuffer buffer = Buffers.borrow();
        try {
            int entered = keyspace.begin();
            long filled;
            try {
                filled = fill(keyspace, start, end, how, from, buffer, most);
                while (filled < 0) {
                    // Another thread may replace the value by a greater one in between.
                    ByteBuffer greater = Buffers.allocate(-filled);
                    Buffers.giveBack(buffer);
                    buffer = greater;
                    filled = fill(keyspace, start, end, how, from, buffer, most);
                }
            } finally {
                keyspace.exit(entered);
            }
            return read(keyspace, buffer, filled);
        } finally {
            Buffers.giveBack(buffer);
        }
    }

    private static long fill(
            Keyspace keyspace, byte[] start, byte[] end, int how, byte[] from, ByteBuffer buffer, int most) {
        return Native.keyspaceScan(keyspace.pointer(), start, end, how, from, buffer, buffer.capacity(), most);
    }

    private static Scan read(Keyspace keyspace, ByteBuffer buffer, long filled) {
        Scan scan = new Scan();
        scan.ended = (filled & Cursor.AT_END) != 0;
        int at = 0;
        for (int left = (int) filled; left > 0; left--) {
            byte[] key = new byte[buffer.getInt(at)];
            byte[] value = new byte[buffer.getInt(at + 4)];
            buffer.get(at + Cursor.HEAD, key);
            buffer.get(at + Cursor.HEAD + key.length, value);
            scan.entries.add(new MapEntry(keyspace, key, value));
            at += Cursor.HEAD + key.length + value.length;
        }
        return scan;
    }
}
