package org.apache.kafka.streams.state.internals;

import static java.time.Duration.ofMillis;

import dev.esker.kafka.EskerStores;
import dev.esker.kafka.EskerDslStoreSuppliers;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** Kafka's suite of window stores, with Esker's. */
public class EskerWindowStoreSuite extends AbstractWindowBytesStoreTest {
    /** The same with the store for windows that are shown when they have closed. */
    public static class Closing extends EskerWindowStoreSuite {
        @Override
        WindowBytesStoreSupplier supplier(long retention, long size, boolean duplicates) {
            return new EskerDslStoreSuppliers().windowStore(new DslWindowParams(
                    "windows",
                    ofMillis(retention),
                    ofMillis(size),
                    duplicates,
                    EmitStrategy.onWindowClose(),
                    false,
                    DslStoreFormat.PLAIN));
        }
    }

    WindowBytesStoreSupplier supplier(long retention, long size, boolean duplicates) {
        return EskerStores.persistentWindowStore("windows", ofMillis(retention), ofMillis(size), duplicates);
    }

    @Override
    <K, V> WindowStore<K, V> buildWindowStore(
            long retention, long size, boolean duplicates, Serde<K> keySerde, Serde<V> valueSerde) {
        return Stores.windowStoreBuilder(supplier(retention, size, duplicates), keySerde, valueSerde)
                .build();
    }
}
