/**
 * Esker, an embedded, ordered key-value store: a map on disk with ranges, snapshots, transactions and
 * atomic batches.
 *
 * <p>A {@link dev.esker.Database} is a directory. It has any number of named {@link dev.esker.Keyspace}s,
 * each an ordered map from bytes to bytes:
 *
 * <pre>{@code
 * try (Database database = Database.open(Path.of("my-database"));
 *         Keyspace people = database.keyspace("people")) {
 *     people.put("ann".getBytes(UTF_8), "engineer".getBytes(UTF_8));
 *     byte[] work = people.get("ann".getBytes(UTF_8));
 * }
 * }</pre>
 *
 * <p><b>Bytes.</b> Arrays that are given are copied during the call; arrays that are returned belong to
 * the caller. An argument of a reference type must not be null unless its description says what null
 * means there; otherwise the call throws {@link java.lang.NullPointerException}.
 *
 * <p><b>Closing.</b> Everything that holds something of the engine is {@link java.lang.AutoCloseable}. It
 * may be closed at any time, in any order, from any thread, and more than once. A call on what was closed
 * throws {@link dev.esker.ClosedException}. What becomes unreachable without having been closed is freed
 * by the garbage collector some time later, and reported to {@link dev.esker.Leaks}.
 *
 * <p><b>Errors</b> are {@link dev.esker.EskerException}s, which are unchecked, and tell what the engine
 * knows about the failure.
 *
 * <p><b>Threads.</b> Databases, keyspaces, snapshots and maps may be used by many threads at once. Batches,
 * transactions, cursors, ingestions and readers of values are for one thread at a time: a call during the
 * call of another thread throws {@link dev.esker.MisuseException}.
 */
package dev.esker;
