package dev.esker;

/** Bytes on disk differ from what was written: {@link ErrorCode#CORRUPTION}. */
public final class CorruptionException extends EskerException {
    private static final long serialVersionUID = 1;

    CorruptionException(ErrorCode code, String message, Throwable cause) {
        super(code, message, cause);
    }
}
