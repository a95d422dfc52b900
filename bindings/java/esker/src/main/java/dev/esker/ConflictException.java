package dev.esker;

/**
 * A transaction met another one: {@link ErrorCode#CONFLICT}, {@link ErrorCode#DEADLOCK} or {@link
 * ErrorCode#LOCK_TIMEOUT}. Begin a new one.
 */
public final class ConflictException extends EskerException {
    private static final long serialVersionUID = 1;

    ConflictException(ErrorCode code, String message, Throwable cause) {
        super(code, message, cause);
    }
}
