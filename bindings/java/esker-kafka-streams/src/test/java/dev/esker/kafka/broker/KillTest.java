package dev.esker.kafka.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Two instances of an application over eight partitions of a real broker. Again and again one of them is killed at a
 * random moment and started again: what comes out is what went in, and what the killed one leaves on disk is right.
 *
 * <p>{@code -Desker.long=true} takes thirty rounds, {@code -Desker.rounds=N} that many. The instances use the stores of
 * {@code -Desker.suppliers=CLASS}, by default those of Esker.
 */
@Timeout(value = 3, unit = TimeUnit.HOURS)
class KillTest {
    private static final String ESKER = "dev.esker.kafka.EskerDslStoreSuppliers";
    private static final String SUPPLIERS = System.getProperty("esker.suppliers", ESKER);
    private static final int BACKLOG = 4000;

    @TempDir Path directory;

    private final ChildJvm[] instances = new ChildJvm[2];
    private final int[] starts = new int[2];
    private final boolean[] cached = new boolean[2];
    private Random random;
    private Broker broker;
    private Feed feed;
    private Outputs outputs;
    private String guarantee;
    /** How many entries of stores were compared with changelogs after kills. */
    private long compared;

    private static int rounds(int ofShortForm) {
        return Integer.getInteger("esker.rounds", Boolean.getBoolean("esker.long") ? 30 : ofShortForm);
    }

    @Test
    void exactlyOnce() throws Exception {
        run("exactly_once_v2", rounds(3));
    }

    /** Here a store goes on with what the killed instance left: nothing that its offset covers may be missing. */
    @Test
    void atLeastOnce() throws Exception {
        run("at_least_once", rounds(1));
        assertTrue(!SUPPLIERS.equals(ESKER) || compared > 0, "no store had an offset when it was killed");
    }

    private void run(String guarantee, int rounds) throws Exception {
        String given = System.getProperty("esker.seed", "");
        long seed = given.isEmpty() ? new Random().nextLong() : Long.parseLong(given);
        String again = "again with -Desker.seed=" + seed;
        System.out.println(guarantee + ": " + again);
        this.guarantee = guarantee;
        random = new Random(seed);
        try (Broker started = Broker.start(directory.resolve("broker"), "256m")) {
            broker = started;
            String[] topics = Names.STORES.stream().map(store -> store + Names.OUT).toArray(String[]::new);
            broker.createTopics(Names.PARTITIONS, Map.of(), topics);
            broker.createTopics(Names.PARTITIONS, Map.of(), Names.INPUT);
            feed = new Feed(broker.address(), seed);
            outputs = new Outputs(broker.address(), feed, guarantee.startsWith("exactly"));
            try {
                start(0, 0);
                start(1, 0);
                for (int round = 1; round <= rounds; round++) {
                    round(round);
                }
                finish();
            } catch (AssertionError | Exception failure) {
                throw new AssertionError(again + "\n" + failure.getMessage() + "\n" + tails(), failure);
            } finally {
                for (ChildJvm instance : instances) {
                    if (instance != null) {
                        instance.close();
                    }
                }
                outputs.close();
                feed.close();
            }
        }
    }

    private String tails() {
        StringBuilder tails = new StringBuilder();
        for (ChildJvm instance : instances) {
            tails.append(instance == null ? "" : instance.tail()).append('\n');
        }
        return tails.toString();
    }

    private Path state(int instance) {
        return directory.resolve("state-" + instance);
    }

    private void start(int instance, int standbys) throws Exception {
        cached[instance] = random.nextBoolean();
        instances[instance] =
                ChildJvm.start(
                        Files.createDirectories(directory.resolve("logs")),
                        "instance-" + instance + "-" + ++starts[instance],
                        List.of("-Xmx160m", "-XX:+UseSerialGC"),
                        SumsProcess.class,
                        List.of(
                                "bootstrap.servers=" + broker.address(),
                                "state.dir=" + state(instance),
                                "processing.guarantee=" + guarantee,
                                "dsl.store.suppliers.class=" + SUPPLIERS,
                                "esker.memory=67108864",
                                "statestore.cache.max.bytes=" + (cached[instance] ? 1_000_000 : 0),
                                "num.standby.replicas=" + standbys));
    }

    /** Kills one at a random moment, looks at what it leaves, and starts it again. */
    private void round(int round) throws Exception {
        int victim = random.nextInt(2);
        boolean whileItBegins = round > 1 && random.nextInt(4) == 0;
        boolean deleted = round % 3 == 2;
        int standbys = round % 3 == 2 ? 1 : 0;
        if (!whileItBegins) {
            instances[victim].await("state RUNNING");
        }
        long until = outputs.counted() + 500 + random.nextInt(6000);
        while (outputs.counted() < until) {
            work();
        }
        instances[victim].runsFor(random.nextInt(300));
        instances[victim].kill();
        instances[victim] = null;
        if (SUPPLIERS.equals(ESKER) && Files.exists(state(victim).resolve(Names.APPLICATION).resolve("esker"))) {
            try (StoreCheck check = new StoreCheck(state(victim), directory.resolve("copy"), broker, feed)) {
                System.out.println(
                        "round " + round + ": instance " + victim + " killed; "
                                + check.afterKill(guarantee.startsWith("exactly"), cached[victim]));
                compared += check.compared();
            }
        }
        if (deleted) {
            Trees.remove(state(victim));
        }
        // The other one goes on alone for a while, and takes over.
        if (random.nextBoolean()) {
            long taken = outputs.counted() + random.nextInt(3000);
            while (outputs.counted() < taken) {
                work();
            }
        }
        start(victim, standbys);
    }

    /** Sends as much as keeps a backlog, and reads what comes. */
    private void work() throws Exception {
        long missing = feed.sent() - outputs.counted();
        if (missing < BACKLOG) {
            feed.send((int) Math.min(1000, BACKLOG - missing));
        }
        for (ChildJvm instance : instances) {
            if (instance != null) {
                instance.runsFor(0);
            }
        }
        outputs.read();
    }

    private void finish() throws Exception {
        for (ChildJvm instance : instances) {
            instance.await("state RUNNING");
        }
        feed.sendMarkers();
        while (!outputs.markersSeen()) {
            for (ChildJvm instance : instances) {
                instance.runsFor(0);
            }
            outputs.read();
        }
        for (int instance = 0; instance < instances.length; instance++) {
            assertEquals(0, instances[instance].stop(), instances[instance].tail());
        }
        outputs.readToEnd();
        feed.expected().forEach(this::compare);
        System.out.println(feed.sent() + " records of input");
        if (SUPPLIERS.equals(ESKER)) {
            for (int instance = 0; instance < instances.length; instance++) {
                try (StoreCheck check = new StoreCheck(state(instance), directory.resolve("copy"), broker, feed)) {
                    System.out.println("instance " + instance + " stopped; " + check.afterStop(guarantee.startsWith("exactly")));
                }
            }
        }
    }

    private void compare(String store, Map<String, Total> expected) {
        Map<String, Total> found = outputs.last().get(store);
        if (guarantee.startsWith("exactly")) {
            assertEquals(new TreeMap<>(expected), found, store);
            return;
        }
        if (store.equals("sessions")) {
            // A record that is taken twice may join sessions, but none of its keys is missing.
            return;
        }
        expected.forEach(
                (key, total) -> {
                    Total out = found.get(key);
                    assertTrue(out != null && out.count() >= total.count(), store + ": " + key + " has " + out + ", not " + total);
                });
    }
}
