package dev.esker.kafka.broker;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The input, made from a seed, and what has to come out of it. */
final class Feed implements AutoCloseable {
    private static final int KEYS = 200;
    private static final long STEP_MILLISECONDS = 20;
    private static final long HOUR = 3_600_000;

    private final Random random;
    private final Producer<String, Long> producer;
    private final List<Future<RecordMetadata>> pending = new ArrayList<>();
    private long time;
    private long sent;

    /** All totals that each key went through, in order. */
    private final Map<String, List<Total>> totals = new HashMap<>();

    private final Map<String, List<Total>> groups = new HashMap<>();
    private final Map<String, List<Total>> windows = new HashMap<>();
    private final Map<String, Total> closedSessions = new TreeMap<>();
    private final Map<String, Session> openSessions = new HashMap<>();

    private record Session(long start, long end, Total total) {}

    Feed(String address, long seed) {
        random = new Random(seed);
        // Not long ago, so that the broker keeps it, and never in the future, which it would refuse.
        time = (System.currentTimeMillis() / HOUR - 12) * HOUR;
        producer =
                new KafkaProducer<>(
                        Map.of(
                                ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, address,
                                ProducerConfig.MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION, "1",
                                ProducerConfig.LINGER_MS_CONFIG, "5"),
                        new StringSerializer(),
                        new LongSerializer());
    }

    /** Sends so many records. */
    void send(int count) throws ExecutionException, InterruptedException {
        for (int i = 0; i < count; i++) {
            String key = "key-" + random.nextInt(KEYS);
            send(Names.partition(key), key, 1 + random.nextInt(1000));
        }
        settle();
    }

    /** Sends the last record of each partition. */
    void sendMarkers() throws ExecutionException, InterruptedException {
        for (int partition = 0; partition < Names.PARTITIONS; partition++) {
            send(partition, Names.marker(partition), 1);
        }
        settle();
    }

    private void settle() throws ExecutionException, InterruptedException {
        producer.flush();
        for (Future<RecordMetadata> one : pending) {
            one.get();
        }
        pending.clear();
    }

    private void send(int partition, String key, long amount) {
        time += STEP_MILLISECONDS;
        pending.add(producer.send(new ProducerRecord<>(Names.INPUT, partition, time, key, amount)));
        sent++;
        add(totals, key, amount);
        add(windows, key + "@" + time / Names.WINDOW.toMillis() * Names.WINDOW.toMillis(), amount);
        if (Names.isMarker(key)) {
            for (int to = 0; to < Names.PARTITIONS; to++) {
                add(groups, Names.groupMarker(key, to), amount);
            }
        } else {
            add(groups, Names.group(amount), amount);
        }
        Session session = openSessions.get(key);
        if (session != null && time - session.end > Names.SESSION_GAP.toMillis()) {
            closedSessions.put(name(key, session), session.total);
            session = null;
        }
        openSessions.put(
                key,
                session == null
                        ? new Session(time, time, Total.NONE.plus(amount))
                        : new Session(session.start, time, session.total.plus(amount)));
    }

    private static void add(Map<String, List<Total>> all, String key, long amount) {
        List<Total> history = all.computeIfAbsent(key, absent -> new ArrayList<>(List.of(Total.NONE)));
        history.add(history.get(history.size() - 1).plus(amount));
    }

    private static String name(String key, Session session) {
        return key + "@" + session.start + "-" + session.end;
    }

    long sent() {
        return sent;
    }

    /** Where the time of the input is. */
    long time() {
        return time;
    }

    /** Whether a total is one that the key goes through; those of groups depend on an order that is not known. */
    boolean isOnTheWay(String store, String key, Total total) {
        Map<String, List<Total>> all = store.equals("totals") ? totals : windows;
        List<Total> history = all.get(key);
        return history != null
                && total.count() > 0
                && total.count() < history.size()
                && history.get((int) total.count()).equals(total);
    }

    /** What is left in the end, by the name of the store. */
    Map<String, Map<String, Total>> expected() {
        Map<String, Total> sessions = new TreeMap<>(closedSessions);
        openSessions.forEach((key, session) -> sessions.put(name(key, session), session.total));
        return Map.of(
                "totals", last(totals), "windows", last(windows), "groups", last(groups), "sessions", sessions);
    }

    private static Map<String, Total> last(Map<String, List<Total>> all) {
        Map<String, Total> last = new TreeMap<>();
        all.forEach((key, history) -> last.put(key, history.get(history.size() - 1)));
        return last;
    }

    @Override
    public void close() {
        producer.close();
    }
}
