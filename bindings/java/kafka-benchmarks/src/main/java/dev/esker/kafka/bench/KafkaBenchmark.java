package dev.esker.kafka.bench;

import dev.esker.kafka.bench.Settings.Store;
import dev.esker.kafka.bench.Settings.Workload;
import dev.esker.kafka.broker.Broker;
import dev.esker.kafka.broker.ChildJvm;
import dev.esker.kafka.broker.Trees;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import picocli.CommandLine;

/** Measures state stores of Kafka Streams beside each other; {@link Settings} has the options. */
public final class KafkaBenchmark {
    private static final String ESKERS = "dev.esker.kafka.EskerDslStoreSuppliers";
    private static final String ROCKSDBS = "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers";

    private final Settings settings;
    private final Path directory;
    private final Report report;
    private Broker broker;
    private int runs;

    private KafkaBenchmark(Settings settings, Path directory) {
        this.settings = settings;
        this.directory = directory;
        this.report = new Report(settings);
    }

    /** Measures, and prints a table. */
    public static void main(String[] arguments) {
        CommandLine line = new CommandLine(new Program());
        // A line that is wrong is answered with the options.
        System.exit(line.execute(arguments));
    }

    /** The program: its options, and what it does with them. */
    private static final class Program extends Settings implements Callable<Integer> {
        @Override
        public Integer call() throws Exception {
            settle();
            Path own = Files.createTempDirectory(directory, "kafka-benchmark");
            try {
                new KafkaBenchmark(this, own).measure();
            } finally {
                Trees.remove(own);
            }
            return 0;
        }
    }

    private void measure() throws Exception {
        try (Broker started = settings.workloads.equals(List.of(Workload.STORE)) ? null : Broker.start(directory.resolve("broker"), "768m")) {
            broker = started;
            for (Workload workload : settings.workloads) {
                long expected = workload == Workload.STORE ? settings.records : fill(workload);
                for (int round = 0; round < settings.rounds; round++) {
                    for (int turn = 0; turn < settings.stores.size(); turn++) {
                        // Nobody is always the first one.
                        Store store = settings.stores.get((turn + round) % settings.stores.size());
                        Run run = workload == Workload.STORE ? alone(store) : application(workload, store, expected);
                        report.add(workload, store, run);
                    }
                }
                if (workload != Workload.STORE) {
                    broker.deleteTopicsOf(workload.toString());
                }
                report.print(workload);
                report.writeJson();
            }
        }
    }

    /** Makes the topics of a workload and fills them; how many records it is to process. */
    private long fill(Workload workload) throws Exception {
        // Transactions of one application after the other write the output: nobody reads it.
        broker.createTopics(Workloads.PARTITIONS, Map.of("retention.bytes", "16777216", "segment.bytes", "16777216"), workload + "-out");
        broker.createTopics(Workloads.PARTITIONS, Map.of(), Workloads.inputs(workload.toString()).toArray(String[]::new));
        long records = settings.records;
        try (Inputs inputs = new Inputs(broker.address())) {
            switch (workload) {
                case WORDS -> {
                    records -= records % Inputs.WORDS_OF_A_LINE;
                    inputs.lines("words", records, settings.keys);
                }
                case WINDOWS -> inputs.events("windows", records, settings.keys, 8);
                case JOIN -> {
                    inputs.table("join-table", settings.keys, settings.value);
                    inputs.events("join", records, settings.keys, settings.value);
                }
                default -> {
                    records = settings.restoredEntries();
                    inputs.table(Workloads.RESTORE_TOPIC, records, settings.value);
                }
            }
        }
        return records;
    }

    private static String suppliers(Store store) {
        return store == Store.ESKER ? ESKERS : ROCKSDBS;
    }

    /** Arguments that choose a store. */
    private List<String> store(Store store) {
        List<String> arguments = new ArrayList<>();
        arguments.add("dsl.store.suppliers.class=" + suppliers(store));
        if (store == Store.ESKER) {
            arguments.add("esker.memory=" + settings.memory);
        }
        if (store == Store.ROCKSDB_TUNED) {
            arguments.add("rocksdb.config.setter=" + TunedRocksDb.class.getName());
        }
        return arguments;
    }

    private Run application(Workload workload, Store store, long expected) throws Exception {
        String id = workload + "-" + store + "-" + ++runs;
        Path state = directory.resolve("state-" + runs);
        List<String> arguments = store(store);
        arguments.addAll(
                List.of(
                        "application.id=" + id,
                        "bootstrap.servers=" + broker.address(),
                        "state.dir=" + state,
                        "processing.guarantee=" + settings.guarantee,
                        "bench.workload=" + workload,
                        "bench.expected=" + expected));
        if (workload == Workload.RESTORE) {
            commitAll(id);
        }
        Run run = child(AppProcess.class, id, arguments);
        Trees.remove(state);
        broker.deleteTopicsOf(id);
        return run;
    }

    /** Says that the application has taken all of its table, so that it restores all of it. */
    private void commitAll(String application) throws Exception {
        Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
        for (int partition = 0; partition < Workloads.PARTITIONS; partition++) {
            latest.put(new TopicPartition(Workloads.RESTORE_TOPIC, partition), OffsetSpec.latest());
        }
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        for (Map.Entry<TopicPartition, ListOffsetsResultInfo> end : broker.admin().listOffsets(latest).all().get().entrySet()) {
            ends.put(end.getKey(), new OffsetAndMetadata(end.getValue().offset()));
        }
        broker.admin().alterConsumerGroupOffsets(application, ends).all().get();
    }

    private Run alone(Store store) throws Exception {
        Path state = directory.resolve("state-" + ++runs);
        List<String> arguments = new ArrayList<>();
        arguments.add(suppliers(store));
        arguments.add(state.toString());
        arguments.add(Long.toString(settings.records));
        arguments.add(Long.toString(settings.keys));
        arguments.add(Long.toString(settings.commitEvery));
        arguments.addAll(store(store));
        arguments.add("processing.guarantee=" + settings.guarantee);
        Run run = child(StoreProcess.class, "store-" + store + "-" + runs, arguments);
        Trees.remove(state);
        return run;
    }

    private Run child(Class<?> main, String name, List<String> arguments) throws Exception {
        List<String> machine =
                // All of the heap is touched at once, so that what grows is beside it.
                List.of("-Xmx" + settings.heap, "-Xms" + settings.heap, "-XX:+AlwaysPreTouch", "-Dbench.memory=" + settings.memory);
        try (ChildJvm child = ChildJvm.start(directory, name, machine, main, arguments)) {
            return Run.parse(child.await(Run.RESULT));
        }
    }
}
