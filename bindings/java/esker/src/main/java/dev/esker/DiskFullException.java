package dev.esker;

/**
 * The device is full: {@link ErrorCode#DISK_FULL}. Writes go on by themselves when it has space
 * again.
 */
public final class DiskFullException extends EskerException {
    private static final long serialVersionUID = 1;

    DiskFullException(ErrorCode code, String message, Throwable cause) {
        super(code, message, cause);
    }
}
