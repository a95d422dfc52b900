package dev.esker.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.esker.Batch;
import dev.esker.Cursor;
import dev.esker.Database;
import dev.esker.EskerException;
import dev.esker.Keyspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The database of an application in this process. The first store that needs it opens it, and the last one
 * that is closed closes it. Each store of a task has a keyspace. One more keyspace says of each of them where
 * its file is, and holds what a store keeps beside its entries: offsets, position, and whether it was closed.
 * All of it is in one log, so an offset on the disk is never ahead of the entries before it.
 */
final class StoreDatabase {
    private static final Logger LOG = LoggerFactory.getLogger(StoreDatabase.class);

    /** The databases that are open, by their directories. */
    private static final ConcurrentHashMap<Path, StoreDatabase> OPEN = new ConcurrentHashMap<>();

    private static final SecureRandom RANDOM = new SecureRandom();

    /** The keyspace beside those of the stores: keys are the name of a store's keyspace, a 0 and a field. */
    private static final String DIRECTORY = "stores";

    /** The field with the path of the store's file. */
    private static final String PATH = "path";

    /** How much of a store's name the name of its keyspace holds, so that it is no longer than 255 bytes. */
    private static final int LONGEST_NAME = 120;

    private final Path path;
    private final Database database;
    private final Keyspace directory;
    private final DatabaseMetrics metrics;
    private int users;

    /** Whether it was closed though it has users. */
    private boolean retired;

    /** The paths of stores that are open, and how often. */
    private final Map<String, Integer> opened = new HashMap<>();

    /** The paths of stores that one of those who opened them has for itself. */
    private final Set<String> claimed = new HashSet<>();

    private StoreDatabase(Path path, Database database) {
        this.path = path;
        this.database = database;
        this.directory = database.keyspace(DIRECTORY);
        this.metrics = new DatabaseMetrics(database);
    }

    /** Opens the database in a directory, or counts one more user of it. */
    static StoreDatabase acquire(Path path, StoreSettings settings) {
        return OPEN.compute(path, (key, open) -> {
            StoreDatabase used = open != null ? open : open(key, settings);
            used.users++;
            return used;
        });
    }

    private static StoreDatabase open(Path path, StoreSettings settings) {
        try {
            Files.createDirectories(path.getParent());
            Leftovers.opened(path);
            StoreDatabase opened = new StoreDatabase(path, openOrSetAside(path, settings));
            try {
                opened.sweep();
            } catch (EskerException e) {
                opened.close();
                throw e;
            }
            return opened;
        } catch (EskerException e) {
            throw new ProcessorStateException("Error opening the database " + path + ": " + e.getMessage(), e);
        } catch (IOException e) {
            throw new ProcessorStateException("Error opening the database " + path, e);
        }
    }

    /**
     * A database that is too damaged to be opened is moved aside, and replaced by a new one. Its stores have
     * no offsets then, so Kafka restores them from their changelogs.
     */
    private static Database openOrSetAside(Path path, StoreSettings settings) throws IOException {
        try {
            return Database.open(path, settings.options());
        } catch (EskerException e) {
            if (!Failures.isDamage(e)) {
                throw e;
            }
            Path aside = path.resolveSibling(path.getFileName() + ".damaged");
            LOG.error("The database {} is damaged. It is moved to {}; its stores are restored from their changelogs, "
                    + "and those without a changelog are empty", path, aside, e);
            Leftovers.delete(aside);
            Files.move(path, aside);
            return Database.open(path, settings.options());
        }
    }

    /** Counts one user less; the last one closes the database. */
    void release() {
        OPEN.compute(path, (key, open) -> {
            users--;
            if (users > 0 || retired) {
                return open;
            }
            closeAndTell();
            Leftovers.closed(path);
            return null;
        });
    }

    /**
     * Closes a database that writes no more, for all who use it: their calls fail then, their tasks end, and the
     * next one to open a store opens the database again.
     */
    void retire() {
        OPEN.computeIfPresent(path, (key, open) -> {
            if (open != this) {
                return open;
            }
            LOG.error("The database {} writes no more: it is closed, and opened again for the next store", path);
            retired = true;
            closeAndTell();
            return null;
        });
    }

    private void closeAndTell() {
        try {
            close();
        } catch (EskerException e) {
            LOG.error("Error closing the database {}", path, e);
        }
    }

