package dev.esker.kafka;

import static dev.esker.kafka.Support.b;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.esker.kafka.broker.Trees;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Threads that open, use, close and drop stores of their tasks in one database, as the threads of an application
 * do when tasks move, beside threads that query all of them. Each task finds what it has written last.
 */
class StormTest {
    private static final int TASKS = 4;
    private static final int ROUNDS = Support.LONG ? 2_000 : 60;

    @TempDir
    Path state;

    private final AtomicReferenceArray<KeyValueStore<Bytes, byte[]>> stores = new AtomicReferenceArray<>(TASKS);
    private final AtomicReference<Throwable> wrong = new AtomicReference<>();
    private final AtomicLong answered = new AtomicLong();
    private final AtomicLong refused = new AtomicLong();
    private final Metrics metrics = new Metrics();
    private volatile boolean over;

    @Test
    void tasksComeAndGoWhileOthersAsk() throws InterruptedException {
        long seed = Support.seed();
        System.out.println(Support.again(seed));
        List<Thread> owners = new ArrayList<>();
        List<Thread> readers = new ArrayList<>();
        for (int task = 0; task < TASKS; task++) {
            int number = task;
            owners.add(thread(() -> own(number, new Random(seed + number))));
        }
        for (int reader = 0; reader < 2; reader++) {
            int number = reader;
            readers.add(thread(() -> ask(new Random(seed - 1 - number))));
        }
        for (Thread owner : owners) {
            owner.join();
        }
        over = true;
        for (Thread reader : readers) {
            reader.join();
        }
        assertNull(wrong.get(), () -> Support.again(seed) + ": " + wrong.get());
        assertTrue(answered.get() > 0);
        System.out.println(answered + " queries were answered, " + refused + " came to a closed store");
    }

    private Thread thread(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Throwable e) {
                wrong.compareAndSet(null, e);
            }
        });
        thread.start();
        return thread;
    }

    private interface Work {
        void run() throws Exception;
    }

    private void own(int task, Random random) throws IOException {
        Path directory = state.resolve("app").resolve("0_" + task);
        long written = -1;
        for (int round = 0; round < ROUNDS && wrong.get() == null; round++) {
            Support.Context context = new Support.Context(directory, new TaskId(0, task), metrics);
            KeyValueStore<Bytes, byte[]> store =
                    context.open(EskerStores.persistentKeyValueStore("s").get());
            stores.set(task, store);
            byte[] found = store.get(Child.key(0));
            assertEquals(written, found == null ? -1 : Long.parseLong(Support.s(found)), "task " + task);
            assertEquals(written < 0 ? null : (Long) written, store.committedOffset(Pair.CHANGELOG));
            for (int i = random.nextInt(200); i >= 0; i--) {
                written++;
                store.put(Child.key(0), b(Long.toString(written)));
                store.put(Child.key(1 + random.nextInt(500)), b("value " + written));
            }
            store.commit(Map.of(Pair.CHANGELOG, written));
            store.close();
            if (random.nextInt(4) == 0) {
                Trees.remove(directory);
                written = -1;
            }
        }
    }

    private void ask(Random random) {
        while (!over) {
            KeyValueStore<Bytes, byte[]> store = stores.get(random.nextInt(TASKS));
            if (store == null) {
                continue;
            }
            try {
                if (random.nextBoolean()) {
                    store.get(Child.key(random.nextInt(500)));
                } else {
                    count(store);
                }
                answered.incrementAndGet();
            } catch (InvalidStateStoreException closed) {
                refused.incrementAndGet();
            }
        }
    }

    private static void count(KeyValueStore<Bytes, byte[]> store) {
        Bytes last = null;
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            while (all.hasNext()) {
                Bytes key = all.next().key;
                assertTrue(last == null || last.compareTo(key) < 0, "keys ascend");
                last = key;
            }
        }
    }
}
