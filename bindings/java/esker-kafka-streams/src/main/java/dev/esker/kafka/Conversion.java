package dev.esker.kafka;

import dev.esker.Batch;
import dev.esker.Keyspace;
import java.nio.ByteBuffer;
import java.util.Map;

/**
 * How the entries of a store become those of one that was made with other parameters: when an application goes
 * over to values with timestamps or headers, or keeps windows longer.
 */
@FunctionalInterface
interface Conversion {
    /** Adds what an entry becomes to a batch, for the new keyspace. */
    void convert(Batch batch, Keyspace to, byte[] key, byte[] value);

    /** What a value is preceded by. */
    enum Format {
        PLAIN,
        TIMESTAMPED,
        HEADERS;

        /** Headers of which there are none: their length. */
        private static final byte[] NO_HEADERS = {0};

        private static final byte[] NO_TIMESTAMP =
                ByteBuffer.allocate(Long.BYTES).putLong(-1).array();

        private static final byte[] NEITHER =
                ByteBuffer.allocate(1 + Long.BYTES).put(NO_HEADERS).put(NO_TIMESTAMP).array();

        private static final Map<Format, Map<Format, byte[]>> PREFIXES = Map.of(
                PLAIN, Map.of(PLAIN, new byte[0], TIMESTAMPED, NO_TIMESTAMP, HEADERS, NEITHER),
                TIMESTAMPED, Map.of(TIMESTAMPED, new byte[0], HEADERS, NO_HEADERS),
                HEADERS, Map.of(HEADERS, new byte[0]));

        /** What comes before each value of a store that was of another format, or null if it has too much. */
        byte[] prefixFrom(Format was) {
            return PREFIXES.get(was).get(this);
        }
    }

    /** A value with a prefix. */
    static byte[] join(byte[] prefix, byte[] value) {
        return ByteBuffer.allocate(prefix.length + value.length).put(prefix).put(value).array();
    }
}
