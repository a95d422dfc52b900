package dev.esker.kafka;

import static dev.esker.kafka.Support.again;
import static java.time.Duration.ofMillis;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.BytesSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Random calls on Esker's stores and on RocksDB's: the answers are the same, byte for byte. */
class StoreCallsTest {
    private static final int ROUNDS = Support.LONG ? 60 : 3;
    private static final int CALLS = Support.LONG ? 4_000 : 1_500;

    private static final List<byte[]> KEYS = new ArrayList<>();

    /**
     * Keys of stores with times. None is another one with a 0 behind it: of such keys, a range of RocksDB's stores
     * leaves some out whose times come behind the bound.
     */
    private static final List<byte[]> TIMED = new ArrayList<>();

    private static List<byte[]> keys = KEYS;

    static {
        TIMED.add(new byte[0]);
        for (int a : new int[] {1, 0x41, 0x7f, 0x80, 0xff}) {
            TIMED.add(new byte[] {(byte) a});
            for (int b : new int[] {1, 0x7f, 0xff}) {
                TIMED.add(new byte[] {(byte) a, (byte) b});
            }
        }
        KEYS.add(new byte[0]);
        for (int a : new int[] {0, 1, 0x7f, 0x80, 0xff}) {
            KEYS.add(new byte[] {(byte) a});
            for (int b : new int[] {0, 0x41, 0xff}) {
                KEYS.add(new byte[] {(byte) a, (byte) b});
                KEYS.add(new byte[] {(byte) a, (byte) b, 0, 0, 0, 0, 0, 0, 0, 1});
            }
        }
    }

    /** How long most of the stores keep entries, in milliseconds. */
    private static final int RETENTION = 200_000;

    @TempDir
    Path directory;

    private static Bytes key(Random random) {
        Bytes key = Bytes.wrap(keys.get(random.nextInt(keys.size())));
        Pair.said += " " + Pair.text(key);
        return key;
    }

    /** The number of the kind of call that comes next. */
    private static int kind(Random random, int kinds) {
        int kind = random.nextInt(kinds);
        Pair.said += " " + StackWalker.getInstance().walk(frames -> frames.skip(1).findFirst().orElseThrow())
                .getMethodName() + " " + kind + ":";
        return kind;
    }

    private static Bytes bound(Random random) {
        return random.nextInt(4) == 0 ? null : key(random);
    }

    private static byte[] value(Random random) {
        byte[] value = new byte[random.nextInt(20)];
        random.nextBytes(value);
        return value;
    }

    private static byte[] valueOrNull(Random random) {
        return random.nextInt(4) == 0 ? null : value(random);
    }

    private interface Round {
        void run(Path place, Random random, String again);
    }

    private void rounds(List<byte[]> used, Round round) {
        keys = used;
        long seed = Support.seed();
        System.out.println(again(seed));
        Random random = new Random(seed);
        for (int i = 0; i < ROUNDS; i++) {
            round.run(directory.resolve("round-" + i), random, again(seed));
        }
    }

    @Test
    void keyValueStores() {
        rounds(KEYS, (place, random, again) -> keyValue(
                place,
                random,
                again,
                () -> Stores.persistentKeyValueStore("s").get(),
                () -> EskerStores.persistentKeyValueStore("s").get()));
    }

    @Test
    void timestampedKeyValueStores() {
        rounds(KEYS, (place, random, again) -> keyValue(
                place,
                random,
                again,
                () -> Stores.persistentTimestampedKeyValueStore("s").get(),
                () -> EskerStores.persistentTimestampedKeyValueStore("s").get()));
    }

    @Test
    void keyValueStoresWithHeaders() {
        rounds(KEYS, (place, random, again) -> keyValue(
                place,
                random,
                again,
                () -> Stores.persistentTimestampedKeyValueStoreWithHeaders("s").get(),
                () -> EskerStores.persistentTimestampedKeyValueStoreWithHeaders("s").get()));
    }

