package dev.esker.bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Gets, puts and scans of each store by its package for Java. All write as a process does that does not wait for the
 * device, with the same budget of memory. {@code -p store=esker,rocksdb,lmdb} chooses.
 *
 * <p>The data lie in the directory that {@code -Dbench.directory} names, by default that for temporary files.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 3)
@Measurement(iterations = 5, time = 3)
@Fork(
        value = 3,
        jvmArgsAppend = {"--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"})
@State(Scope.Benchmark)
public class StoreBenchmark {
    static final long MEMORY = 256L << 20;

    private static final int BATCH = 100;
    private static final int SCAN = 100;

    @Param({"esker", "rocksdb", "lmdb"})
    public String store;

    @Param({"1000000"})
    public int entries;

    @Param({"100"})
    public int valueBytes;

    private Path directory;
    private Store open;
    private byte[] value;

    /** What a thread keeps to itself. */
    @State(Scope.Thread)
    public static class Own {
        final SplittableRandom random = new SplittableRandom(new Random().nextLong());
        final ByteBuffer key = ByteBuffer.allocateDirect(16);
        final ByteBuffer value = ByteBuffer.allocateDirect(1 << 20);
    }

    private static byte[] key(int number) {
        byte[] key = new byte[16];
        ByteBuffer.wrap(key).putLong(0, number * 0x9E3779B97F4A7C15L).putLong(8, number);
        return key;
    }

    /** Fills the store. */
    @Setup(Level.Trial)
    public void fill() throws IOException {
        String place = System.getProperty("bench.directory", System.getProperty("java.io.tmpdir"));
        directory = Files.createTempDirectory(Path.of(place), "esker-bench");
        open = Store.open(store, directory.resolve("db"));
        value = new byte[valueBytes];
        new Random(1).nextBytes(value);
        byte[][] keys = new byte[BATCH][];
        byte[][] values = new byte[BATCH][];
        for (int i = 0; i < entries; i += BATCH) {
            for (int j = 0; j < BATCH; j++) {
                keys[j] = key(i + j);
                values[j] = value;
            }
            open.putAll(keys, values);
        }
    }

    /** Removes the data. */
    @TearDown(Level.Trial)
    public void remove() throws IOException {
        open.close();
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    /** A get of a key that is there, as an array. */
    @Benchmark
    public byte[] get(Own own) {
        return open.get(key(own.random.nextInt(entries)));
    }

    /** A get of a key that is not there. */
    @Benchmark
    public byte[] getMissing(Own own) {
        byte[] key = key(own.random.nextInt(entries));
        key[15] ^= 1;
        key[0] ^= 1;
        return open.get(key);
    }

    /** A get with direct buffers. */
    @Benchmark
    public int getDirect(Own own) {
        own.key.clear().put(key(own.random.nextInt(entries))).flip();
        return open.get(own.key, own.value.clear());
    }

    /** A put over a key that is there. */
    @Benchmark
    public void put(Own own) {
        open.put(key(own.random.nextInt(entries)), value);
    }

    /** A hundred puts that are committed together. */
    @Benchmark
    public void putBatch(Own own) {
        byte[][] keys = new byte[BATCH][];
        byte[][] values = new byte[BATCH][];
        for (int i = 0; i < BATCH; i++) {
            keys[i] = key(own.random.nextInt(entries));
            values[i] = value;
        }
        open.putAll(keys, values);
    }

    /** A seek and one entry. */
    @Benchmark
    public long seek(Own own) {
        return open.scan(key(own.random.nextInt(entries)), 1);
    }

    /** A seek and a hundred entries. */
    @Benchmark
    public long scan(Own own) {
        return open.scan(key(own.random.nextInt(entries)), SCAN);
    }
}
