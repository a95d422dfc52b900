package dev.esker.kafka;

import dev.esker.EskerException;
import java.util.Set;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.TaskId;

/** Exceptions of the engine as those that Kafka Streams expects of a store. */
final class Failures {
    private Failures() {}

    /** Whether the data is damaged, so that only another copy of it helps. */
    static boolean isDamage(EskerException failure) {
        return switch (failure.code()) {
            case CORRUPTION, UNKNOWN_FORMAT, UNFINISHED -> true;
            default -> false;
        };
    }

    /**
     * The exception of a store.
     *
     * @param what what failed, such as {@code reading from store counts}
     * @param task the task whose store it is; a task below 0 is the one of global stores, which Kafka
     *     cannot restore by itself while they run
     */
    static StreamsException of(EskerException failure, String what, String store, TaskId task) {
        switch (failure.code()) {
            case CLOSED, KEYSPACE_DROPPED:
                return new InvalidStateStoreException("Store " + store + " is currently closed", failure);
            default:
                break;
        }
        ProcessorStateException typed =
                new ProcessorStateException("Error while " + what + ": " + failure.getMessage(), failure);
        if (isDamage(failure) && task != null && task.subtopology() >= 0) {
            return new TaskCorruptedException(Set.of(task), typed);
        }
        return typed;
    }
}
