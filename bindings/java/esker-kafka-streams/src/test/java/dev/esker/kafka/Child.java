package dev.esker.kafka;

import static dev.esker.kafka.Support.b;

import dev.esker.DiskFullException;
import dev.esker.kafka.broker.Trees;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.state.KeyValueStore;

/** Another process, which has a store open. */
final class Child {
    /** How many entries {@link #halt} writes; it commits the number of each third one. */
    static final int ENTRIES = 5_000;

    private Child() {}

    /** Starts a process with a method of this class, and its arguments. */
    static ProcessBuilder start(List<String> before, String... arguments) {
        List<String> command = new ArrayList<>(before);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-Xmx256m");
        command.add("-cp");
        command.add(System.getProperty("java.class.path"));
        command.add(Child.class.getName());
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).redirectErrorStream(true);
    }

    public static void main(String[] arguments) throws Exception {
        Path place = Path.of(arguments[1]);
        switch (arguments[0]) {
            case "hold" -> hold(place);
            case "halt" -> halt(place);
            case "fill" -> fill(place);
            case "keep" -> close(place, false);
            case "clean" -> close(place, true);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static KeyValueStore<Bytes, byte[]> open(Path place) {
        return new Support.Context(place).open(EskerStores.persistentKeyValueStore("s").get());
    }

    /** Keeps a store open until its input ends. */
    private static void hold(Path place) throws IOException {
        open(place).put(Bytes.wrap(b("held")), b("yes"));
        System.out.println("open");
        System.out.flush();
        while (System.in.read() >= 0) {
            // Until the parent closes it.
        }
        Runtime.getRuntime().halt(0);
    }

    /** Writes, commits offsets, and ends without closing anything. */
    private static void halt(Path place) {
        KeyValueStore<Bytes, byte[]> store = open(place);
        for (int i = 0; i < ENTRIES; i++) {
            store.put(key(i), b("value " + i));
            if (i % 3 == 0) {
                store.commit(Map.of(Pair.CHANGELOG, (long) i));
            }
        }
        Runtime.getRuntime().halt(0);
    }

    /** Closes a store, deletes the directory of its task or leaves it, and ends. */
    private static void close(Path task, boolean cleans) throws IOException {
        KeyValueStore<Bytes, byte[]> store = open(task);
        store.put(key(1), b("1"));
        store.close();
        if (cleans) {
            Trees.remove(task);
        }
    }

    static Bytes key(int number) {
        return Bytes.wrap(b(String.format("%08d", number)));
    }

    /** Writes to a small device until it is full; makes room, and writes again. */
    private static void fill(Path place) throws Exception {
        Path filler = place.resolve("filler");
        Files.write(filler, new byte[8 << 20]);
        KeyValueStore<Bytes, byte[]> store = open(place.resolve("task"));
        byte[] value = new byte[20_000];
        // Bytes that cannot be compressed.
        Random random = new Random(1);
        int written = 0;
        try {
            while (written < 100_000) {
                random.nextBytes(value);
                store.put(key(written), value);
                written++;
            }
            throw new AssertionError("the device is never full");
        } catch (ProcessorStateException e) {
            check(e.getCause() instanceof DiskFullException, "the cause is " + e.getCause());
        }
        check(store.isOpen(), "the store is open");
        for (int i = 0; i < written; i++) {
            check(store.get(key(i)) != null, "entry " + i + " of " + written + " is there");
        }
        Files.delete(filler);
        store.delete(key(0));
        putWhenThereIsRoom(store, value);
        store.close();
        store.close();
        KeyValueStore<Bytes, byte[]> again = open(place.resolve("task"));
        check(again.get(key(0)) == null, "what was deleted is gone");
        check(again.get(Bytes.wrap(b("after"))) != null, "what was written afterwards is there");
        for (int i = 1; i < written; i++) {
            check(again.get(key(i)) != null, "entry " + i + " of " + written + " is there again");
        }
        again.close();
        System.out.println("done after " + written);
    }

    /** The engine looks for room now and then; a write may come too early. */
    private static void putWhenThereIsRoom(KeyValueStore<Bytes, byte[]> store, byte[] value) {
        for (int attempt = 0; ; attempt++) {
            try {
                store.put(Bytes.wrap(b("after")), value);
                return;
            } catch (ProcessorStateException e) {
                check(attempt < 100_000, "a write succeeds when there is room");
            }
        }
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError("not so: " + what);
        }
    }

}
