package dev.esker.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.VersionedRecord;

/** A store of RocksDB and one of Esker, which get the same calls, and must give the same answers. */
final class Pair<S extends StateStore> implements AutoCloseable {
    private static final String CLOSED = InvalidStateStoreException.class.getName();

    /** How often a call on a closed store was refused. */
    static int closedCalls;

    static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    private final List<Supplier<S>> makes;
    private final List<Support.Context> contexts = new ArrayList<>();
    private final List<S> stores = new ArrayList<>();
    private final List<List<Iterator<?>>> iterators = List.of(new ArrayList<>(), new ArrayList<>());
    private final String again;
    private final StringBuilder calls = new StringBuilder();

    /** What a call found out to do: for the message of a failure. */
    static String said = "";

    Pair(Path directory, Supplier<S> rocks, Supplier<S> esker, String again) {
        makes = List.of(rocks, esker);
        this.again = again;
        for (String side : List.of("rocks", "esker")) {
            contexts.add(new Support.Context(directory.resolve(side)));
        }
        open();
    }

    private void open() {
        stores.clear();
        for (int side = 0; side < 2; side++) {
            stores.add(contexts.get(side).open(makes.get(side).get()));
        }
    }

    /** Makes a call on both, and compares. */
    void call(String what, Function<S, Object> call) {
        calls.append(what).append('\n');
        if (calls.length() > 20_000) {
            calls.delete(0, 10_000);
        }
        List<String> answers = new ArrayList<>();
        said = "";
        for (S store : stores) {
            answers.add(answer(() -> call.apply(store)));
        }
        calls.append("    ").append(said).append('\n');
        assertEquals(answers.get(0), answers.get(1), () -> again + "; the last calls:\n" + calls);
    }

    private static String answer(Supplier<Object> call) {
        try {
            return text(call.get());
        } catch (RuntimeException e) {
            return e.getClass().getName();
        }
    }

    static String text(Object answer) {
        if (answer instanceof byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        }
        if (answer instanceof Bytes bytes) {
            return text(bytes.get());
        }
        if (answer instanceof KeyValue<?, ?> entry) {
            return text(entry.key) + "=" + text(entry.value);
        }
        if (answer instanceof Windowed<?> windowed) {
            return text(windowed.key()) + "@" + windowed.window().start() + "-" + windowed.window().end();
        }
        if (answer instanceof VersionedRecord<?> record) {
            return text(record.value()) + "@" + record.timestamp() + "-" + record.validTo();
        }
        if (answer instanceof Iterator<?> entries) {
            StringBuilder text = new StringBuilder();
            while (entries.hasNext()) {
                text.append(text(entries.next())).append(' ');
            }
            close(entries);
            return text.toString();
        }
        return String.valueOf(answer);
    }

    private static void close(Object iterator) {
        try {
            ((AutoCloseable) iterator).close();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    /** Opens an iterator on both and keeps it. */
    void keep(String what, Function<S, Iterator<?>> opens) {
        if (iterators.get(0).size() > 4) {
            return;
        }
        call("keep " + what, store -> {
            iterators.get(stores.indexOf(store)).add(opens.apply(store));
            return null;
        });
    }

    /** Steps, or closes, an iterator that was kept. */
    void step(Random random) {
        int size = iterators.get(0).size();
        if (size == 0) {
            return;
        }
        int index = random.nextInt(size);
        if (random.nextInt(4) == 0) {
            for (List<Iterator<?>> kept : iterators) {
                close(kept.remove(index));
            }
            return;
        }
        call("step " + index, store -> {
            Iterator<?> kept = iterators.get(stores.indexOf(store)).get(index);
            return kept.hasNext() ? kept.next() : "end";
        });
    }

    void at(long time) {
        contexts.forEach(context -> context.at(time));
    }

    void commit(Map<TopicPartition, Long> offsets) {
        call("commit " + offsets, store -> {
            store.commit(offsets);
            try {
                contexts.get(stores.indexOf(store)).commits.onCommit();
            } catch (java.io.IOException e) {
                throw new AssertionError(e);
            }
            return null;
        });
        call("committed", store -> store.committedOffset(CHANGELOG));
        call("position", StateStore::getPosition);
    }

    void restore(List<ConsumerRecord<byte[], byte[]>> records) {
        call("restore " + records.stream().map(r -> text(r.key()) + "=" + text(r.value()) + "@" + r.timestamp()).toList(), store -> {
            contexts.get(stores.indexOf(store)).restore(records);
            return null;
        });
    }

    /** Closes both, with the iterators or without; makes a call on what is closed; and opens both again. */
    void reopen(Random random, BiFunction<S, Random, Object> call) {
        call("close", store -> {
            store.close();
            return store.isOpen();
        });
        long seed = random.nextLong();
        // RocksDB's store fails in various ways; Esker's says that it is closed, if it is asked for anything.
        said = "";
        String answer = answer(() -> call.apply(stores.get(1), new Random(seed)));
        assertTrue(
                CLOSED.equals(answer) || answer.isEmpty() || answer.equals("null"),
                () -> again + ": " + said + " on a closed store: " + answer);
        if (CLOSED.equals(answer)) {
            closedCalls++;
        }
        for (List<Iterator<?>> kept : iterators) {
            kept.forEach(Pair::close);
            kept.clear();
        }
        call("close again", store -> {
            store.close();
            return null;
        });
        open();
        call("offset after opening", store -> store.committedOffset(CHANGELOG));
        call("position after opening", StateStore::getPosition);
    }

    @Override
    public void close() {
        iterators.forEach(kept -> kept.forEach(Pair::close));
        stores.forEach(StateStore::close);
    }
}
