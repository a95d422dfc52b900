package dev.esker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program that docs/java.md begins with, that of README.md, and where there is no native library. */
class ProgramTest {
    @TempDir Path directory;

    /** The directory bindings/java/esker, in which Maven runs the tests. */
    private static final Path HERE = Path.of("").toAbsolutePath();

    private static String block(Path page, String language) throws IOException {
        Matcher block =
                Pattern.compile("```" + language + "\n(.*?)```", Pattern.DOTALL).matcher(Files.readString(page));
        assertTrue(block.find(), page + " has no block of " + language);
        return block.group(1);
    }

    private record Ended(int status, String output) {}

    private Ended run(String... arguments) throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        if (Runtime.version().feature() >= 22) {
            // What docs/java.md names against a warning, which would be part of the output.
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.addAll(List.of(arguments));
        Path output = directory.resolve("output");
        Process process =
                new ProcessBuilder(command)
                        .directory(directory.toFile())
                        .redirectErrorStream(true)
                        .redirectOutput(output.toFile())
                        .start();
        int status = process.waitFor();
        return new Ended(status, Files.readString(output));
    }

    /** What is under test, and a place for what is compiled. */
    private String classPath() {
        return HERE.resolve("target/classes") + ":" + directory;
    }

    private String printedBy(String program) throws Exception {
        Path source = directory.resolve("First.java");
        Files.writeString(source, program);
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        assertNotNull(compiler, "the tests need a JDK");
        int status = compiler.run(null, null, null, "-Xlint:all,-try", "-Werror", "-cp", classPath(), source.toString());
        assertEquals(0, status, "the program does not compile");
        Ended ended = run("-cp", classPath(), "First");
        assertEquals(0, ended.status(), ended.output());
        return ended.output();
    }

    @Test
    void theFirstProgramOfTheGuide() throws Exception {
        Path guide = HERE.resolve("../../../docs/java.md").normalize();
        assertEquals(block(guide, "text"), printedBy(block(guide, "java")));
    }

    @Test
    void theProgramOfTheReadme() throws Exception {
        assertEquals("world\n", printedBy(block(HERE.resolve("../README.md"), "java")));
    }

    @Test
    void whereThereIsNoNativeLibrary() throws Exception {
        String program =
                "public class First {\n"
                        + "  public static void main(String[] arguments) {\n"
                        + "    for (int i = 0; i < 2; i++) {\n"
                        + "      try {\n"
                        + "        dev.esker.Database.open(java.nio.file.Path.of(\"db\"));\n"
                        + "      } catch (dev.esker.EskerException expected) {\n"
                        + "        System.out.println(expected.code() + \": \" + expected.getMessage());\n"
                        + "      }\n"
                        + "    }\n"
                        + "  }\n"
                        + "}\n";
        Files.writeString(directory.resolve("First.java"), program);
        ToolProvider.getSystemJavaCompiler().run(null, null, null, "-cp", classPath(), directory.resolve("First.java").toString());
        Ended elsewhere = run("-Dos.arch=pdp11", "-cp", classPath(), "First");
        assertEquals(0, elsewhere.status(), elsewhere.output());
        String line =
                "NO_LIBRARY: this jar of Esker has no native library for linux-pdp11: build it on that platform,"
                        + " or name a library by -Desker.library=FILE\n";
        assertEquals(line + line, elsewhere.output());
        Ended none = run("-Desker.library=/nothing/here.so", "-cp", classPath(), "First");
        assertTrue(none.output().startsWith("NO_LIBRARY: the native library of Esker cannot be loaded: "), none.output());
    }

    @Test
    void namesOfPlatforms() {
        assertEquals("linux-x86_64", NativeLibrary.platform("Linux", "amd64"));
        assertEquals("linux-aarch64", NativeLibrary.platform("Linux", "aarch64"));
        assertEquals("macos-aarch64", NativeLibrary.platform("Mac OS X", "arm64"));
        assertFalse(NativeLibrary.platform("Windows 11", "amd64").contains(" "));
    }

    /** Gets take values in two ways: both find the same, whichever is asked for. */
    @Test
    void bothWaysOfGets() throws Exception {
        String program =
                "import dev.esker.*;\n"
                        + "public class First {\n"
                        + "  public static void main(String[] arguments) {\n"
                        + "    try (Database database = Database.open(java.nio.file.Path.of(\"db\"));\n"
                        + "        Keyspace keyspace = database.keyspace(\"default\")) {\n"
                        + "      for (int size : new int[] {0, 10, 4096, 4097, 100_000}) {\n"
                        + "        keyspace.put(new byte[0], new byte[size]);\n"
                        + "        System.out.print(keyspace.get(new byte[0]).length + \" \");\n"
                        + "      }\n"
                        + "      System.out.println(keyspace.get(new byte[1]));\n"
                        + "    }\n"
                        + "  }\n"
                        + "}\n";
        Files.writeString(directory.resolve("First.java"), program);
        ToolProvider.getSystemJavaCompiler().run(null, null, null, "-cp", classPath(), directory.resolve("First.java").toString());
        for (String how : List.of("copy", "value", "")) {
            Ended ended = run("-Desker.get=" + how, "-cp", classPath(), "First");
            assertEquals("0 10 4096 4097 100000 null\n", ended.output());
        }
    }
}
