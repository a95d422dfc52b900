package dev.esker;

/**
 * A call that does not wait would have had to: {@link ErrorCode#WOULD_BLOCK}. Nothing was written;
 * see {@link #retryAfter}.
 */
public final class WouldBlockException extends EskerException {
    private static final long serialVersionUID = 1;

    WouldBlockException(ErrorCode code, String message, Throwable cause) {
        super(code, message, cause);
    }
}
