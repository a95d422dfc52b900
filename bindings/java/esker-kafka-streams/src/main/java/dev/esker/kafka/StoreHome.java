package dev.esker.kafka;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.StateStoreContext;

/**
 * Where a store of a task lies: the directory of the database, and the store's file in the directory of the
 * task. The file names the keyspace of the store. Kafka deletes it with the directory when it drops the state
 * of the task; the keyspace is worth nothing from then on.
 *
 * @param database the directory of the database
 * @param marker the store's file
 */
record StoreHome(Path database, Path marker) {
    /** The directory of the database in the one of the application, and that of the files in the one of a task. */
    static final String DIRECTORY = "esker";

    /** The directory of the database if a store's directory is in none of an application. */
    static final String ALONE = "esker-database";

    private static final String HEAD = "esker store 1 ";
    private static final String NEW = ".new";

    static StoreHome of(StateStoreContext context, String store) {
        Path task = context.stateDir().toPath().toAbsolutePath().normalize();
        return new StoreHome(databaseOf(task, context.applicationId()), task.resolve(DIRECTORY).resolve(store));
    }

    /**
     * The directory of a task is {@code <state.dir>/<application.id>/<task>}, with one directory more between
     * them in named topologies. In a test it may be any directory.
     */
    private static Path databaseOf(Path task, String application) {
        Path above = task.getParent();
        for (int steps = 0; steps < 2 && above != null && above.getFileName() != null; steps++) {
            if (above.getFileName().toString().equals(application)) {
                return above.resolve(DIRECTORY);
            }
            above = above.getParent();
        }
        return task.resolve(ALONE);
    }

    /** The name of the store. */
    String store() {
        return marker.getFileName().toString();
    }

    /** The path of the file from the directory above the database, as it is kept in the database. */
    String relative() {
        return database.getParent().relativize(marker).toString().replace('\\', '/');
    }

    /** The file whose path from the directory above the database is given. */
    static Path marker(Path database, String relative) {
        return database.getParent().resolve(relative);
    }

    /** The keyspace that a file names, or null if there is no such file or it says nothing. */
    static String read(Path marker) {
        try {
            String text = Files.readString(marker, StandardCharsets.UTF_8);
            if (text.startsWith(HEAD) && text.endsWith("\n")) {
                return text.substring(HEAD.length(), text.length() - 1);
            }
            return null;
        } catch (NoSuchFileException e) {
            return null;
        } catch (IOException e) {
            // Among others, bytes that are no UTF-8: the file was damaged, and the state is dropped.
            return null;
        }
    }

    /** Makes the file, so that it is there as a whole or not at all. */
    void write(String keyspace) throws IOException {
        Files.createDirectories(marker.getParent());
        Path fresh = marker.resolveSibling(marker.getFileName() + NEW);
        byte[] text = (HEAD + keyspace + "\n").getBytes(StandardCharsets.UTF_8);
        try (FileChannel channel = FileChannel.open(
                fresh, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
            ByteBuffer left = ByteBuffer.wrap(text);
            while (left.hasRemaining()) {
                channel.write(left);
            }
            channel.force(true);
        }
        Files.move(fresh, marker, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    /**
     * Refuses a store whose state RocksDB's store has kept: it would be lost from sight, though it may be all
     * there is of it.
     */
    void refuseRocksDb() {
        Path task = marker.getParent().getParent();
        String store = store();
        refuseRocksDb(task.resolve("rocksdb").resolve(store), "");
        refuseRocksDb(task.resolve(store), store + ".");
    }

    private void refuseRocksDb(Path directory, String prefix) {
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory)) {
            for (Path entry : entries) {
                if (entry.getFileName().toString().startsWith(prefix)
                        && (prefix.isEmpty() || Files.isDirectory(entry))) {
                    throw new ProcessorStateException("Store " + store() + " cannot be opened: " + directory
                            + " holds the state of RocksDB's store of this name, which Esker does not read. Delete "
                            + marker.getParent().getParent() + ", or call KafkaStreams.cleanUp() before start(): "
                            + "the store is then restored from its changelog. A store without a changelog loses its"
                            + " entries");
                }
            }
        } catch (NoSuchFileException | NotDirectoryException e) {
            // As it should be.
        } catch (IOException e) {
            throw new ProcessorStateException("Store " + store() + " cannot be opened: " + directory, e);
        }
    }
}
