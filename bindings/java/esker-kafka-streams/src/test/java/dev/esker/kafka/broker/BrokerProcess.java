package dev.esker.kafka.broker;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/** The process of a broker: formats its storage, and runs Kafka's own main class. */
public final class BrokerProcess {
    private BrokerProcess() {}

    /** Takes the path of a file of settings. */
    public static void main(String[] arguments) throws Exception {
        ChildJvm.endWithInput(() -> Runtime.getRuntime().halt(0));
        Path file = Path.of(arguments[0]);
        Properties settings = new Properties();
        try (var in = Files.newInputStream(file)) {
            settings.load(in);
        }
        int status =
                kafka.tools.StorageTool.execute(
                        new String[] {
                            "format", "--standalone", "--cluster-id", Broker.newClusterId(), "--config", file.toString()
                        },
                        System.err);
        if (status != 0) {
            System.exit(status);
        }
        ChildJvm.tell("listening " + settings.getProperty("advertised.listeners").substring("PLAINTEXT://".length()));
        kafka.Kafka.main(new String[] {file.toString()});
    }
}
