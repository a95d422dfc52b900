package dev.esker.kafka.bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.esker.kafka.bench.Settings.Store;
import dev.esker.kafka.bench.Settings.Workload;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** All runs; their medians as a table, and all of them as JSON. */
final class Report {
    private static final Store BASE = Store.ROCKSDB;

    private final Settings settings;
    /** By workload and store, in the order of the runs. */
    private final Map<Workload, Map<Store, List<Run>>> all = new LinkedHashMap<>();

    Report(Settings settings) {
        this.settings = settings;
    }

    void add(Workload workload, Store store, Run run) {
        all.computeIfAbsent(workload, absent -> new LinkedHashMap<>())
                .computeIfAbsent(store, absent -> new ArrayList<>())
                .add(run);
    }

    private static double median(List<Run> runs, String figure) {
        double[] sorted = runs.stream().mapToDouble(run -> run.figures().getOrDefault(figure, Double.NaN)).sorted().toArray();
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    private static String spread(List<Run> runs, String figure) {
        double least = runs.stream().mapToDouble(run -> run.figures().getOrDefault(figure, Double.NaN)).min().orElse(0);
        double most = runs.stream().mapToDouble(run -> run.figures().getOrDefault(figure, Double.NaN)).max().orElse(0);
        return number(least) + " to " + number(most);
    }

    private static String number(double number) {
        if (Math.abs(number) >= 100) {
            return String.format(Locale.ROOT, "%,.0f", number);
        }
        return String.format(Locale.ROOT, Math.abs(number) >= 10 ? "%.1f" : "%.2f", number);
    }

    /** Prints a workload: the median of each figure and store, its spread, and what it is to that of the base. */
    void print(Workload workload) {
        Map<Store, List<Run>> runs = all.get(workload);
        System.out.printf("%n%s: %d rounds, medians%n", workload, settings.rounds);
        System.out.printf("  %-18s %-15s %12s   %-26s %s%n", "figure", "store", "median", "least to most", "to " + BASE);
        Set<String> figures = new LinkedHashSet<>(runs.values().iterator().next().get(0).figures().keySet());
        for (String figure : figures) {
            runs.forEach(
                    (store, of) -> {
                        String ratio = "";
                        if (runs.containsKey(BASE)) {
                            ratio = String.format(Locale.ROOT, "%.2f", median(of, figure) / median(runs.get(BASE), figure));
                        }
                        System.out.printf(
                                "  %-18s %-15s %12s   %-26s %s%n", figure, store, number(median(of, figure)), spread(of, figure), ratio);
                    });
        }
        System.out.flush();
    }

    void writeJson() throws IOException {
        if (settings.json == null) {
            return;
        }
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("records", settings.records);
        report.put("keys", settings.keys);
        report.put("value", settings.value);
        report.put("restored", settings.restoredEntries());
        report.put("memory", settings.memory);
        report.put("heap", settings.heap);
        report.put("guarantee", settings.guarantee);
        List<Map<String, Object>> lines = new ArrayList<>();
        all.forEach((workload, stores) -> stores.forEach((store, runs) -> addRuns(lines, workload, store, runs)));
        report.put("runs", lines);
        new ObjectMapper().writerWithDefaultPrettyPrinter().writeValue(settings.json.toFile(), report);
    }

    private static void addRuns(List<Map<String, Object>> lines, Workload workload, Store store, List<Run> runs) {
        for (int round = 0; round < runs.size(); round++) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("workload", workload.toString());
            line.put("store", store.toString());
            line.put("round", round);
            line.putAll(runs.get(round).figures());
            lines.add(line);
        }
    }
}
