package dev.esker;

/**
 * Decides about entries that compactions come upon and that no snapshot sees. It is given to
 * {@link Options#compactionFilter} under a name, which keyspaces store.
 *
 * <p>When it is called for an entry is not defined, except that {@link Keyspace#compact} calls it for
 * all; so a filter is no way to hide entries. Many threads call it at once, threads of the engine. It must
 * not call the database. If it throws an exception, that is reported as {@link Options} says, and the
 * entry stays.
 */
@FunctionalInterface
public interface CompactionFilter {
    /**
     * Decides about an entry.
     *
     * @param key its key
     * @param value its value
     * @return what becomes of it, not null
     */
    Decision filter(byte[] key, byte[] value);

    /** What becomes of an entry. */
    final class Decision {
        /** The entry stays. */
        public static final Decision KEEP = new Decision(Callbacks.KEEP);

        /** The entry is removed. */
        public static final Decision REMOVE = new Decision(Callbacks.REMOVE);

        final byte[] answer;

        private Decision(byte[] answer) {
            this.answer = answer;
        }

        /**
         * The entry gets another value.
         *
         * @param value the value
         * @return the decision
         */
        public static Decision change(byte[] value) {
            return new Decision(value.clone());
        }
    }
}
