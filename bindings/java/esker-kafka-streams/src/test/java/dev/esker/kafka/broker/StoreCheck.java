package dev.esker.kafka.broker;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.esker.Cursor;
import dev.esker.Database;
import dev.esker.Keyspace;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Looks into a copy of the database that an instance has left, beside the changelogs at the broker. What a store holds is
 * compared with a replay of its changelog up to the offset that the store has committed:
 *
 * <ul>
 *   <li>After a kill the store may be ahead of its offset, never behind: each count is at least that of the replay. Under
 *       exactly-once each total is, besides, one that the input leads to, so no write is half there.
 *   <li>After an orderly stop both are equal, but for sessions that were killed under at-least-once.
 * </ul>
 */
final class StoreCheck implements AutoCloseable {
    private static final Duration A_WHILE = Duration.ofMillis(200);
    private static final String DIRECTORY = "stores";
    private static final String MARKER = "esker store 1 ";
    private static final int TIME = Long.BYTES;

    private final Path application;
    private final Path copy;
    private final String address;
    private final Feed feed;
    private final Database database;

    private int offsets;
    private long entries;
    private long replayed;
    private long ahead;

    /** Where an entry of a store belongs: the key of the record, and the times of its window or session. */
    private record Place(String key, long start, long end) implements Comparable<Place> {
        @Override
        public int compareTo(Place other) {
            return Comparator.comparing(Place::key)
                    .thenComparing(Place::start)
                    .thenComparing(Place::end)
                    .compare(this, other);
        }

        /** The key of the output. */
        String name() {
            return start < 0 ? key : key + "@" + start;
        }
    }

    /** One store of one task: what it holds, and what its changelog says up to its offset. */
    private record Pair(String store, String task, Map<Place, Total> held, Map<Place, Total> replayed) {}

    StoreCheck(Path state, Path copy, Broker broker, Feed feed) throws IOException {
        application = state.resolve(Names.APPLICATION);
        this.copy = copy;
        this.feed = feed;
        address = broker.address();
        Trees.copy(application.resolve("esker"), copy);
        database = Database.open(copy);
    }

    /** Checks what a killed instance has left; says how much that was. */
    String afterKill(boolean exactlyOnce, boolean cached) {
        for (Pair pair : pairs()) {
            Set<String> behind = new HashSet<>();
            live(pair, pair.replayed).forEach(
                    (place, total) -> {
                        Total held = pair.store.equals("sessions") ? covering(pair, place) : pair.held.get(place);
                        if (held == null || held.count() < total.count()) {
                            behind.add(place.key);
                            require(pair.store.equals("sessions"), pair, place + " is " + held + ", and " + total + " at the offset");
                        } else if (held.count() > total.count()) {
                            ahead++;
                        }
                    });
            // A session that grows is removed and put again, by two calls: a cache may write others between them.
            require(cached || behind.isEmpty(), pair, "sessions of the keys " + behind + " are missing");
            if (exactlyOnce && (pair.store.equals("totals") || pair.store.equals("windows"))) {
                pair.held.forEach(
                        (place, total) ->
                                require(
                                        feed.isOnTheWay(pair.store, place.name(), total),
                                        pair,
                                        place + " is " + total + ", which the input does not lead to"));
            }
        }
        return said();
    }

    /** Checks what an instance has left that was stopped in order. */
    String afterStop(boolean exactlyOnce) {
        for (Pair pair : pairs()) {
            if (!exactlyOnce && pair.store.equals("sessions")) {
                // A session that a killed instance has put or removed may be unknown to the changelog: who takes the records
                // again may find other sessions. Other stores write the same keys again.
                continue;
            }
            Map<Place, Total> held = live(pair, pair.held);
            Map<Place, Total> replayed = live(pair, pair.replayed);
            Set<Map.Entry<Place, Total>> more = new HashSet<>(held.entrySet());
            more.removeAll(replayed.entrySet());
            Set<Map.Entry<Place, Total>> less = new HashSet<>(replayed.entrySet());
            less.removeAll(held.entrySet());
            require(more.isEmpty() && less.isEmpty(), pair, "only in the store: " + more + ", only in the changelog: " + less);
        }
        return said();
    }

    private String said() {
        return entries + " entries in " + offsets + " stores with offsets; " + replayed + " up to these, of which " + ahead
                + " are ahead";
    }

    /** How many entries replays had, with which stores were compared. */
    long compared() {
        return replayed;
    }

    private static void require(boolean holds, Pair pair, String otherwise) {
        if (!holds) {
            throw new AssertionError("store " + pair.store + " of " + pair.task + ": " + otherwise);
        }
    }

    /** What is not older than the retention allows. */
    private static Map<Place, Total> live(Pair pair, Map<Place, Total> all) {
        long latest =
                Stream.concat(pair.held.keySet().stream(), pair.replayed.keySet().stream())
                        .mapToLong(place -> time(pair, place))
                        .max()
                        .orElse(0);
        Map<Place, Total> live = new TreeMap<>(all);
        live.keySet().removeIf(place -> time(pair, place) < latest - Names.WINDOW_RETENTION.toMillis());
        return live;
    }

