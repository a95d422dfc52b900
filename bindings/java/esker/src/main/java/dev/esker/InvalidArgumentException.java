package dev.esker;

/**
 * The call does not accept an argument: {@link ErrorCode#INVALID_ARGUMENT}, a limit or an order
 * that was not kept.
 */
public final class InvalidArgumentException extends EskerException {
    private static final long serialVersionUID = 1;

    InvalidArgumentException(ErrorCode code, String message, Throwable cause) {
        super(code, message, cause);
    }
}
