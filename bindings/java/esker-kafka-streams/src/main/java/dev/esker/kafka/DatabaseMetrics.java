package dev.esker.kafka;

import dev.esker.Database;
import dev.esker.EskerException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor.RecordingLevel;

/**
 * The metrics of a database in a registry of Kafka's. They are those of the whole instance, because its stores
 * share the database. The stores of the registry count themselves in and out.
 */
final class DatabaseMetrics {
    static final String GROUP = "stream-esker-metrics";

    /** Metrics of the engine, their names in the registry, and what they are. */
    private static final String[][] NAMES = {
        {"esker_memory_bytes", "memory-bytes", "Bytes of memory that the database holds"},
        {"esker_memory_limit_bytes", "memory-limit-bytes", "The budget of memory of the database"},
        {"esker_data_file_bytes", "data-file-bytes", "Bytes of the data files"},
        {"esker_log_file_bytes", "log-file-bytes", "Bytes of the log files"},
        {"esker_cache_hits_total", "cache-hits-total", "Blocks that were found in the cache"},
        {"esker_cache_misses_total", "cache-misses-total", "Blocks that were read from files"},
        {"esker_block_read_bytes_total", "block-read-bytes-total", "Bytes of blocks that were read from files"},
        {"esker_commits_total", "commits-total", "Writes and batches that were committed"},
        {"esker_flushes_total", "flushes-total", "Memtables that were written to files"},
        {"esker_compactions_total", "compactions-total", "Compactions that were done"},
        {"esker_compaction_debt_bytes", "compaction-debt-bytes", "Bytes that compactions have to rewrite"},
        {"esker_stall_seconds_total", "stall-seconds-total", "Seconds that writers have waited, for all causes"},
    };

    private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Database database;
    private final Map<Metrics, Registered> registered = new HashMap<>();
    private Map<String, Double> sums = Map.of();
    private long readAt;

    private static final class Registered {
        private final List<MetricName> names = new ArrayList<>();
        private int users;
    }

    DatabaseMetrics(Database database) {
        this.database = database;
    }

    /** Counts a store of a registry in; the first one registers the metrics. */
    synchronized void enter(Metrics registry, Map<String, String> tags) {
        Registered found = registered.computeIfAbsent(registry, key -> new Registered());
        found.users++;
        if (found.users > 1) {
            return;
        }
        for (String[] name : NAMES) {
            MetricName metric = registry.metricName(name[1], GROUP, name[2], tags);
            Gauge<Double> gauge = (config, now) -> value(name[0]);
            registry.addMetricIfAbsent(metric, new MetricConfig().recordLevel(RecordingLevel.INFO), gauge);
            found.names.add(metric);
        }
    }

    /** Counts a store out; the last one removes the metrics. */
    synchronized void leave(Metrics registry) {
        Registered found = registered.get(registry);
        if (found != null && --found.users == 0) {
            found.names.forEach(registry::removeMetric);
            registered.remove(registry);
        }
    }

    /** The sum over all labels of a metric of the engine, or null if it cannot be read. */
    private synchronized Double value(String name) {
        long now = System.nanoTime();
        if (sums.isEmpty() || now - readAt > FRESH_NANOS) {
            try {
                sums = sums(database.openMetrics());
                readAt = now;
            } catch (EskerException e) {
                return null;
            }
        }
        return sums.get(name);
    }

    /** The sums of the samples of a text in OpenMetrics, by name. */
    static Map<String, Double> sums(String text) {
        Map<String, Double> sums = new HashMap<>();
        for (String line : text.split("\n")) {
            if (line.isEmpty() || line.charAt(0) == '#') {
                continue;
            }
            int labels = line.indexOf('{');
            int space = line.indexOf(' ', labels < 0 ? 0 : line.lastIndexOf('}'));
            if (space < 0) {
                continue;
            }
            String name = line.substring(0, labels < 0 ? space : labels);
            try {
                sums.merge(name, Double.parseDouble(line.substring(space + 1).trim()), Double::sum);
            } catch (NumberFormatException e) {
                // A sample with a timestamp behind it; none of those that are wanted has one.
            }
        }
        return sums;
    }
}