    private static long time(Pair pair, Place place) {
        return pair.store.equals("sessions") ? place.end : place.start;
    }

    private static Total covering(Pair pair, Place session) {
        return pair.held.entrySet().stream()
                .filter(
                        held ->
                                held.getKey().key.equals(session.key)
                                        && held.getKey().start <= session.start
                                        && held.getKey().end >= session.end)
                .map(Map.Entry::getValue)
                .findFirst()
                .orElse(null);
    }

    /** All stores that the directories of tasks name, and that have an offset. */
    private List<Pair> pairs() {
        List<Pair> pairs = new ArrayList<>();
        try (Keyspace directory = database.keyspace(DIRECTORY)) {
            Map<String, String> paths = new TreeMap<>();
            Map<String, Map.Entry<TopicPartition, Long>> committed = new TreeMap<>();
            try (Cursor cursor = directory.cursor()) {
                while (cursor.next()) {
                    String[] parts = new String(cursor.key(), UTF_8).split("\0", 2);
                    if (parts[1].equals("path")) {
                        paths.put(parts[0], new String(cursor.value(), UTF_8));
                    } else if (parts[1].startsWith("offset ")) {
                        committed.put(parts[0], offset(parts[1].substring("offset ".length()), cursor.value()));
                    }
                }
            }
            for (Map.Entry<String, Map.Entry<TopicPartition, Long>> one : committed.entrySet()) {
                String path = paths.get(one.getKey());
                if (isNamed(path, one.getKey())) {
                    pairs.add(pair(path, one.getKey(), one.getValue().getKey(), one.getValue().getValue()));
                }
            }
        }
        return pairs;
    }

    private static Map.Entry<TopicPartition, Long> offset(String partition, byte[] value) {
        int dash = partition.lastIndexOf('-');
        TopicPartition changelog =
                new TopicPartition(partition.substring(0, dash), Integer.parseInt(partition.substring(dash + 1)));
        return Map.entry(changelog, ByteBuffer.wrap(value).getLong());
    }

    /** Whether the file of the store names this keyspace; otherwise the state is given up. */
    private boolean isNamed(String path, String keyspace) {
        Path marker = application.resolve(path);
        try {
            return Files.exists(marker) && Files.readString(marker).equals(MARKER + keyspace + "\n");
        } catch (IOException failure) {
            throw new AssertionError(failure);
        }
    }

    private Pair pair(String path, String keyspace, TopicPartition changelog, long offset) {
        String store = path.substring(path.lastIndexOf('/') + 1);
        if (!changelog.topic().equals(Names.changelog(store))) {
            throw new AssertionError("the store " + path + " has an offset of " + changelog);
        }
        Map<Place, Total> held = new TreeMap<>();
        try (Keyspace of = database.keyspace(keyspace); Cursor cursor = of.cursor()) {
            while (cursor.next()) {
                held.put(
                        place(store, cursor.key(), isSegmented(store) ? TIME : 0),
                        Total.of(cursor.value(), store.equals("sessions") ? 0 : TIME));
            }
        }
        offsets++;
        entries += held.size();
        Map<Place, Total> upToOffset = replay(store, changelog, offset);
        replayed += upToOffset.size();
        return new Pair(store, path, held, upToOffset);
    }

    private static boolean isSegmented(String store) {
        return store.equals("windows") || store.equals("sessions");
    }

    private static Place place(String store, byte[] key, int skipped) {
        ByteBuffer buffer = ByteBuffer.wrap(key);
        int end = key.length;
        return switch (store) {
            case "windows" -> {
                end -= Long.BYTES + Integer.BYTES;
                long start = buffer.getLong(end);
                yield new Place(text(key, skipped, end), start, start + Names.WINDOW.toMillis());
            }
            case "sessions" -> {
                end -= 2 * Long.BYTES;
                yield new Place(text(key, skipped, end), buffer.getLong(end + Long.BYTES), buffer.getLong(end));
            }
            default -> new Place(text(key, skipped, end), -1, -1);
        };
    }

    private static String text(byte[] bytes, int from, int to) {
        return new String(Arrays.copyOfRange(bytes, from, to), UTF_8);
    }

    /** What a changelog says up to an offset, and with it. */
    private Map<Place, Total> replay(String store, TopicPartition changelog, long offset) {
        Map<Place, Total> all = new TreeMap<>();
        Map<String, Object> settings =
                Map.of(
                        ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, address,
                        ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed",
                        ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        try (Consumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(changelog));
            consumer.seekToBeginning(List.of(changelog));
            while (consumer.position(changelog) <= offset) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(A_WHILE)) {
                    if (record.offset() > offset) {
                        break;
                    }
                    Place place = place(store, record.key(), 0);
                    if (record.value() == null) {
                        all.remove(place);
                    } else {
                        all.put(place, Total.of(record.value()));
                    }
                }
            }
        }
        return all;
    }

    @Override
    public void close() throws IOException {
        database.close();
        Trees.remove(copy);
    }
}
