package dev.esker;

import java.util.Comparator;

/**
 * An order of keys other than byte order. Keyspaces store its name: give the same comparator whenever they
 * are opened, by {@link Options#comparator} or {@link KeyspaceOptions#comparator}.
 *
 * <p>It must be a total order that never changes for its name. Many threads call it at once, also threads
 * of the engine, and it must not call the database. Each comparison copies two keys and calls Java, so this
 * is slow: encode keys so that byte order is the order wanted, where you can.
 *
 * <p>It must not throw. If it does, byte order is the answer, the exception is reported as {@link Options}
 * says, and every later call on a keyspace with this comparator throws an exception with
 * {@link ErrorCode#USER_CODE_FAILED}: the keys that were being written may lie at a wrong place.
 */
public interface KeyComparator extends Comparator<byte[]> {
    /**
     * The name that keyspaces store, of 1 to 255 bytes of UTF-8.
     *
     * @return the name
     */
    String name();

    @Override
    int compare(byte[] a, byte[] b);
}
