package dev.esker;

/** The operating system refused an operation on a file: {@link ErrorCode#IO}. */
public final class EskerIoException extends EskerException {
    private static final long serialVersionUID = 1;

    EskerIoException(ErrorCode code, String message, Throwable cause) {
        super(code, message, cause);
    }
}
