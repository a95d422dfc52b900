package dev.esker.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program that docs/kafka-streams.md begins with. */
class GuideTest {
    @TempDir
    Path directory;

    private static String block(String text, String language) {
        Matcher block = Pattern.compile("```" + language + "\n(.*?)```", Pattern.DOTALL).matcher(text);
        assertTrue(block.find(), "the page has no block of " + language);
        return block.group(1);
    }

    @Test
    void theProgramOfTheGuide() throws Exception {
        String page = Files.readString(Path.of("../../../docs/kafka-streams.md"));
        Path source = directory.resolve("WordCount.java");
        Files.writeString(source, block(page, "java"));
        String classPath = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .map(entry -> Path.of(entry).toAbsolutePath().toString())
                .collect(Collectors.joining(File.pathSeparator));
        assertEquals(
                0,
                ToolProvider.getSystemJavaCompiler()
                        .run(null, null, null, "-proc:none", "-cp", classPath, source.toString()));
        Path output = directory.resolve("output.txt");
        int status = new ProcessBuilder(List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp",
                        directory + File.pathSeparator + classPath,
                        "WordCount"))
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start()
                .waitFor();
        String printed = Files.readString(output);
        assertEquals(0, status, printed);
        assertEquals(block(page, "text"), printed);
    }
}
