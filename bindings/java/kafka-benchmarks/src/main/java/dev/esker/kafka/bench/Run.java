package dev.esker.kafka.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.HdrHistogram.Histogram;

/** What one run has measured: figures by name, as a child process tells them in one line. */
record Run(Map<String, Double> figures) {
    static final String RESULT = "result ";

    static Run parse(String line) {
        Map<String, Double> figures = new LinkedHashMap<>();
        for (String part : line.substring(RESULT.length()).split(" ")) {
            int at = part.indexOf('=');
            figures.put(part.substring(0, at), Double.parseDouble(part.substring(at + 1)));
        }
        return new Run(figures);
    }

    String line() {
        StringBuilder line = new StringBuilder(RESULT.trim());
        figures.forEach((name, figure) -> line.append(' ').append(name).append('=').append(figure));
        return line.toString();
    }

    /** Counts durations in nanoseconds, with three digits. */
    static Histogram histogram() {
        return new Histogram(3);
    }

    /** Adds shares of the durations that were counted, in microseconds. */
    static void addDurations(Map<String, Double> figures, Histogram durations) {
        figures.put("p50_us", durations.getValueAtPercentile(50) / 1e3);
        figures.put("p99_us", durations.getValueAtPercentile(99) / 1e3);
        figures.put("p999_us", durations.getValueAtPercentile(99.9) / 1e3);
    }

    /** Adds what the process has in memory now and had at most, with its heap and without, and what the directory takes on disk. */
    static void addSizes(Map<String, Double> figures, Path directory) throws IOException, InterruptedException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                figures.put("resident_mb", kilobytes(line) / 1000);
            } else if (line.startsWith("VmHWM:")) {
                double peak = kilobytes(line) / 1000;
                figures.put("resident_peak_mb", peak);
                figures.put("beside_heap_mb", peak - Runtime.getRuntime().maxMemory() / 1e6);
            }
        }
        Process du = new ProcessBuilder("du", "-sk", directory.toString()).start();
        String said = new String(du.getInputStream().readAllBytes(), UTF_8);
        du.waitFor();
        figures.put("disk_mb", Double.parseDouble(said.split("\\s")[0]) * 1.024 / 1000);
    }

    private static double kilobytes(String line) {
        return Double.parseDouble(line.replaceAll("[^0-9]", "")) * 1.024;
    }
}
