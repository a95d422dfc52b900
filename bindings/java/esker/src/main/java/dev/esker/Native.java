package dev.esker;

import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * The functions of the native library.
 *
 * <p>They rely on their callers: a number is a handle that lives until the call has returned and that no
 * other thread uses where one thread may use it at a time, a direct buffer is direct, and a place in a
 * buffer or array lies within it. Only classes of this package call them, under a {@link SharedHandle} or
 * an {@link ExclusiveHandle}.
 */
final class Native {
    private Native() {}

    static native byte[] version();

    static native void setGetMode(int mode);

    // Options: options.c, callbacks.c.

    static native long optionsNew();

    static native void optionsFree(long options);

    static native void optionsSet(long options, int option, long value);

    static native void optionsAddComparator(long options, long comparator);

    static native void optionsAddMergeOperator(long options, byte[] name, MergeOperator operator);

    static native void optionsAddCompactionFilter(long options, byte[] name, CompactionFilter filter);

    static native void optionsSetClock(long options, LongSupplier clock);

    static native void optionsSetListener(long options, Consumer<? super String> listener);

    static native long comparatorNew(byte[] name, OpenComparator comparator);

    static native void comparatorFree(long comparator);

    static native long keyspaceOptionsNew();

    static native void keyspaceOptionsFree(long options);

    static native void keyspaceOptionsSetComparator(long options, long comparator);

    static native void keyspaceOptionsSetMergeOperator(long options, byte[] name);

    static native void keyspaceOptionsSetCompactionFilter(long options, byte[] name);

    static native void keyspaceOptionsSetTtl(long options, long milliseconds);

    // Databases: database.c.

    static native long databaseOpen(byte[] path, long options);

    static native void databaseClose(long database);

    static native void databaseFree(long database);

    static native byte[] databaseId(long database);

    static native byte[] databaseBranchName(long database);

    static native long databaseMadeAt(long database);

    static native long databaseKeyspace(long database, byte[] name, long options);

    static native byte[][] databaseNames(long database, int of);

    static native boolean databaseDrop(long database, byte[] name, int of);

    static native long databaseBranch(long database, byte[] name, int how);

    static native void databaseNameSnapshot(long database, byte[] name);

    static native void databaseCheckpoint(long database, byte[] path);

    static native void databaseSync(long database);

    static native void databaseWaitDurable(long database, long position);

    static native void databaseWaitUntilIdle(long database);

    static native void databaseFlush(long database, BooleanSupplier until);

    static native void databaseCompact(long database, BooleanSupplier until);

    static native byte[] databaseStats(long database);

    static native byte[] databaseOpenMetrics(long database);

    static native byte[] databaseVerify(long database, BooleanSupplier until, long[] found);

    static native long databaseWrite(long database, long batch, int durability, boolean waits);

    static native byte[] repair(byte[] path, byte[] to, long options, boolean[] whole);

    // Keyspaces: keyspace.c, ranges.c.

    static native void keyspaceFree(long keyspace);

    static native byte[] keyspaceComparator(long keyspace);

    static native byte[] keyspaceMergeOperator(long keyspace);

    static native long keyspaceTtl(long keyspace);

    static native void keyspaceSetTtl(long keyspace, long milliseconds);

    static native byte[] keyspaceGet(long keyspace, byte[] key);

    static native int keyspaceGetInto(long keyspace, byte[] key, ByteBuffer buffer, int at, int capacity);

    static native int keyspaceGetDirect(
            long keyspace, ByteBuffer key, int keyAt, int keyLength, ByteBuffer buffer, int at, int capacity);

    static native long keyspaceGetValue(long keyspace, long snapshot, byte[] key);

    static native ByteBuffer valueBuffer(long value);

    static native int valueLength(long value);

    static native byte[] valueTake(long value);

    static native void valueFree(long value);

    static native boolean keyspaceContains(long keyspace, byte[] key);

    static native byte[][] keyspaceMultiGet(long keyspace, byte[][] keys);

    static native void keyspacePut(long keyspace, byte[] key, byte[] value, int durability);

    static native void keyspacePutDirect(
            long keyspace,
            ByteBuffer key,
            int keyAt,
            int keyLength,
            ByteBuffer value,
            int valueAt,
            int valueLength,
            int durability);

    static native void keyspacePutTtl(long keyspace, byte[] key, byte[] value, long milliseconds);

    static native void keyspaceTryPut(long keyspace, byte[] key, byte[] value);

    static native long keyspacePutFrom(long keyspace, byte[] key, InputStream stream);

    static native void keyspaceMerge(long keyspace, byte[] key, byte[] operand, int durability);

    static native void keyspaceDelete(long keyspace, byte[] key, int durability, boolean waits);

    static native boolean keyspaceCompareAndSet(long keyspace, byte[] key, byte[] expected, byte[] value);

    static native boolean keyspaceInsertIfAbsent(long keyspace, byte[] key, byte[] value);

    static native void keyspaceDeleteRange(long keyspace, byte[] start, byte[] end, int durability);

    static native void keyspaceDeletePrefix(long keyspace, byte[] prefix, int durability);

    static native void keyspaceClear(long keyspace, int durability);

    static native long keyspaceCount(long keyspace, byte[] start, byte[] end);

    static native void keyspaceApproximateCount(long keyspace, byte[] start, byte[] end, long[] counted);

