package dev.esker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.stream.Stream;

/** What the tests share. */
final class Support {
    private Support() {}

    /** Whether the tests take their long form. */
    static final boolean LONG = Boolean.getBoolean("esker.long");

    static final Comparator<byte[]> BYTES = Arrays::compareUnsigned;

    static byte[] b(String text) {
        return text.getBytes(UTF_8);
    }

    static String s(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    static byte[] number(int number) {
        return b(String.format("%08d", number));
    }

    static Options options() {
        return new Options().memory(16L << 20);
    }

    static Database open(Path directory) {
        return Database.open(directory.resolve("db"), options());
    }

    /** The seed of a test with random calls: that of {@code -Desker.seed}, or a new one. */
    static long seed() {
        String given = System.getProperty("esker.seed", "");
        return given.isEmpty() ? new Random().nextLong() : Long.parseLong(given);
    }

    /** What a failure says, so that it can be repeated. */
    static String again(long seed) {
        return "again with -Desker.seed=" + seed;
    }

    /** Work that may throw anything. */
    interface Work {
        void run(int number) throws Exception;
    }

    /** Runs work on several threads that begin together; throws what the first of them threw. */
    static void inThreads(int count, Work work) throws Exception {
        CyclicBarrier barrier = new CyclicBarrier(count);
        List<Throwable> thrown = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int number = i;
            Thread thread =
                    new Thread(
                            () -> {
                                try {
                                    barrier.await();
                                    work.run(number);
                                } catch (Throwable one) {
                                    synchronized (thrown) {
                                        thrown.add(one);
                                    }
                                }
                            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (!thrown.isEmpty()) {
            throw new AssertionError("a thread failed", thrown.get(0));
        }
    }

    /** The resident memory of this process, in bytes; 0 where that is not known. */
    static long resident() {
        try {
            String[] pages = Files.readString(Path.of("/proc/self/statm")).split(" ");
            return Long.parseLong(pages[1]) * 4096;
        } catch (IOException elsewhere) {
            return 0;
        }
    }

    /** Removes a directory with all that is in it. */
    static void remove(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return;
        }
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }
}
