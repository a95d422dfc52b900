package dev.esker.kafka;

import java.util.function.Supplier;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;

/** Answers to interactive queries that Kafka's own code does not give. */
final class Queries {
    private Queries() {}

    /** The answer that a store gives itself, if it has seen what the bound demands. */
    static QueryResult<?> answer(
            StateStore store,
            StateStoreContext context,
            PositionBound bound,
            QueryConfig config,
            Supplier<?> answer) {
        Position position = store.getPosition();
        synchronized (position) {
            QueryResult<?> result;
            int partition = context.taskId().partition();
            if (Internals.isUpTo(position, bound, partition)) {
                try {
                    result = QueryResult.forResult(answer.get());
                } catch (RuntimeException e) {
                    result = QueryResult.forFailure(FailureReason.STORE_EXCEPTION, e.toString());
                }
            } else {
                result = QueryResult.notUpToBound(position, bound, partition);
            }
            if (config.isCollectExecutionInfo()) {
                result.addExecutionInfo("Handled in " + store.getClass());
            }
            result.setPosition(position.copy());
            return result;
        }
    }

    /**
     * The answer of stores with headers: Kafka Streams 4.3 does not say what an answer of theirs looks like,
     * and RocksDB's stores with headers know no query either.
     */
    static <R> QueryResult<R> unknown(StateStore store, Query<R> query, QueryConfig config) {
        QueryResult<R> result = QueryResult.forUnknownQueryType(query, store);
        if (config.isCollectExecutionInfo()) {
            result.addExecutionInfo("Handled in " + store.getClass());
        }
        synchronized (store.getPosition()) {
            result.setPosition(store.getPosition().copy());
        }
        return result;
    }
}