    private void keyValue(
            Path place,
            Random random,
            String again,
            Supplier<KeyValueStore<Bytes, byte[]>> rocks,
            Supplier<KeyValueStore<Bytes, byte[]>> esker) {
        try (Pair<KeyValueStore<Bytes, byte[]>> pair = new Pair<>(place, rocks, esker, again)) {
            for (int i = 0; i < CALLS; i++) {
                pair.at(i);
                long seed = random.nextLong();
                switch (random.nextInt(24)) {
                    case 0 -> pair.commit(Map.of(Pair.CHANGELOG, (long) i));
                    case 1 -> pair.restore(records(random, KeyValueRecord.PLAIN));
                    case 2, 3 -> pair.step(random);
                    case 4 -> pair.keep("range " + seed, store -> keyValueRange(store, new Random(seed)));
                    case 5 -> {
                        if (random.nextInt(20) == 0) {
                            pair.reopen(random, StoreCallsTest::keyValueCall);
                        }
                    }
                    case 6 -> {
                        if (random.nextInt(10) == 0) {
                            pair.commit(Map.of());
                        }
                    }
                    default -> pair.call("call " + seed, store -> keyValueCall(store, new Random(seed)));
                }
            }
        }
    }

    private static java.util.Iterator<?> keyValueRange(KeyValueStore<Bytes, byte[]> store, Random random) {
        return switch (kind(random, 5)) {
            case 0 -> store.range(bound(random), bound(random));
            case 1 -> store.reverseRange(bound(random), bound(random));
            case 2 -> store.all();
            case 3 -> store.reverseAll();
            default -> {
                Bytes prefix = key(random);
                byte[] bytes = prefix.get();
                // Behind a prefix that ends with 0xff, RocksDB's store goes on to keys without it.
                boolean compared = bytes.length == 0 || bytes[bytes.length - 1] != (byte) 0xff;
                yield compared ? store.prefixScan(prefix, new BytesSerializer()) : store.range(prefix, prefix);
            }
        };
    }

    private static Object keyValueCall(KeyValueStore<Bytes, byte[]> store, Random random) {
        switch (kind(random, 10)) {
            case 0, 1, 2:
                store.put(key(random), valueOrNull(random));
                return null;
            case 3:
                return store.putIfAbsent(key(random), valueOrNull(random));
            case 4:
                List<KeyValue<Bytes, byte[]>> entries = new ArrayList<>();
                for (int i = random.nextInt(6); i > 0; i--) {
                    entries.add(KeyValue.pair(key(random), valueOrNull(random)));
                }
                if (random.nextInt(8) == 0) {
                    entries.add(KeyValue.pair(null, value(random)));
                }
                store.putAll(entries);
                return null;
            case 5:
                return store.delete(key(random));
            case 6:
                return store.get(key(random));
            case 7:
                return query(store, random);
            default:
                return keyValueRange(store, random);
        }
    }

    private static Object query(KeyValueStore<Bytes, byte[]> store, Random random) {
        if (!store.isOpen()) {
            return null;
        }
        if (random.nextBoolean()) {
            var result = store.query(
                    KeyQuery.<Bytes, byte[]>withKey(key(random)), PositionBound.unbounded(), new QueryConfig(false));
            return result.isSuccess() ? result.getResult() : result.getFailureReason();
        }
        var result = store.query(
                RangeQuery.<Bytes, byte[]>withRange(bound(random), bound(random)),
                PositionBound.unbounded(),
                new QueryConfig(false));
        return result.isSuccess() ? result.getResult() : result.getFailureReason();
    }

    private enum KeyValueRecord { PLAIN, WINDOW, SESSION }

    private static List<ConsumerRecord<byte[], byte[]>> records(Random random, KeyValueRecord kind) {
        return records(random, kind, 0);
    }

