package dev.esker.kafka;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * The versions of a key that ended in one segment. The latest comes first. A version is valid from its own time
 * to that of the one before it in the list; the first one, to the time of the row.
 *
 * <p>A key that was deleted while it had no version has a row with one version that begins and ends at the time
 * of the deletion.
 */
final class VersionRow {
    /** A version; its value is null if it says that the key was deleted. */
    record Version(long from, byte[] value) {}

    private final List<Version> versions = new ArrayList<>();
    private long end;

    private VersionRow(long end) {
        this.end = end;
    }

    /** A row with one version. */
    static VersionRow of(long from, long end, byte[] value) {
        VersionRow row = new VersionRow(end);
        row.versions.add(new Version(from, value));
        return row;
    }

    /** The row for bytes of {@link #toBytes}. */
    static VersionRow of(byte[] bytes) {
        ByteBuffer left = ByteBuffer.wrap(bytes);
        VersionRow row = new VersionRow(left.getLong());
        while (left.hasRemaining()) {
            long from = left.getLong();
            int length = left.getInt();
            byte[] value = null;
            if (length >= 0) {
                value = new byte[length];
                left.get(value);
            }
            row.versions.add(new Version(from, value));
        }
        return row;
    }

    byte[] toBytes() {
        int length = Long.BYTES;
        for (Version version : versions) {
            length += Long.BYTES + Integer.BYTES + (version.value() == null ? 0 : version.value().length);
        }
        ByteBuffer bytes = ByteBuffer.allocate(length).putLong(end);
        for (Version version : versions) {
            bytes.putLong(version.from());
            if (version.value() == null) {
                bytes.putInt(-1);
            } else {
                bytes.putInt(version.value().length).put(version.value());
            }
        }
        return bytes.array();
    }

    /** When the latest version ended. */
    long end() {
        return end;
    }

    /** When the earliest version began. */
    long begin() {
        return versions.get(versions.size() - 1).from();
    }

    private boolean isMoment() {
        return begin() == end;
    }

    int size() {
        return versions.size();
    }

    Version version(int index) {
        return versions.get(index);
    }

    /** When a version ended. */
    long endOf(int index) {
        return index == 0 ? end : versions.get(index - 1).from();
    }

    /** The index of the version that is valid at a time, which is not before the beginning and before the end. */
    int at(long time) {
        int index = 0;
        while (versions.get(index).from() > time) {
            index++;
        }
        return index;
    }

    /** Adds a version behind all others. Between the last end and its beginning, the key was deleted. */
    void addLatest(long from, long newEnd, byte[] value) {
        if (isMoment() && end == from) {
            versions.clear();
        } else if (end != from && !isMoment()) {
            versions.add(0, new Version(end, null));
        }
        versions.add(0, new Version(from, value));
        end = newEnd;
    }

    /** Adds a version before all others. */
    void addEarliest(long from, byte[] value) {
        if (isMoment()) {
            versions.clear();
        }
        versions.add(new Version(from, value));
    }

    /** Adds a version that ends when the one at an index ended; that one ends when it begins. */
    void split(int index, long from, byte[] value) {
        versions.add(index, new Version(from, value));
    }

    /** Puts a version in the place of another. */
    void replace(int index, long from, byte[] value) {
        versions.set(index, new Version(from, value));
    }
}
