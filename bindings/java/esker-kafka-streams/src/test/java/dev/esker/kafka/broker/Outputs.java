package dev.esker.kafka.broker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * What the application has written and committed, read as it comes. Every record is checked when it comes: under
 * exactly-once the count of a key only grows, and each total is one that the input leads to.
 */
final class Outputs implements AutoCloseable {
    private static final Duration A_WHILE = Duration.ofMillis(200);

    private final Feed feed;
    private final boolean exactlyOnce;
    private final String address;
    private final Consumer<String, Total> consumer;
    private final List<TopicPartition> partitions = new ArrayList<>();
    private final Map<String, Map<String, Total>> last = new HashMap<>();
    private long counted;

    Outputs(String address, Feed feed, boolean exactlyOnce) {
        this.feed = feed;
        this.address = address;
        this.exactlyOnce = exactlyOnce;
        consumer = consumer("read_committed");
        for (String store : Names.STORES) {
            last.put(store, new TreeMap<>());
            for (int partition = 0; partition < Names.PARTITIONS; partition++) {
                partitions.add(new TopicPartition(store + Names.OUT, partition));
            }
        }
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
    }

    private Consumer<String, Total> consumer(String isolation) {
        return new KafkaConsumer<>(
                Map.of(
                        ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, address,
                        ConsumerConfig.ISOLATION_LEVEL_CONFIG, isolation,
                        ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false"),
                new StringDeserializer(),
                Total.SERDE.deserializer());
    }

    /** Waits a while for what comes. */
    void read() {
        for (ConsumerRecord<String, Total> record : consumer.poll(A_WHILE)) {
            String topic = record.topic();
            take(topic.substring(0, topic.length() - Names.OUT.length()), record.key(), record.value());
        }
    }

    private void take(String store, String key, Total total) {
        Map<String, Total> all = last.get(store);
        if (total == null) {
            all.remove(key);
            return;
        }
        Total before = all.put(key, total);
        if (store.equals("totals")) {
            counted += total.count() - (before == null ? 0 : before.count());
        }
        if (exactlyOnce && !store.equals("sessions")) {
            if (before != null && before.count() >= total.count()) {
                throw new AssertionError(store + ": " + key + " has " + total + " behind " + before);
            }
            if (!store.equals("groups") && !feed.isOnTheWay(store, key, total)) {
                throw new AssertionError(store + ": " + key + " has " + total + ", which the input does not lead to");
            }
        }
    }

    /** Of how many records of the input the totals are seen. */
    long counted() {
        return counted;
    }

    /** Whether what the last records of the input lead to has come. */
    boolean markersSeen() {
        for (int partition = 0; partition < Names.PARTITIONS; partition++) {
            String marker = Names.marker(partition);
            if (!last.get("totals").containsKey(marker)) {
                return false;
            }
            for (int to = 0; to < Names.PARTITIONS; to++) {
                if (!last.get("groups").containsKey(Names.groupMarker(marker, to))) {
                    return false;
                }
            }
        }
        return true;
    }

    /** Reads all that was written; waits for the ends of transactions. To be called when nobody writes any more. */
    void readToEnd() {
        Map<TopicPartition, Long> ends;
        try (Consumer<String, Total> uncommitted = consumer("read_uncommitted")) {
            ends = uncommitted.endOffsets(partitions);
        }
        while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
            read();
        }
    }

    /** The last total of each key, by the name of the store. */
    Map<String, Map<String, Total>> last() {
        return last;
    }

    @Override
    public void close() {
        consumer.close();
    }
}
