package dev.esker.kafka.bench;

import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** What is measured, and how large: the options of the program. */
@Command(
        name = "kafka-benchmarks",
        description = "Measures state stores of Kafka Streams beside each other.",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        usageHelpAutoWidth = true)
class Settings {
    /** A store, as it is called in options and reports. */
    enum Store {
        ESKER("esker"),
        ROCKSDB("rocksdb"),
        ROCKSDB_TUNED("rocksdb-tuned");

        private final String label;

        Store(String label) {
            this.label = label;
        }

        @Override
        public String toString() {
            return label;
        }
    }

    /** What an application does. */
    enum Workload {
        WORDS,
        WINDOWS,
        JOIN,
        RESTORE,
        /** A store alone, without a broker. */
        STORE;

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    @Option(
            names = "--stores",
            split = ",",
            paramLabel = "STORE",
            converter = StoreName.class,
            defaultValue = "esker,rocksdb,rocksdb-tuned",
            description = "of ${DEFAULT-VALUE} (the default)")
    List<Store> stores;

    @Option(
            names = "--workloads",
            split = ",",
            paramLabel = "WORKLOAD",
            converter = WorkloadName.class,
            defaultValue = "words,windows,join,restore,store",
            description = "of ${DEFAULT-VALUE} (the default); store is a store alone, the others go through a broker")
    List<Workload> workloads;

    @Option(names = "--rounds", defaultValue = "3", description = "rounds; the stores take turns in each (${DEFAULT-VALUE})")
    int rounds;

    @Option(
            names = "--records",
            converter = Size.class,
            defaultValue = "2M",
            description = "records that each run processes (${DEFAULT-VALUE})")
    long records;

    @Option(names = "--keys", converter = Size.class, defaultValue = "1M", description = "keys of the input (${DEFAULT-VALUE})")
    long keys;

    @Option(names = "--value", defaultValue = "100", description = "bytes of a value of join and restore (${DEFAULT-VALUE})")
    int value;

    @Option(
            names = "--restore",
            converter = Size.class,
            defaultValue = "5G",
            description = "bytes of keys and values to restore (${DEFAULT-VALUE})")
    long restore;

    @Option(
            names = "--memory",
            converter = Size.class,
            defaultValue = "256M",
            description = "the budget of esker, and of rocksdb-tuned (${DEFAULT-VALUE})")
    long memory;

    @Option(names = "--heap", defaultValue = "512m", description = "the heap of each application (${DEFAULT-VALUE})")
    String heap;

    @Option(
            names = "--commit",
            converter = Size.class,
            defaultValue = "500K",
            description = "records after which the workload store commits (${DEFAULT-VALUE})")
    long commitEvery;

    @Option(
            names = "--guarantee",
            defaultValue = "exactly_once_v2",
            description = "exactly_once_v2 or at_least_once (${DEFAULT-VALUE})")
    String guarantee;

    @Option(names = "--directory", defaultValue = "${sys:java.io.tmpdir}", description = "where data lie (${DEFAULT-VALUE})")
    Path directory;

    @Option(names = "--json", paramLabel = "FILE", description = "also write all runs there")
    Path json;

    @Option(names = "--small", description = "a form of about a minute: one round of few records")
    boolean small;

    /** Takes the sizes of the small form, if it is asked for. */
    void settle() {
        if (small) {
            rounds = 1;
            records = 50_000;
            keys = 20_000;
            restore = 5_000_000;
            commitEvery = 20_000;
        }
    }

    /** How many entries make the size that is to be restored. */
    long restoredEntries() {
        return Math.max(1, restore / (Inputs.KEY_BYTES + value));
    }

    /** A whole number with K, M or G behind it, in steps of a thousand. */
    static final class Size implements ITypeConverter<Long> {
        private static final String UNITS = "KMG";

        @Override
        public Long convert(String text) {
            String digits = text.toUpperCase(Locale.ROOT);
            long unit = 1;
            int place = digits.isEmpty() ? -1 : UNITS.indexOf(digits.charAt(digits.length() - 1));
            if (place >= 0) {
                digits = digits.substring(0, digits.length() - 1);
                unit = (long) Math.pow(1000, place + 1);
            }
            try {
                return Math.multiplyExact(Long.parseLong(digits), unit);
            } catch (NumberFormatException | ArithmeticException e) {
                throw new TypeConversionException("'" + text + "' is no whole number, with K, M or G behind it if you like");
            }
        }
    }

    static final class StoreName implements ITypeConverter<Store> {
        @Override
        public Store convert(String text) {
            return named(Store.values(), text);
        }
    }

    static final class WorkloadName implements ITypeConverter<Workload> {
        @Override
        public Workload convert(String text) {
            return named(Workload.values(), text);
        }
    }

    private static <E> E named(E[] all, String text) {
        for (E each : all) {
            if (each.toString().equals(text)) {
                return each;
            }
        }
        throw new TypeConversionException("'" + text + "' is none of " + List.of(all));
    }
}
