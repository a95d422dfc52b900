package dev.esker.kafka;

import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;

/** Entries with their keys as windows or sessions. */
record WindowedIterator(KeyValueIterator<Bytes, byte[]> entries, Function<byte[], Windowed<Bytes>> windowed)
        implements KeyValueIterator<Windowed<Bytes>, byte[]> {
    @Override
    public boolean hasNext() {
        return entries.hasNext();
    }

    @Override
    public Windowed<Bytes> peekNextKey() {
        return windowed.apply(entries.peekNextKey().get());
    }

    @Override
    public KeyValue<Windowed<Bytes>, byte[]> next() {
        KeyValue<Bytes, byte[]> entry = entries.next();
        return KeyValue.pair(windowed.apply(entry.key.get()), entry.value);
    }

    @Override
    public void close() {
        entries.close();
    }
}
