package dev.esker;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * Finds and loads the native library. It is in the jar; the property {@code esker.library} names a file
 * that is loaded instead.
 */
final class NativeLibrary {
    private NativeLibrary() {}

    private static boolean loaded;
    private static EskerException failure;

    /**
     * Loads the library on the first call. If that fails, this and each later call says why: an error of
     * a class's initialisation would be clear only the first time.
     */
    static void load() {
        if (!Loaded.LOADED) {
            throw EskerException.make(ErrorCode.NO_LIBRARY, failure.getMessage(), failure.getCause());
        }
    }

    /** Makes the check after the first one free. */
    private static final class Loaded {
        static final boolean LOADED = tryToLoad();
    }

    private static synchronized boolean tryToLoad() {
        try {
            find();
            loaded = true;
        } catch (EskerException why) {
            failure = why;
        } catch (IOException | LinkageError | SecurityException why) {
            failure =
                    EskerException.make(
                            ErrorCode.NO_LIBRARY,
                            "the native library of Esker cannot be loaded: " + why.getMessage(),
                            why);
        }
        return loaded;
    }

    private static void find() throws IOException {
        String given = System.getProperty("esker.library");
        if (given != null) {
            System.load(Path.of(given).toAbsolutePath().toString());
        } else {
            loadFromJar();
        }
        switch (System.getProperty("esker.get", "")) {
            case "copy":
                Native.setGetMode(1);
                break;
            case "value":
                Native.setGetMode(2);
                break;
            default:
        }
    }

    private static void loadFromJar() throws IOException {
        String platform = platform(System.getProperty("os.name"), System.getProperty("os.arch"));
        String name = platform.startsWith("macos") ? "libeskerjni.dylib" : "libeskerjni.so";
        String resource = "native/" + platform + "/" + name;
        try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
            if (library == null) {
                throw EskerException.make(
                        ErrorCode.NO_LIBRARY,
                        "this jar of Esker has no native library for "
                                + platform
                                + ": build it on that platform, or name a library by -Desker.library=FILE");
            }
            Path directory = Files.createTempDirectory("esker");
            Path file = directory.resolve(name);
            try {
                Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
                System.load(file.toString());
            } finally {
                // The mapping stays; only the names go.
                Files.deleteIfExists(file);
                Files.deleteIfExists(directory);
            }
        }
    }

    /** The name of a platform, as build.sh has it. */
    static String platform(String system, String machine) {
        String os = system.toLowerCase(Locale.ROOT);
        String name = os.startsWith("mac") ? "macos" : os.startsWith("linux") ? "linux" : os.replace(' ', '-');
        String arch = machine.toLowerCase(Locale.ROOT);
        if (arch.equals("amd64")) {
            arch = "x86_64";
        } else if (arch.equals("arm64")) {
            arch = "aarch64";
        }
        return name + "-" + arch;
    }
}
