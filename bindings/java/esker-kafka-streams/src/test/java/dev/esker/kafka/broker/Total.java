package dev.esker.kafka.broker;

import java.nio.ByteBuffer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** How many amounts there were, and their sum. */
record Total(long count, long sum) {
    static final Total NONE = new Total(0, 0);

    static final Serde<Total> SERDE =
            Serdes.serdeFrom(
                    (topic, total) -> total == null ? null : total.bytes(),
                    (topic, bytes) -> bytes == null ? null : of(bytes));

    Total plus(long amount) {
        return new Total(count + 1, sum + amount);
    }

    Total plus(Total other) {
        return new Total(count + other.count, sum + other.sum);
    }

    byte[] bytes() {
        return ByteBuffer.allocate(16).putLong(count).putLong(sum).array();
    }

    static Total of(byte[] bytes) {
        return of(bytes, 0);
    }

    /** Reads one that begins behind so many bytes. */
    static Total of(byte[] bytes, int skipped) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes, skipped, bytes.length - skipped);
        Total total = new Total(buffer.getLong(), buffer.getLong());
        if (buffer.hasRemaining()) {
            throw new IllegalArgumentException(bytes.length + " bytes are no total behind " + skipped);
        }
        return total;
    }
}
