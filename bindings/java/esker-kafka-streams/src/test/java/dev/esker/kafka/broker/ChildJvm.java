package dev.esker.kafka.broker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * A virtual machine of its own with the class path of this one.
 *
 * <p>It tells what happens in lines on its standard output that begin with {@link #EVENT}. It ends when its standard
 * input ends, so that it never outlives the process that started it.
 */
public final class ChildJvm implements AutoCloseable {
    static final String EVENT = "event ";

    /** What the queue of events ends with. */
    private static final String END = "the process has ended";

    private final String name;
    private final Path log;
    private final Process process;
    private final BlockingQueue<String> events = new LinkedBlockingQueue<>();

    private ChildJvm(String name, Path log, Process process) {
        this.name = name;
        this.log = log;
        this.process = process;
    }

    /** Starts the main class with these arguments; what it logs goes to a file in the directory. */
    public static ChildJvm start(
            Path directory, String name, List<String> machine, Class<?> main, List<String> arguments)
            throws IOException {
        return start(directory, name, machine, List.of(), main.getName(), arguments);
    }

    /** The same with a class that lies in one of these directories. */
    static ChildJvm start(
            Path directory, String name, List<String> machine, List<Path> classes, String main, List<String> arguments)
            throws IOException {
        Path log = directory.resolve(name + ".log");
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        if (Runtime.version().feature() >= 22) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.add("-Dlog4j2.configurationFile=log4j2-child.properties");
        command.add("-Djava.io.tmpdir=" + directory);
        command.addAll(machine);
        command.add("-cp");
        StringBuilder path = new StringBuilder(System.getProperty("java.class.path"));
        classes.forEach(more -> path.append(File.pathSeparator).append(more));
        command.add(path.toString());
        command.add(main);
        command.addAll(arguments);
        Process process =
                new ProcessBuilder(command)
                        .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
                        .start();
        ChildJvm child = new ChildJvm(name, log, process);
        Thread reader = new Thread(child::read, name + "-events");
        reader.setDaemon(true);
        reader.start();
        return child;
    }

    private void read() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith(EVENT)) {
                    events.add(line.substring(EVENT.length()));
                }
            }
        } catch (IOException ended) {
            // A process that was killed may leave a broken pipe: its end is told below.
        }
        events.add(END);
    }

    /** Waits for an event that begins like this; fails when the process ends before. */
    public String await(String beginning) throws InterruptedException {
        return await(event -> event.startsWith(beginning), beginning);
    }

    /** Waits for an event; fails when the process ends before. */
    String await(Predicate<String> wanted, String what) throws InterruptedException {
        while (true) {
            String event = events.take();
            if (event.equals(END)) {
                throw new AssertionError(name + " has ended while it was to say " + what + "\n" + tail());
            }
            if (wanted.test(event)) {
                return event;
            }
        }
    }

    /** Fails when the process has ended, or ends within so many milliseconds. */
    void runsFor(long milliseconds) throws InterruptedException {
        if (process.waitFor(milliseconds, TimeUnit.MILLISECONDS)) {
            throw new AssertionError(name + " has ended with " + process.exitValue() + "\n" + tail());
        }
    }

    /** Ends the process at once, as SIGKILL does. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /** Asks the process to end, and waits for that; its status. */
    int stop() throws IOException, InterruptedException {
        process.getOutputStream().close();
        return process.waitFor();
    }

    /** The last lines of what it has logged. */
    String tail() {
        try {
            List<String> lines = Files.exists(log) ? Files.readAllLines(log) : List.of();
            List<String> last = lines.subList(Math.max(0, lines.size() - 60), lines.size());
            return log + ":\n" + String.join("\n", last);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }

    /** In the process: ends it with this work when its standard input ends. */
    public static void endWithInput(Runnable atEnd) {
        Thread watcher =
                new Thread(
                        () -> {
                            try {
                                while (System.in.read() >= 0) {
                                    // Only the end matters.
                                }
                            } catch (IOException ended) {
                                // As good as the end.
                            }
                            atEnd.run();
                        },
                        "end-with-input");
        watcher.setDaemon(true);
        watcher.start();
    }

    /** In the process: tells what happened. */
    public static void tell(String event) {
        System.out.println(EVENT + event);
        System.out.flush();
    }
}
