package dev.esker.kafka;

import static dev.esker.kafka.Support.b;
import static java.time.Duration.ofMillis;
import static java.time.Duration.ofMinutes;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A store is opened with other parameters than those that it was made with: its entries are kept. */
class ConversionTest {
    private static final int ENTRIES = 3_000;

    @TempDir
    Path directory;

    private <S extends StateStore> S open(Supplier<S> supplier) {
        return new Support.Context(directory).open(supplier.get());
    }

    private static byte[] value(int number) {
        return b("value ".repeat(100) + number);
    }

    private static void assertSame(int number, Function<byte[], byte[]> converted, byte[] found) {
        assertEquals(Pair.text(converted.apply(value(number))), Pair.text(found), () -> "entry " + number);
    }

    private static byte[] plainToTimestamped(byte[] value) {
        return TimestampedBytesStore.convertToTimestampedFormat(value);
    }

    private void keyValues(
            Supplier<KeyValueStore<Bytes, byte[]>> from,
            Supplier<KeyValueStore<Bytes, byte[]>> to,
            Function<byte[], byte[]> converted) {
        KeyValueStore<Bytes, byte[]> store = open(from);
        for (int i = 0; i < ENTRIES; i++) {
            store.put(Child.key(i), value(i));
        }
        store.commit(Map.of(Pair.CHANGELOG, 17L));
        String position = store.getPosition().toString();
        store.close();
        // Twice: what was converted is not converted again.
        for (int times = 0; times < 2; times++) {
            KeyValueStore<Bytes, byte[]> opened = open(to);
            assertEquals(17L, opened.committedOffset(Pair.CHANGELOG));
            assertEquals(position, opened.getPosition().toString());
            assertEquals(ENTRIES, opened.approximateNumEntries());
            for (int i = 0; i < ENTRIES; i++) {
                assertSame(i, converted, opened.get(Child.key(i)));
            }
            opened.close();
        }
        // The way back would lose something.
        assertThrows(ProcessorStateException.class, () -> open(from));
    }

    @Test
    void valuesGetTimestamps() {
        keyValues(
                EskerStores.persistentKeyValueStore("s")::get,
                EskerStores.persistentTimestampedKeyValueStore("s")::get,
                ConversionTest::plainToTimestamped);
    }

    @Test
    void valuesGetHeaders() {
        keyValues(
                EskerStores.persistentTimestampedKeyValueStore("s")::get,
                EskerStores.persistentTimestampedKeyValueStoreWithHeaders("s")::get,
                HeadersBytesStore::convertToHeaderFormat);
    }

    @Test
    void valuesGetTimestampsAndHeaders() {
        keyValues(
                EskerStores.persistentKeyValueStore("s")::get,
                EskerStores.persistentTimestampedKeyValueStoreWithHeaders("s")::get,
                HeadersBytesStore::convertFromPlainToHeaderFormat);
    }

    @Test
    void windowsAreKeptLonger() {
        WindowStore<Bytes, byte[]> store =
                open(EskerStores.persistentWindowStore("w", ofMinutes(4), ofMillis(10), false)::get);
        for (int i = 0; i < ENTRIES; i++) {
            store.put(Child.key(i % 7), value(i), i * 50L);
        }
        store.close();
        for (Duration retention : new Duration[] {ofMinutes(60), ofMinutes(7), ofMinutes(60)}) {
            WindowStore<Bytes, byte[]> opened =
                    open(EskerStores.persistentWindowStore("w", retention, ofMillis(10), false)::get);
            for (int i = 0; i < ENTRIES; i++) {
                assertSame(i, value -> value, opened.fetch(Child.key(i % 7), i * 50L));
            }
            opened.close();
        }
        WindowStore<Bytes, byte[]> timestamped =
                open(EskerStores.persistentTimestampedWindowStore("w", ofMinutes(9), ofMillis(10), false)::get);
        for (int i = 0; i < ENTRIES; i++) {
            assertSame(i, ConversionTest::plainToTimestamped, timestamped.fetch(Child.key(i % 7), i * 50L));
        }
        timestamped.close();
    }

    private static SessionStore<Bytes, byte[]> closing(DslStoreFormat format, Duration retention) {
        return new EskerDslStoreSuppliers()
                .sessionStore(new DslSessionParams("x", retention, EmitStrategy.onWindowClose(), format))
                .get();
    }

    @Test
    void sessionsWithAnIndexGetHeaders() {
        SessionStore<Bytes, byte[]> store = open(() -> closing(DslStoreFormat.PLAIN, ofMinutes(4)));
        for (int i = 0; i < ENTRIES; i++) {
            store.put(new Windowed<>(Child.key(i % 7), new SessionWindow(i * 40L, i * 50L)), value(i));
        }
        store.close();
        SessionStore<Bytes, byte[]> opened = open(() -> closing(DslStoreFormat.HEADERS, ofMinutes(30)));
        try (var sessions = opened.findSessions(0, Long.MAX_VALUE)) {
            for (int i = 0; i < ENTRIES; i++) {
                assertSame(i, HeadersBytesStore::convertToHeaderFormat, sessions.next().value);
            }
            assertEquals(false, sessions.hasNext());
        }
        for (int i = 0; i < ENTRIES; i++) {
            assertSame(
                    i,
                    HeadersBytesStore::convertToHeaderFormat,
                    opened.fetchSession(Child.key(i % 7), i * 40L, i * 50L));
        }
        opened.close();
    }
}
