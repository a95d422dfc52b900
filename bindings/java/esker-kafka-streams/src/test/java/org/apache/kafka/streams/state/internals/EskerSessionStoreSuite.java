package org.apache.kafka.streams.state.internals;

import static java.time.Duration.ofMillis;

import dev.esker.kafka.EskerDslStoreSuppliers;
import dev.esker.kafka.EskerStores;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka's suite of session stores, with Esker's. */
public class EskerSessionStoreSuite extends AbstractSessionBytesStoreTest {
    /** The same with the store for sessions that are shown when they have closed. */
    public static class Closing extends EskerSessionStoreSuite {
        @Override
        SessionBytesStoreSupplier supplier(long retention) {
            return new EskerDslStoreSuppliers().sessionStore(new DslSessionParams(
                    "sessions", ofMillis(retention), EmitStrategy.onWindowClose(), DslStoreFormat.PLAIN));
        }

        @Override
        StoreType storeType() {
            return StoreType.RocksDBTimeOrderedSessionStoreWithIndex;
        }
    }

    SessionBytesStoreSupplier supplier(long retention) {
        return EskerStores.persistentSessionStore("sessions", ofMillis(retention));
    }

    @Override
    <K, V> SessionStore<K, V> buildSessionStore(long retention, Serde<K> keySerde, Serde<V> valueSerde) {
        return Stores.sessionStoreBuilder(supplier(retention), keySerde, valueSerde).build();
    }

    /** The suite asks which of Kafka's stores to expect the behaviour of. */
    @Override
    StoreType storeType() {
        return StoreType.RocksDBSessionStore;
    }
}
