package dev.esker.kafka;

import static dev.esker.kafka.Support.b;
import static dev.esker.kafka.Support.s;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import dev.esker.kafka.broker.Trees;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Kafka makes a session grow by two calls, a removal and a put. The end of the process between both leaves the old
 * session or the new one. What an end of the process leaves is what a copy of the directory has.
 */
class SessionRemovalTest {
    private static final Bytes KEY = Bytes.wrap(b("key"));
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    @TempDir
    Path directory;

    private SessionStore<Bytes, byte[]> store;
    private int copies;

    @BeforeEach
    void open() {
        store = open(directory.resolve("state"));
        store.put(session(0, 10), b("old"));
    }

    @AfterEach
    void close() {
        store.close();
    }

    private static SessionStore<Bytes, byte[]> open(Path state) {
        Support.Context task =
                new Support.Context(state.resolve("app").resolve("0_0"), new TaskId(0, 0), new Metrics());
        return task.open(EskerStores.persistentSessionStore("sessions", Duration.ofHours(1)).get());
    }

    private static Windowed<Bytes> session(long start, long end) {
        return new Windowed<>(KEY, new SessionWindow(start, end));
    }

    private static List<String> values(SessionStore<Bytes, byte[]> of) {
        List<String> values = new ArrayList<>();
        try (KeyValueIterator<Windowed<Bytes>, byte[]> found = of.fetch(KEY)) {
            found.forEachRemaining(entry -> values.add(s(entry.value)));
        }
        return values;
    }

    /** The values that a store has after the process has ended now. */
    private List<String> afterAnEnd() throws IOException {
        Path to = directory.resolve("copy-" + ++copies);
        Trees.copy(directory.resolve("state"), to);
        SessionStore<Bytes, byte[]> left = open(to);
        try {
            return values(left);
        } finally {
            left.close();
        }
    }

    @Test
    void noEndOfTheProcessComesBetweenARemovalAndAPut() throws Exception {
        store.remove(session(0, 10));
        assertEquals(List.of("old"), afterAnEnd());
        store.put(session(0, 20), b("new"));
        assertEquals(List.of("new"), afterAnEnd());
        assertEquals(List.of("new"), values(store));
    }

    @Test
    void whoRemovesASessionDoesNotSeeItAndOthersSeeOneOrTheOther() {
        store.remove(session(0, 10));
        assertEquals(List.of("old"), CompletableFuture.supplyAsync(() -> values(store)).join());
        assertNull(store.fetchSession(KEY, 0, 10));
        assertEquals(List.of(), CompletableFuture.supplyAsync(() -> values(store)).join());
        store.remove(session(0, 10));
        assertEquals(List.of(), values(store));
    }

    @Test
    void theSameSessionIsPutAgain() throws Exception {
        store.remove(session(0, 10));
        store.put(session(0, 10), b("again"));
        assertEquals(List.of("again"), afterAnEnd());
        assertEquals(List.of("again"), values(store));
    }

    @Test
    void aRemovalIsWrittenBeforeAnOffsetBehindIt() throws Exception {
        for (Consumer<SessionStore<Bytes, byte[]>> end :
                List.<Consumer<SessionStore<Bytes, byte[]>>>of(
                        of -> of.commit(Map.of(CHANGELOG, 7L)), SessionStore::close)) {
            store.put(session(0, 10), b("old"));
            store.remove(session(0, 10));
            end.accept(store);
            assertEquals(List.of(), afterAnEnd());
        }
    }

    @Test
    void manyRemovalsAreNotKeptBack() throws Exception {
        for (int i = 0; i < 2500; i++) {
            store.put(session(i * 10, i * 10 + 5), b("v" + i));
        }
        for (int i = 0; i < 2500; i++) {
            store.remove(session(i * 10, i * 10 + 5));
        }
        // The session of each test, those of the last, unfinished thousand, and no other.
        assertEquals(501, afterAnEnd().size());
        assertEquals(List.of("old"), values(store));
    }
}
