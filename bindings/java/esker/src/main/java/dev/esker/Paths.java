package dev.esker;

import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Paths as the bytes of the system, and back. */
final class Paths {
    private Paths() {}

    /**
     * The bytes of the absolute path. They come from its URI, which has them exactly, also where the
     * locale of the process cannot say them.
     */
    static byte[] bytes(Path path) {
        if (!"file".equals(path.getFileSystem().provider().getScheme())) {
            throw EskerException.make(
                    ErrorCode.INVALID_ARGUMENT, path + " is not a path of the default file system");
        }
        String raw = path.toAbsolutePath().toUri().getRawPath();
        int end = raw.length();
        while (end > 1 && raw.charAt(end - 1) == '/') {
            end--;
        }
        byte[] bytes = new byte[end];
        int length = 0;
        for (int i = 0; i < end; i++) {
            char c = raw.charAt(i);
            if (c == '%') {
                bytes[length++] = (byte) Integer.parseInt(raw.substring(i + 1, i + 3), 16);
                i += 2;
            } else {
                bytes[length++] = (byte) c;
            }
        }
        return java.util.Arrays.copyOf(bytes, length);
    }

    /** A path of the system as text, for people. */
    static String text(byte[] path) {
        return new String(path, CHARSET);
    }

    private static final Charset CHARSET = charset();

    private static Charset charset() {
        try {
            return Charset.forName(System.getProperty("sun.jnu.encoding", "UTF-8"));
        } catch (IllegalArgumentException unknown) {
            return StandardCharsets.UTF_8;
        }
    }
}
