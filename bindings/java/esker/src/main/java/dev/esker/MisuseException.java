package dev.esker;

/**
 * The call is wrong in this state, such as one during the call of another thread: {@link
 * ErrorCode#MISUSE}.
 */
public final class MisuseException extends EskerException {
    private static final long serialVersionUID = 1;

    MisuseException(ErrorCode code, String message, Throwable cause) {
        super(code, message, cause);
    }
}
