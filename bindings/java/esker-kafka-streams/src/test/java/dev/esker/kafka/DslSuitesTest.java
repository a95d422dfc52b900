package dev.esker.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Kafka's own tests of its DSL, unchanged, with Esker's stores where the tests choose none: a class of this
 * package takes the place of the one with Kafka's default. {@code kafka-dsl-suites.txt} lists the classes, with how
 * many tests they have.
 */
class DslSuitesTest {
    /** Tests that look for the class of RocksDB's store. */
    private static final Set<String> OF_ROCKSDB = Set.of("org.apache.kafka.streams.StreamsBuilderTest"
            + "#shouldUseSpecifiedStoreSuppliersOuterJoinStoreEvenIfThisSupplierIsSupplied()");

    @TempDir
    Path directory;

    @Test
    void allTestsOfTheDslPass() throws Exception {
        List<String> lines = Files.readAllLines(Path.of("src/test/resources/kafka-dsl-suites.txt"));
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx1g",
                "-Djava.io.tmpdir=" + directory,
                "-cp",
                shadow() + File.pathSeparator + System.getProperty("java.class.path"),
                SuiteRunner.class.getName()));
        lines.forEach(line -> command.add(line.split(" ")[0]));
        Path output = directory.resolve("output.txt");
        int status = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start()
                .waitFor();
        List<String> said = Files.readAllLines(output, StandardCharsets.ISO_8859_1);
        assertEquals(0, status, () -> String.join("\n", said));
        check(lines, said);
    }

    private static void check(List<String> wanted, List<String> said) {
        List<String> results = new ArrayList<>();
        Set<String> failed = new TreeSet<>();
        long tests = 0;
        long asked = 0;
        for (String line : said) {
            if (line.startsWith(SuiteRunner.FAILED)) {
                failed.add(line.substring(SuiteRunner.FAILED.length()));
            }
            if (line.startsWith(SuiteRunner.RESULT)) {
                String[] parts = line.split(" ");
                results.add(parts[1] + " " + parts[2]);
                tests += Long.parseLong(parts[3]);
                asked += Long.parseLong(parts[4]);
            }
        }
        assertEquals(OF_ROCKSDB, failed, () -> String.join("\n", said));
        assertEquals(wanted, results);
        assertTrue(asked > 500, "only " + asked + " of Esker's stores were asked for");
        System.out.println(tests + " tests of Kafka's DSL passed, with " + asked + " of Esker's stores");
    }

    /** The directory with the class that takes the place of Kafka's. */
    private Path shadow() throws IOException {
        Path classes = Files.createDirectories(directory.resolve("shadow"));
        int status = ToolProvider.getSystemJavaCompiler()
                .run(
                        null,
                        null,
                        null,
                        "-nowarn",
                        "-Xlint:none",
                        "-proc:none",
                        "-d",
                        classes.toString(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        "src/test/shadow/org/apache/kafka/streams/state/BuiltInDslStoreSuppliers.java");
        assertEquals(0, status);
        return classes;
    }
}
