package dev.esker.kafka.broker;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;

/** A broker of Kafka that is its own controller, in a process of its own, reachable from this machine only. */
public final class Broker implements AutoCloseable {
    private static final int ATTEMPTS = 3;

    private final ChildJvm process;
    private final String address;
    private final Admin admin;

    private Broker(ChildJvm process, String address, Admin admin) {
        this.process = process;
        this.address = address;
        this.admin = admin;
    }

    /**
     * Formats a directory for a broker, starts the broker there, and waits until it answers.
     *
     * @param directory an empty directory
     * @param heap the size of its heap as {@code -Xmx} takes it
     */
    public static Broker start(Path directory, String heap) throws Exception {
        Files.createDirectories(directory);
        // Between the choice of a port and its use another program may take it.
        for (int attempt = 1; ; attempt++) {
            Path place = Files.createDirectories(directory.resolve("broker-" + attempt));
            ChildJvm process = process(place, heap, freePorts(2));
            String listening;
            try {
                listening = process.await("listening ").substring("listening ".length());
            } catch (AssertionError ended) {
                process.close();
                if (attempt == ATTEMPTS) {
                    throw ended;
                }
                continue;
            }
            Admin admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, listening));
            Broker broker = new Broker(process, listening, admin);
            try {
                admin.describeCluster().nodes().get();
                return broker;
            } catch (ExecutionException failure) {
                broker.close();
                if (attempt == ATTEMPTS) {
                    throw new AssertionError(process.tail(), failure);
                }
            }
        }
    }

    private static ChildJvm process(Path place, String heap, List<Integer> ports) throws IOException {
        Map<String, String> settings = new TreeMap<>();
        String host = InetAddress.getLoopbackAddress().getHostAddress();
        settings.put("process.roles", "broker,controller");
        settings.put("node.id", "1");
        settings.put("listeners", "PLAINTEXT://" + host + ":" + ports.get(0) + ",CONTROLLER://" + host + ":" + ports.get(1));
        settings.put("advertised.listeners", "PLAINTEXT://" + host + ":" + ports.get(0));
        settings.put("controller.listener.names", "CONTROLLER");
        settings.put("controller.quorum.bootstrap.servers", host + ":" + ports.get(1));
        settings.put("log.dirs", place.resolve("data").toString());
        // There is one broker: nothing can be replicated.
        for (String topic : List.of("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")) {
            settings.put(topic + ".replication.factor", "1");
        }
        settings.put("transaction.state.log.min.isr", "1");
        settings.put("share.coordinator.state.topic.min.isr", "1");
        settings.put("offsets.topic.num.partitions", "1");
        settings.put("transaction.state.log.num.partitions", "1");
        settings.put("auto.create.topics.enable", "false");
        // What a killed member and its transaction hold is given up soon.
        settings.put("group.initial.rebalance.delay.ms", "0");
        settings.put("group.min.session.timeout.ms", "500");
        settings.put("transaction.abort.timed.out.transaction.cleanup.interval.ms", "500");
        Properties properties = new Properties();
        properties.putAll(settings);
        Path file = place.resolve("server.properties");
        try (var out = Files.newOutputStream(file)) {
            properties.store(out, null);
        }
        return ChildJvm.start(
                place, "broker", List.of("-Xmx" + heap, "-Xms" + heap), BrokerProcess.class, List.of(file.toString()));
    }

    private static List<Integer> freePorts(int count) throws IOException {
        List<ServerSocket> sockets = new ArrayList<>();
        List<Integer> ports = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
            sockets.add(socket);
            ports.add(socket.getLocalPort());
        }
        for (ServerSocket socket : sockets) {
            socket.close();
        }
        return ports;
    }

    /** Makes topics of so many partitions, and waits until the broker serves all of these. */
    public void createTopics(int partitions, Map<String, String> settings, String... names) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (String name : names) {
            topics.add(new NewTopic(name, partitions, (short) 1).configs(settings));
        }
        admin.createTopics(topics).all().get();
        // A topic is made before its partitions are open. What a producer sends meanwhile may be refused for good.
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        for (String name : names) {
            for (int partition = 0; partition < partitions; partition++) {
                ends.put(new TopicPartition(name, partition), OffsetSpec.latest());
            }
        }
        admin.listOffsets(ends).all().get();
    }

    /** Deletes the topics that an application has made for itself, and one of its name. */
    public void deleteTopicsOf(String application) throws Exception {
        List<String> own = new ArrayList<>();
        for (String topic : admin.listTopics().names().get()) {
            if (topic.equals(application) || topic.startsWith(application + "-")) {
                own.add(topic);
            }
        }
        admin.deleteTopics(own).all().get();
    }

    /** What clients take as {@code bootstrap.servers}. */
    public String address() {
        return address;
    }

    /** A client for its administration. */
    public Admin admin() {
        return admin;
    }

    @Override
    public void close() {
        admin.close(Duration.ZERO);
        process.close();
    }

    /** An identifier for a new cluster. */
    static String newClusterId() {
        return Uuid.randomUuid().toString();
    }
}
