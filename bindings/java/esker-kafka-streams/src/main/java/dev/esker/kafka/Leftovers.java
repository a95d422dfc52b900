package dev.esker.kafka;

import dev.esker.Database;
import dev.esker.EskerException;
import dev.esker.Options;
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * Databases whose stores are all gone. Kafka deletes the directories of tasks when nothing is open any more, as
 * {@code KafkaStreams.cleanUp()} does, and knows nothing of the database. It goes when the process ends.
 */
final class Leftovers {
    private static final Set<Path> CLOSED = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(Leftovers::remove, "esker-leftovers"));
    }

    private Leftovers() {}

    /** Says that a database was closed, and nobody has it open. */
    static void closed(Path database) {
        CLOSED.add(database);
    }

    /** Says that a database is open. */
    static void opened(Path database) {
        CLOSED.remove(database);
    }

    private static void remove() {
        for (Path database : CLOSED) {
            try {
                if (Files.isDirectory(database) && !hasStores(database)) {
                    delete(takeAway(database));
                }
            } catch (IOException | EskerException e) {
                // It stays, and its stores are dropped when it is opened next.
            }
        }
    }

    /** Moves a database that no other process has open, so that none can open it any more. */
    private static Path takeAway(Path database) throws IOException {
        Path gone = database.resolveSibling(database.getFileName() + ".gone");
        delete(gone);
        Database open = Database.open(database, new Options().createIfMissing(false));
        Files.move(database, gone);
        try {
            open.close();
        } catch (EskerException e) {
            // It does not find its directory any more.
        }
        return gone;
    }

    /** Whether there is a file of a store: three or four levels below the directory with the database. */
    private static boolean hasStores(Path database) throws IOException {
        try (Stream<Path> below = Files.find(
                database.getParent(),
                4,
                (path, attributes) -> attributes.isRegularFile()
                        && !path.startsWith(database)
                        && path.getParent().endsWith(StoreHome.DIRECTORY))) {
            return below.findAny().isPresent();
        }
    }

    /** Deletes a directory with all that is in it, if it is there. */
    static void delete(Path root) throws IOException {
        if (!Files.exists(root)) {
            return;
        }
        Files.walkFileTree(root, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.delete(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, IOException failure) throws IOException {
                if (failure != null) {
                    throw failure;
                }
                Files.delete(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }
}
