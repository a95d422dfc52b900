package dev.esker.kafka.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program of docs/scale-out.md, compiled and run exactly as it is printed: two instances, of which one is killed. */
class ScaleOutPageTest {
    private static final Path PAGE = Path.of("../../../docs/scale-out.md");
    private static final int PAYMENTS = 1000;

    @TempDir Path directory;

    private final Map<String, Long> expected = new TreeMap<>();
    private final Map<String, Long> balances = new TreeMap<>();

    @Test
    void theProgramOfThePage() throws Exception {
        compile();
        try (Broker broker = Broker.start(directory.resolve("broker"), "256m")) {
            broker.createTopics(8, Map.of(), "payments", "balances-by-account");
            try (ChildJvm first = program(broker, 1)) {
                pay(broker, 1);
                await(broker, first);
                // The second instance joins, the first one is lost, and the second one has all accounts.
                try (ChildJvm second = program(broker, 2)) {
                    pay(broker, 2);
                    await(broker, first, second);
                    first.kill();
                    pay(broker, 3);
                    await(broker, second);
                }
            }
        }
    }

    private void compile() throws Exception {
        Matcher block = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(Files.readString(PAGE));
        assertTrue(block.find(), PAGE + " has no program");
        Path source = directory.resolve("Balances.java");
        Files.writeString(source, block.group(1));
        var compiler = ToolProvider.getSystemJavaCompiler();
        assertNotNull(compiler, "the tests need a JDK");
        int status =
                compiler.run(null, null, null, "-cp", System.getProperty("java.class.path"), "-d", directory.toString(), source.toString());
        assertEquals(0, status, "the program does not compile");
    }

    private ChildJvm program(Broker broker, int number) throws Exception {
        return ChildJvm.start(
                directory,
                "balances-" + number,
                List.of("-Xmx128m", "-XX:+UseSerialGC"),
                List.of(directory),
                "Balances",
                List.of(broker.address(), directory.resolve("state-" + number).toString()));
    }

    private void pay(Broker broker, long seed) throws Exception {
        Random random = new Random(seed);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (Producer<String, Long> producer =
                new KafkaProducer<>(
                        Map.of(
                                ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.address(),
                                ProducerConfig.MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION, "1"),
                        new StringSerializer(),
                        new LongSerializer())) {
            for (int i = 0; i < PAYMENTS; i++) {
                String account = "account-" + random.nextInt(100);
                long amount = 1 + random.nextInt(1000);
                expected.merge(account, amount, Long::sum);
                sent.add(producer.send(new ProducerRecord<>("payments", account, amount)));
            }
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        }
    }

    /** Reads balances until they are those expected; one that is too large was counted twice. */
    private void await(Broker broker, ChildJvm... instances) throws InterruptedException {
        Map<String, Object> settings =
                Map.of(
                        ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.address(),
                        ConsumerConfig.GROUP_ID_CONFIG, "reader",
                        ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
                        ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        try (Consumer<String, Long> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new LongDeserializer())) {
            consumer.subscribe(List.of("balances-by-account"));
            while (!balances.equals(expected)) {
                for (ChildJvm instance : instances) {
                    instance.runsFor(0);
                }
                for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(200))) {
                    balances.put(record.key(), record.value());
                    assertTrue(
                            record.value() <= expected.get(record.key()),
                            record.key() + " has " + record.value() + ", not " + expected.get(record.key()));
                }
            }
        }
    }
}
