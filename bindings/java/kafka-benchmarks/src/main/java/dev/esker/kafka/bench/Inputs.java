package dev.esker.kafka.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The topics that applications read, filled before anything is measured. */
final class Inputs implements AutoCloseable {
    static final int KEY_BYTES = 16;
    static final int WORDS_OF_A_LINE = 5;

    /** How far the time of the input goes between two records of the windowed count. */
    private static final long STEP_MILLISECONDS = 2;

    private final Producer<byte[], byte[]> producer;
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private final SplittableRandom random = new SplittableRandom(20);
    private final long begin;

    Inputs(String address) {
        begin = System.currentTimeMillis() - 12 * 3_600_000L;
        producer =
                new KafkaProducer<>(
                        Map.of(
                                ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, address,
                                ProducerConfig.ACKS_CONFIG, "all",
                                ProducerConfig.BATCH_SIZE_CONFIG, "262144",
                                ProducerConfig.LINGER_MS_CONFIG, "20",
                                ProducerConfig.BUFFER_MEMORY_CONFIG, "67108864"),
                        new ByteArraySerializer(),
                        new ByteArraySerializer());
    }

    /** The bytes of a key; numbers that follow each other do not lie beside each other. */
    static byte[] key(long number) {
        return ByteBuffer.allocate(KEY_BYTES).putLong(number * 0x9E3779B97F4A7C15L).putLong(number).array();
    }

    /** Lines of words, each word one of so many. */
    void lines(String topic, long words, long keys) throws Exception {
        StringBuilder line = new StringBuilder();
        for (long i = 0; i < words; i += WORDS_OF_A_LINE) {
            line.setLength(0);
            for (int word = 0; word < WORDS_OF_A_LINE; word++) {
                line.append(word == 0 ? "" : " ").append("word-").append(Long.toHexString(random.nextLong(keys) * 0x9E3779B1L));
            }
            send(topic, null, null, line.toString().getBytes(UTF_8));
        }
        settle();
    }

    /** Records of random keys, with the time that a windowed count goes by. */
    void events(String topic, long records, long keys, int value) throws Exception {
        for (long i = 0; i < records; i++) {
            send(topic, begin + i * STEP_MILLISECONDS, key(random.nextLong(keys)), value(value));
        }
        settle();
    }

    /** One record of each key, in a random order. */
    void table(String topic, long keys, int value) throws Exception {
        for (long i = 0; i < keys; i++) {
            send(topic, begin - 3_600_000L, key(i), value(value));
        }
        settle();
    }

    /** Half of it random, so that compression has something to do, and not everything. */
    private byte[] value(int length) {
        byte[] value = new byte[length];
        for (int i = 0; i < length / 2; i += 8) {
            long bits = random.nextLong();
            for (int j = i; j < Math.min(i + 8, length / 2); j++) {
                value[j] = (byte) bits;
                bits >>>= 8;
            }
        }
        return value;
    }

    private void send(String topic, Long time, byte[] key, byte[] value) throws Exception {
        producer.send(
                new ProducerRecord<>(topic, null, time, key, value),
                (sent, failed) -> {
                    if (failed != null) {
                        failure.compareAndSet(null, failed);
                    }
                });
        if (failure.get() != null) {
            throw failure.get();
        }
    }

    private void settle() throws Exception {
        producer.flush();
        if (failure.get() != null) {
            throw failure.get();
        }
    }

    @Override
    public void close() {
        producer.close();
    }
}