    private void close() {
        directory.close();
        database.close();
    }

    Database database() {
        return database;
    }

    DatabaseMetrics metrics() {
        return metrics;
    }

    Keyspace directory() {
        return directory;
    }

    /** Drops the keyspaces of stores whose files Kafka has deleted, and what a crash has left over. */
    synchronized void sweep() {
        Map<String, String> paths = new HashMap<>();
        Set<String> known = new HashSet<>();
        try (Cursor cursor = directory.cursor()) {
            while (cursor.next()) {
                byte[] key = cursor.key();
                int end = end(key);
                String keyspace = new String(key, 0, end, UTF_8);
                known.add(keyspace);
                if (new String(key, end + 1, key.length - end - 1, UTF_8).equals(PATH)) {
                    paths.put(keyspace, new String(cursor.value(), UTF_8));
                }
            }
        }
        known.addAll(database.keyspaces());
        known.remove(DIRECTORY);
        known.remove("default");
        for (String keyspace : known) {
            String relative = paths.get(keyspace);
            if (relative == null || !opened.containsKey(relative) && !isCurrent(keyspace, relative)) {
                drop(keyspace);
            }
        }
    }

    private boolean isCurrent(String keyspace, String relative) {
        return keyspace.equals(StoreHome.read(StoreHome.marker(path, relative)));
    }

    /** The index of the 0 behind the name of a keyspace. */
    private static int end(byte[] key) {
        int end = 0;
        while (key[end] != 0) {
            end++;
        }
        return end;
    }

    private void drop(String keyspace) {
        LOG.info("Dropping the keyspace {}: the state of its store is no longer wanted", keyspace);
        directory.deletePrefix(key(keyspace, ""));
        database.dropKeyspace(keyspace);
    }

    /** The key of a field of a store in the directory. */
    static byte[] key(String keyspace, String field) {
        return (keyspace + "\0" + field).getBytes(UTF_8);
    }

    /** The keyspace of a store: the one that its file names, or a new one. It is in use until {@link #leave}. */
    synchronized String enter(StoreHome home) throws IOException {
        String relative = home.relative();
        if (!opened.containsKey(relative)) {
            sweep();
        }
        String keyspace = StoreHome.read(home.marker());
        if (keyspace == null || !holds(keyspace, relative)) {
            keyspace = prepare(home);
            home.write(keyspace);
        }
        opened.merge(relative, 1, Integer::sum);
        return keyspace;
    }

    /**
     * Takes a store for the one who opened it alone, until {@link #leave}.
     *
     * @throws ProcessorStateException if another has taken it
     */
    synchronized void claim(StoreHome home) {
        if (!claimed.add(home.relative())) {
            throw new ProcessorStateException("Store " + home.store() + " is open already: " + home.marker());
        }
    }

    private boolean holds(String keyspace, String relative) {
        byte[] path = directory.get(key(keyspace, PATH));
        return path != null && new String(path, UTF_8).equals(relative) && database.keyspaces().contains(keyspace);
    }

    /** A new keyspace for a store, which is its own when its file names it. Until then a sweep may drop it. */
    synchronized String prepare(StoreHome home) {
        byte[] random = new byte[8];
        RANDOM.nextBytes(random);
        String relative = home.relative();
        String name = relative.replace("/" + StoreHome.DIRECTORY + "/", "/");
        if (name.length() > LONGEST_NAME) {
            name = name.substring(0, LONGEST_NAME);
        }
        String keyspace = name + "." + HexFormat.of().formatHex(random);
        directory.put(key(keyspace, PATH), relative.getBytes(UTF_8));
        database.keyspace(keyspace).close();
        return keyspace;
    }


    /** Gives back what was entered and, if so, what was claimed. */
    synchronized void leave(StoreHome home, boolean hasClaimed) {
        String relative = home.relative();
        opened.computeIfPresent(relative, (path, times) -> times == 1 ? null : times - 1);
        if (hasClaimed) {
            claimed.remove(relative);
        }
    }

    /** Makes the state of a store worthless: the next one to open it begins anew. */
    static void forget(StoreHome home) {
        try {
            Files.deleteIfExists(home.marker());
        } catch (IOException e) {
            LOG.error("Error deleting {}, which would make the damaged store be dropped", home.marker(), e);
        }
    }

    void write(Batch batch) {
        database.write(batch);
    }
}
