package dev.esker.kafka.bench;

import dev.esker.kafka.broker.ChildJvm;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.SplittableRandom;
import org.HdrHistogram.Histogram;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueStore;

/** The store alone, in a process of its own: one thread counts random keys and commits now and then, as a task does. */
public final class StoreProcess {
    private StoreProcess() {}

    /** Takes the class of the suppliers, a directory, records, keys, after how many records it commits, and more settings as {@code name=value}. */
    public static void main(String[] arguments) throws Exception {
        ChildJvm.endWithInput(() -> Runtime.getRuntime().halt(1));
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "bench");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        for (int i = 5; i < arguments.length; i++) {
            int at = arguments[i].indexOf('=');
            settings.put(arguments[i].substring(0, at), arguments[i].substring(at + 1));
        }
        Path directory = Path.of(arguments[1]);
        long records = Long.parseLong(arguments[2]);
        long keys = Long.parseLong(arguments[3]);
        long commitEvery = Long.parseLong(arguments[4]);
        DslStoreSuppliers suppliers = Utils.newInstance(arguments[0], DslStoreSuppliers.class);
        Map<String, Object> configs = new LinkedHashMap<>();
        settings.forEach((name, value) -> configs.put(name.toString(), value));
        suppliers.configure(configs);
        KeyValueStore<Bytes, byte[]> store = suppliers.keyValueStore(params()).get();
        MockProcessorContext<Void, Void> context =
                new MockProcessorContext<>(settings, new TaskId(0, 0), directory.resolve("bench/0_0").toFile());
        store.init(context.getStateStoreContext(), store);
        Map<String, Double> figures = count(store, records, keys, commitEvery);
        Run.addSizes(figures, directory);
        store.close();
        ChildJvm.tell(new Run(figures).line());
        System.exit(0);
    }

    private static DslKeyValueParams params() {
        return new DslKeyValueParams(Workloads.STORE, DslStoreFormat.TIMESTAMPED);
    }

    private static Map<String, Double> count(KeyValueStore<Bytes, byte[]> store, long records, long keys, long commitEvery) {
        TopicPartition changelog = new TopicPartition("bench-store-changelog", 0);
        SplittableRandom random = new SplittableRandom(9);
        Histogram histogram = Run.histogram();
        long begin = System.nanoTime();
        long last = begin;
        for (long i = 0; i < records; i++) {
            Bytes key = Bytes.wrap(Inputs.key(random.nextLong(keys)));
            byte[] before = store.get(key);
            long count = before == null ? 0 : ByteBuffer.wrap(before).getLong(8);
            store.put(key, ByteBuffer.allocate(16).putLong(i).putLong(count + 1).array());
            if (i % commitEvery == commitEvery - 1) {
                store.commit(Map.of(changelog, i));
            }
            long now = System.nanoTime();
            histogram.recordValue(now - last);
            last = now;
        }
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("records_per_s", records * 1e9 / (last - begin));
        Run.addDurations(figures, histogram);
        return figures;
    }
}