    private static List<ConsumerRecord<byte[], byte[]>> records(Random random, KeyValueRecord kind, long now) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = random.nextInt(12); i > 0; i--) {
            byte[] key = key(random).get();
            long time = time(random, now);
            byte[] whole = switch (kind) {
                case PLAIN -> key;
                case WINDOW -> ByteBuffer.allocate(key.length + 12).put(key).putLong(time).putInt(0).array();
                case SESSION -> ByteBuffer.allocate(key.length + 16)
                        .put(key)
                        .putLong(time)
                        .putLong(Math.max(0, time - random.nextInt(50_000)))
                        .array();
            };
            records.add(Support.record(i, time, whole, valueOrNull(random)));
        }
        return records;
    }

    /** A time around now: often the same ones, some that are too late, and some at the edge of that. */
    private static long time(Random random, long now) {
        long time = switch (random.nextInt(8)) {
            case 0 -> now;
            case 1 -> now - RETENTION + random.nextInt(4) - 1;
            case 2 -> now - random.nextInt(400_000);
            default -> (now - random.nextInt(60_000)) / 5_000 * 5_000;
        };
        time = Math.max(0, time);
        Pair.said += " @" + time;
        return time;
    }

    @Test
    void windowStores() {
        rounds(TIMED, (place, random, again) -> {
            boolean duplicates = random.nextBoolean();
            window(
                    place,
                    random,
                    again,
                    () -> Stores.persistentWindowStore("s", ofMillis(RETENTION), ofMillis(5_000), duplicates).get(),
                    () -> EskerStores.persistentWindowStore("s", ofMillis(RETENTION), ofMillis(5_000), duplicates).get());
        });
    }

    @Test
    void timestampedWindowStores() {
        rounds(TIMED, (place, random, again) -> window(
                place,
                random,
                again,
                () -> Stores.persistentTimestampedWindowStore("s", ofMillis(RETENTION), ofMillis(5_000), false).get(),
                () -> EskerStores.persistentTimestampedWindowStore("s", ofMillis(RETENTION), ofMillis(5_000), false)
                        .get()));
    }

    private void window(
            Path place,
            Random random,
            String again,
            Supplier<WindowStore<Bytes, byte[]>> rocks,
            Supplier<WindowStore<Bytes, byte[]>> esker) {
        try (Pair<WindowStore<Bytes, byte[]>> pair = new Pair<>(place, rocks, esker, again)) {
            // Without any entry, RocksDB's store keeps no offset.
            pair.call("first", store -> {
                store.put(Bytes.wrap(new byte[0]), new byte[0], 0);
                return null;
            });
            timed(pair, random, KeyValueRecord.WINDOW, StoreCallsTest::windowRange, StoreCallsTest::windowCall);
        }
    }

    /** What a test calls of a store: with random numbers, and the time of the record. */
    private interface Calls<S, R> {
        R make(S store, Random random, long now);
    }

    /** Random calls of a store that keeps entries with times. */
    private static <S extends StateStore> void timed(
            Pair<S> pair,
            Random random,
            KeyValueRecord kind,
            Calls<S, java.util.Iterator<?>> range,
            Calls<S, Object> call) {
        for (int i = 0; i < CALLS; i++) {
            long now = i * 300L;
            pair.at(now);
            long seed = random.nextLong();
            switch (random.nextInt(24)) {
                case 0 -> pair.commit(Map.of(Pair.CHANGELOG, (long) i));
                case 1 -> pair.restore(records(random, kind, now));
                case 2, 3 -> pair.step(random);
                case 4 -> pair.keep("range " + seed, store -> range.make(store, new Random(seed), now));
                case 5 -> {
                    if (random.nextInt(20) == 0) {
                        // Bounds of time are those that the store has seen since it was opened.
                        pair.reopen(random, (store, any) -> null);
                    }
                }
                default -> pair.call("call " + seed, store -> call.make(store, new Random(seed), now));
            }
        }
    }

    private static java.util.Iterator<?> windowRange(WindowStore<Bytes, byte[]> store, Random random, long now) {
        long from = random.nextInt(10) == 0 ? -5 : time(random, now);
        long to = random.nextInt(10) == 0 ? Long.MAX_VALUE : from + random.nextInt(100_000) - 1_000;
        return switch (kind(random, 8)) {
            case 0 -> store.fetch(key(random), from, to);
            case 1 -> store.backwardFetch(key(random), from, to);
            case 2 -> store.fetch(bound(random), bound(random), from, to);
            case 3 -> store.backwardFetch(bound(random), bound(random), from, to);
            case 4 -> store.all();
            case 5 -> store.backwardAll();
            case 6 -> store.fetchAll(from, to);
            default -> store.backwardFetchAll(from, to);
        };
    }

    private static Object windowCall(WindowStore<Bytes, byte[]> store, Random random, long now) {
        return switch (kind(random, 6)) {
            case 0, 1, 2 -> {
                store.put(key(random), valueOrNull(random), time(random, now));
                yield null;
            }
            case 3 -> store.fetch(key(random), time(random, now));
            default -> windowRange(store, random, now);
        };
    }

    @Test
    void sessionStores() {
        rounds(TIMED, (place, random, again) -> {
            try (Pair<SessionStore<Bytes, byte[]>> pair = new Pair<>(
                    place,
                    () -> Stores.persistentSessionStore("s", ofMillis(RETENTION)).get(),
                    () -> EskerStores.persistentSessionStore("s", ofMillis(RETENTION)).get(),
                    again)) {
                session(pair, random);
            }
        });
    }

    private void session(Pair<SessionStore<Bytes, byte[]>> pair, Random random) {
        // Without any entry, RocksDB's store keeps no offset.
        pair.call("first", store -> {
            store.put(new Windowed<>(Bytes.wrap(new byte[0]), new SessionWindow(0, 0)), new byte[0]);
            return null;
        });
        timed(pair, random, KeyValueRecord.SESSION, StoreCallsTest::sessionRange, StoreCallsTest::sessionCall);
    }

    private static java.util.Iterator<?> sessionRange(SessionStore<Bytes, byte[]> store, Random random, long now) {
        long from = time(random, now);
        long to = Math.max(0, from + random.nextInt(100_000) - 20_000);
        return switch (kind(random, 8)) {
            case 0 -> store.findSessions(key(random), from, to);
            case 1 -> store.backwardFindSessions(key(random), from, to);
            case 2 -> store.findSessions(bound(random), bound(random), from, to);
            case 3 -> store.backwardFindSessions(bound(random), bound(random), from, to);
            case 4 -> store.fetch(key(random));
            case 5 -> store.backwardFetch(key(random));
            case 6 -> store.fetch(bound(random), bound(random));
            default -> store.backwardFetch(bound(random), bound(random));
        };
    }

    private static Windowed<Bytes> session(Random random, long now) {
        long end = time(random, now);
        return new Windowed<>(key(random), new SessionWindow(Math.max(0, end - random.nextInt(4) * 10_000), end));
    }

    private static Object sessionCall(SessionStore<Bytes, byte[]> store, Random random, long now) {
        Windowed<Bytes> session = session(random, now);
        return switch (kind(random, 7)) {
            case 0, 1, 2 -> {
                store.put(session, valueOrNull(random));
                yield null;
            }
            case 3 -> {
                store.remove(session);
                yield null;
            }
            case 4 -> store.fetchSession(session.key(), session.window().start(), session.window().end());
            default -> sessionRange(store, random, now);
        };
    }

    /** Without closing: RocksDB's store does not find the versions before the latest ones when it is opened again. */
    @Test
    void versionedStores() {
        rounds(KEYS, (place, random, again) -> {
            try (Pair<VersionedBytesStore> pair = new Pair<>(
                    place,
                    () -> (VersionedBytesStore) Stores.persistentVersionedKeyValueStore(
                                    "s", ofMillis(RETENTION), ofMillis(19_000))
                            .get(),
                    () -> (VersionedBytesStore) EskerStores.persistentVersionedKeyValueStore(
                                    "s", ofMillis(RETENTION), ofMillis(19_000))
                            .get(),
                    again)) {
                versioned(pair, random);
            }
        });
    }

    private void versioned(Pair<VersionedBytesStore> pair, Random random) {
        for (int i = 0; i < CALLS; i++) {
            long now = i * 500L;
            pair.at(now);
            long seed = random.nextLong();
            switch (random.nextInt(24)) {
                case 0 -> pair.commit(Map.of(Pair.CHANGELOG, (long) i));
                case 1 -> pair.restore(records(random, KeyValueRecord.PLAIN, now));
                default -> pair.call("call " + seed, store -> versionedCall(store, new Random(seed), now));
            }
        }
    }

    private static Object versionedCall(VersionedBytesStore store, Random random, long now) {
        Bytes key = key(random);
        long time = time(random, now);
        return switch (kind(random, 8)) {
            case 0, 1, 2 -> store.put(key, valueOrNull(random), time);
            case 3 -> store.delete(key, time);
            case 4 -> store.get(key);
            default -> store.get(key, time);
        };
    }
}
