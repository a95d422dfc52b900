package dev.esker.kafka.broker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.List;
import org.apache.kafka.common.utils.Utils;

/** What the application under test and the test that checks it have to agree on. */
final class Names {
    private Names() {}

    static final int PARTITIONS = 8;
    static final String APPLICATION = "sums";
    static final String INPUT = "amounts";

    /** The stores, each of which has a topic of output of the same name with {@link #OUT} behind it. */
    static final List<String> STORES = List.of("totals", "windows", "sessions", "groups");

    static final String OUT = "-out";
    static final String GROUPS_REPARTITION = "by-group";
    static final int GROUPS = 16;

    static final Duration WINDOW = Duration.ofSeconds(10);
    static final Duration WINDOW_RETENTION = Duration.ofMinutes(2);
    static final Duration SESSION_GAP = Duration.ofSeconds(5);

    private static final String MARKER = "end-";

    static String changelog(String store) {
        return APPLICATION + "-" + store + "-changelog";
    }

    /** The key of the last record of a partition of the input. */
    static String marker(int partition) {
        return MARKER + partition;
    }

    static boolean isMarker(String key) {
        return key.startsWith(MARKER);
    }

    /** The group of an amount. */
    static String group(long amount) {
        return "group-" + amount % GROUPS;
    }

    /** What the last record of a partition becomes for each partition of the topic by group. */
    static String groupMarker(String marker, int partition) {
        for (int salt = 0; ; salt++) {
            String key = marker + "-to-" + partition + "-" + salt;
            if (partition(key) == partition) {
                return key;
            }
        }
    }

    /** The partition in which the producer's own partitioner puts a key. */
    static int partition(String key) {
        return Utils.toPositive(Utils.murmur2(key.getBytes(UTF_8))) % PARTITIONS;
    }
}
