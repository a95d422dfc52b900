package org.apache.kafka.streams.state.internals;

import dev.esker.kafka.EskerStores;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Kafka's suite of key-value stores, with Esker's. It lies in Kafka's package because the classes for the other
 * suites must; {@code SuitesTest} runs it.
 */
public class EskerKeyValueStoreSuite extends AbstractKeyValueStoreTest {
    @Override
    @SuppressWarnings("unchecked")
    protected <K, V> KeyValueStore<K, V> createKeyValueStore(StateStoreContext context) {
        KeyValueBytesStoreSupplier supplier = EskerStores.persistentKeyValueStore("my-store");
        KeyValueStore<K, V> store = Stores.keyValueStoreBuilder(
                        supplier, (Serde<K>) context.keySerde(), (Serde<V>) context.valueSerde())
                .build();
        store.init(context, store);
        return store;
    }
}
