package dev.esker;

/**
 * Combines a value with operands, which {@link Keyspace#merge} writes without reading the value. It is
 * given to {@link Options#mergeOperator} under a name, which keyspaces store.
 *
 * <p>Many threads call it at once, also threads of the engine. The same arguments must always give the
 * same result. It must not call the database. If it throws an exception, that is reported as
 * {@link Options} says, reads of the key throw an exception with {@link ErrorCode#MERGE_FAILED}, and the
 * operands are kept.
 *
 * <pre>{@code
 * MergeOperator longest = (key, existing, operands) -> {
 *     byte[] best = existing;
 *     for (byte[] operand : operands) {
 *         if (best == null || operand.length > best.length) {
 *             best = operand;
 *         }
 *     }
 *     return best;
 * };
 * }</pre>
 */
@FunctionalInterface
public interface MergeOperator {
    /**
     * Applies operands to the value of a key.
     *
     * @param key the key
     * @param existing its value, or null if it has none
     * @param operands the operands, from old to new
     * @return the new value, or null for none
     */
    byte[] fullMerge(byte[] key, byte[] existing, byte[][] operands);

    /**
     * Combines several operands into one with the same effect. It saves space and time where it can; the
     * default does not.
     *
     * @param key the key
     * @param operands the operands, from old to new
     * @return the operand, or null: the operands stay as they are
     */
    default byte[] partialMerge(byte[] key, byte[][] operands) {
        return null;
    }
}
