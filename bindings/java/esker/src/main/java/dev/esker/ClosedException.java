package dev.esker;

/** The database, or the object of the call, was closed: {@link ErrorCode#CLOSED}. */
public final class ClosedException extends EskerException {
    private static final long serialVersionUID = 1;

    ClosedException(ErrorCode code, String message, Throwable cause) {
        super(code, message, cause);
    }
}