    static native long keyspaceApproximateSize(long keyspace, byte[] start, byte[] end);

    static native byte[][] keyspaceSplitPoints(long keyspace, byte[] start, byte[] end, int parts);

    static native void keyspaceCompact(long keyspace, byte[] start, byte[] end, BooleanSupplier until);

    static native byte[] keyspaceSegments(long keyspace);

    static native byte[] keyspaceExplainGet(long keyspace, long snapshot, byte[] key);

    static native byte[] keyspaceExplainScan(long keyspace, byte[] start, byte[] end, long limit);

    static native byte[] keyspaceExplainPut(long keyspace, byte[] key, byte[] value);

    // Cursors: iterator.c.

    static native long cursorNew(long keyspace, long snapshot, byte[] start, byte[] end);

    static native long cursorNewPrefix(long keyspace, long snapshot, byte[] prefix);

    static native void cursorFree(long cursor);

    static native long cursorFill(long cursor, int how, byte[] key, ByteBuffer buffer, int capacity, int most);

    static native long cursorRefill(long cursor, int how, ByteBuffer buffer, int capacity, int most);

    static native long keyspaceScan(
            long keyspace,
            byte[] start,
            byte[] end,
            int how,
            byte[] from,
            ByteBuffer buffer,
            int capacity,
            int most);

    // Snapshots and readers: snapshot.c.

    static native long snapshotNew(long database, byte[] label);

    static native void snapshotFree(long snapshot);

    static native long snapshotPosition(long snapshot);

    static native byte[] snapshotGet(long snapshot, long keyspace, byte[] key);

    static native boolean snapshotContains(long snapshot, long keyspace, byte[] key);

    static native byte[][] snapshotMultiGet(long snapshot, long keyspace, byte[][] keys);

    static native long readerNew(long keyspace, long snapshot, byte[] key);

    static native void readerFree(long reader);

    static native long readerLength(long reader);

    static native void readerSeek(long reader, long offset);

    static native int readerRead(long reader, byte[] into, int at, int most);

    static native int readerReadDirect(long reader, ByteBuffer buffer, int at, int most);

    // Batches: batch.c.

    static native long batchNew();

    static native void batchFree(long batch);

    static native long batchLength(long batch);

    static native void batchClear(long batch);

    static native void batchPut(long batch, long keyspace, byte[] key, byte[] value);

    static native void batchPutDirect(
            long batch,
            long keyspace,
            ByteBuffer key,
            int keyAt,
            int keyLength,
            ByteBuffer value,
            int valueAt,
            int valueLength);

    static native void batchPutTtl(long batch, long keyspace, byte[] key, byte[] value, long milliseconds);

    static native void batchMerge(long batch, long keyspace, byte[] key, byte[] operand);

    static native void batchDelete(long batch, long keyspace, byte[] key);

    static native void batchDeleteRange(long batch, long keyspace, byte[] start, byte[] end);

    static native void batchDeletePrefix(long batch, long keyspace, byte[] prefix);

    // Transactions: transaction.c.

    static native long transactionBegin(long database, int durability, long lockTimeout);

    static native void transactionFree(long transaction);

    static native long transactionCommit(long transaction);

    static native void transactionRollback(long transaction);

    static native long transactionSavepoint(long transaction);

    static native void transactionRollbackTo(long transaction, long savepoint);

    static native byte[] transactionGet(long transaction, long keyspace, byte[] key, int how);

    static native boolean transactionContains(long transaction, long keyspace, byte[] key);

    static native byte[][] transactionMultiGet(long transaction, long keyspace, byte[][] keys);

    static native void transactionPut(long transaction, long keyspace, byte[] key, byte[] value);

    static native void transactionPutTtl(
            long transaction, long keyspace, byte[] key, byte[] value, long milliseconds);

    static native void transactionMerge(long transaction, long keyspace, byte[] key, byte[] operand);

    static native void transactionDelete(long transaction, long keyspace, byte[] key);

    static native void transactionDeleteRange(long transaction, long keyspace, byte[] start, byte[] end);

    static native long transactionIterNew(long transaction, long keyspace, byte[] start, byte[] end);

    static native long transactionIterNewPrefix(long transaction, long keyspace, byte[] prefix);

    static native void transactionIterFree(long iter);

    static native void transactionIterSeek(long iter, byte[] key);

    static native byte[][] transactionIterTake(long iter, boolean back);

    // Ingestions: ingestion.c.

    static native long ingestionBegin(long database);

    static native void ingestionFree(long ingestion);

    static native void ingestionPut(long ingestion, long keyspace, byte[] key, byte[] value);

    static native void ingestionPutMany(
            long ingestion, long keyspace, byte[][] keys, byte[][] values, long[] added);

    static native void ingestionPutTtl(long ingestion, long keyspace, byte[] key, byte[] value, long milliseconds);

    static native void ingestionMerge(long ingestion, long keyspace, byte[] key, byte[] operand);

    static native void ingestionDelete(long ingestion, long keyspace, byte[] key);

    static native void ingestionDeleteRange(long ingestion, long keyspace, byte[] start, byte[] end);

    static native long ingestionPutFrom(long ingestion, long keyspace, byte[] key, InputStream stream);

    static native void ingestionSync(long ingestion);

    static native void ingestionJoin(long ingestion, long other);

    static native void ingestionCommit(long ingestion);
}
