package dev.esker.kafka.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** All runs; their medians as a table, and all of them as JSON. */
final class Report {
    private static final String BASE = "rocksdb";

    private final Settings settings;
    /** By workload and store, in the order of the runs. */
    private final Map<String, Map<String, List<Run>>> all = new LinkedHashMap<>();

    Report(Settings settings) {
        this.settings = settings;
    }

    void add(String workload, String store, Run run) {
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
    void print(String workload) {
        Map<String, List<Run>> runs = all.get(workload);
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
        List<String> lines = new ArrayList<>();
        all.forEach(
                (workload, stores) ->
                        stores.forEach(
                                (store, runs) -> {
                                    for (int round = 0; round < runs.size(); round++) {
                                        List<String> figures = new ArrayList<>();
                                        runs.get(round)
                                                .figures()
                                                .forEach((name, figure) -> figures.add("\"" + name + "\":" + figure));
                                        lines.add(
                                                "    {\"workload\":\"" + workload + "\",\"store\":\"" + store + "\",\"round\":"
                                                        + round + "," + String.join(",", figures) + "}");
                                    }
                                }));
        String head =
                "{\n  \"records\": " + settings.records + ", \"keys\": " + settings.keys + ", \"value\": " + settings.value
                        + ", \"restored\": " + settings.restoredEntries() + ", \"memory\": " + settings.memory + ", \"heap\": \""
                        + settings.heap + "\", \"guarantee\": \"" + settings.guarantee + "\",\n  \"runs\": [\n";
        Files.writeString(settings.json, head + String.join(",\n", lines) + "\n  ]\n}\n");
    }
}
