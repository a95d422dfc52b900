package dev.esker;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.OptionalLong;

/**
 * A call failed. The message is one line that names what failed and the remedy; the methods give what
 * else is known about it.
 *
 * <pre>{@code
 * try {
 *     keyspace.get(key);
 * } catch (CorruptionException damage) {
 *     log(damage.path() + " at " + damage.offset() + " in " + damage.section());
 * } catch (EskerException other) {
 *     log(other.code() + ": " + other.getMessage());
 * }
 * }</pre>
 */
public class EskerException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The kind of failure; what else is known is not sent with the exception. */
    private final ErrorCode code;

    /** Set once, by {@link #make}, before anybody else has the exception. */
    private transient Details details = Details.NONE;

    EskerException(ErrorCode code, String message, Throwable cause) {
        super(message, cause);
        this.code = code;
    }

    /** What is known beside the message. */
    private record Details(
            String path,
            OptionalLong offset,
            String section,
            String keyspace,
            String branch,
            byte[] lowKey,
            byte[] highKey,
            int osCode,
            Duration retryAfter) {
        static final Details NONE =
                new Details(null, OptionalLong.empty(), null, null, null, null, null, 0, Duration.ZERO);
    }

    /**
     * What kind of failure it is.
     *
     * @return the code, never null
     */
    public final ErrorCode code() {
        return code;
    }

    private Details details() {
        // Null after it was read from a stream: what is known stays where the failure was.
        return details == null ? Details.NONE : details;
    }

    /**
     * The file or directory that the failure concerns.
     *
     * @return the path, or null
     */
    public final String path() {
        return details().path;
    }

    /**
     * Where the damage lies in the file.
     *
     * @return the offset in bytes, or nothing
     */
    public final OptionalLong offset() {
        return details().offset;
    }

    /**
     * The damaged part of the file format, such as {@code block}.
     *
     * @return its name, or null
     */
    public final String section() {
        return details().section;
    }

    /**
     * The keyspace that the failure concerns.
     *
     * @return its name, or null
     */
    public final String keyspace() {
        return details().keyspace;
    }

    /**
     * The branch or named snapshot that the failure concerns.
     *
     * @return its name, or null
     */
    public final String branch() {
        return details().branch;
    }

    /**
     * The key of a conflict, or the lowest key that damage may concern.
     *
     * @return the key, or null if none is known
     */
    public final byte[] lowKey() {
        return copy(details().lowKey);
    }

    /**
     * The key of a conflict, or the key up to which damage may reach.
     *
     * @return the key, or null if none is known
     */
    public final byte[] highKey() {
        return copy(details().highKey);
    }

    /**
     * The operating system's number for a failure of code {@link ErrorCode#IO}.
     *
     * @return the number ({@code errno}), or 0
     */
    public final int osCode() {
        return details().osCode;
    }

    /**
     * After which time it is worth to repeat a call that failed with {@link ErrorCode#WOULD_BLOCK}: an
     * estimate.
     *
     * @return the time, or zero for other failures
     */
    public final Duration retryAfter() {
        return details().retryAfter;
    }

    private static byte[] copy(byte[] bytes) {
        return bytes == null ? null : bytes.clone();
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    /** Called by the native library, in one place. */
    static EskerException make(
            int number,
            byte[] message,
            byte[] path,
            boolean hasOffset,
            long offset,
            byte[] section,
            byte[] keyspace,
            byte[] branch,
            byte[] lowKey,
            byte[] highKey,
            int osCode,
            long retryAfterMicros,
            EskerException cause) {
        EskerException made = make(ErrorCode.of(number), text(message), cause);
        made.details =
                new Details(
                        path == null ? null : Paths.text(path),
                        hasOffset ? OptionalLong.of(offset) : OptionalLong.empty(),
                        text(section),
                        text(keyspace),
                        text(branch),
                        lowKey,
                        highKey,
                        osCode,
                        Duration.of(retryAfterMicros, ChronoUnit.MICROS));
        return made;
    }

    /** The exception of the class that belongs to the code. */
    static EskerException make(ErrorCode code, String message, Throwable cause) {
        switch (code) {
            case IO:
                return new EskerIoException(code, message, cause);
            case CORRUPTION:
                return new CorruptionException(code, message, cause);
            case DISK_FULL:
                return new DiskFullException(code, message, cause);
            case CLOSED:
                return new ClosedException(code, message, cause);
            case CONFLICT:
            case DEADLOCK:
            case LOCK_TIMEOUT:
                return new ConflictException(code, message, cause);
            case WOULD_BLOCK:
                return new WouldBlockException(code, message, cause);
            case INVALID_ARGUMENT:
            case KEY_TOO_LONG:
            case VALUE_TOO_LARGE:
            case BATCH_TOO_LARGE:
            case OUT_OF_ORDER:
                return new InvalidArgumentException(code, message, cause);
            case MISUSE:
                return new MisuseException(code, message, cause);
            default:
                return new EskerException(code, message, cause);
        }
    }

    static EskerException make(ErrorCode code, String message) {
        return make(code, message, null);
    }
}
