package dev.esker.kafka.bench;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** What is measured, and how large. */
final class Settings {
    static final String HELP =
            """
            Measures state stores of Kafka Streams beside each other.

              --stores LIST       of esker, rocksdb, rocksdb-tuned (default: all)
              --workloads LIST    of words, windows, join, restore through a broker, and store below one (default: all)
              --rounds N          rounds; the stores take turns in each (default 3)
              --records N         records that each run processes (default 2M)
              --keys N            keys of the input (default 1M)
              --value N           bytes of a value of join and restore (default 100)
              --restore SIZE      bytes of keys and values to restore (default 5G)
              --memory SIZE       the budget of esker, and of rocksdb-tuned (default 256M)
              --heap SIZE         of each application (default 512m)
              --commit N          records after which store commits (default 500K)
              --guarantee G       exactly_once_v2 or at_least_once (default exactly_once_v2)
              --directory DIR     where data lie (default: that for temporary files)
              --json FILE         also write all runs there
              --small             a form of less than a minute: one round of few records
            """;

    private static final List<String> ALL_STORES = List.of("esker", "rocksdb", "rocksdb-tuned");
    private static final List<String> ALL_WORKLOADS = List.of("words", "windows", "join", "restore", "store");

    List<String> stores = ALL_STORES;
    List<String> workloads = ALL_WORKLOADS;
    int rounds = 3;
    long records = 2_000_000;
    long keys = 1_000_000;
    int value = 100;
    long restore = 5_000_000_000L;
    long memory = 256_000_000;
    long commitEvery = 500_000;
    String heap = "512m";
    String guarantee = "exactly_once_v2";
    Path directory = Path.of(System.getProperty("java.io.tmpdir"));
    Path json;

    static Settings of(String[] arguments) {
        Settings settings = new Settings();
        for (int i = 0; i < arguments.length; i++) {
            String name = arguments[i];
            if (name.equals("--small")) {
                settings.rounds = 1;
                settings.records = 50_000;
                settings.keys = 20_000;
                settings.restore = 5_000_000;
                settings.commitEvery = 20_000;
                continue;
            }
            if (i + 1 == arguments.length) {
                throw new IllegalArgumentException(name.equals("--help") ? "" : name + " is unknown, or has no value");
            }
            settings.set(name, arguments[++i]);
        }
        return settings;
    }

    private void set(String name, String text) {
        switch (name) {
            case "--stores" -> stores = list(text, ALL_STORES);
            case "--workloads" -> workloads = list(text, ALL_WORKLOADS);
            case "--rounds" -> rounds = (int) number(text);
            case "--records" -> records = number(text);
            case "--keys" -> keys = number(text);
            case "--value" -> value = (int) number(text);
            case "--restore" -> restore = number(text);
            case "--memory" -> memory = number(text);
            case "--commit" -> commitEvery = number(text);
            case "--heap" -> heap = text;
            case "--guarantee" -> guarantee = text;
            case "--directory" -> directory = Path.of(text);
            case "--json" -> json = Path.of(text);
            default -> throw new IllegalArgumentException(name + " is unknown");
        }
    }

    private static List<String> list(String text, List<String> known) {
        List<String> chosen = new ArrayList<>(List.of(text.split(",")));
        for (String one : chosen) {
            if (!known.contains(one)) {
                throw new IllegalArgumentException(one + " is none of " + known);
            }
        }
        return chosen;
    }

    private static long number(String text) {
        String digits = text.toUpperCase(Locale.ROOT);
        long unit =
                switch (digits.charAt(digits.length() - 1)) {
                    case 'K' -> 1000L;
                    case 'M' -> 1000_000L;
                    case 'G' -> 1000_000_000L;
                    default -> 1L;
                };
        return Long.parseLong(unit == 1 ? digits : digits.substring(0, digits.length() - 1)) * unit;
    }

    /** How many entries make the size that is to be restored. */
    long restoredEntries() {
        return Math.max(1, restore / (Inputs.KEY_BYTES + value));
    }
}
