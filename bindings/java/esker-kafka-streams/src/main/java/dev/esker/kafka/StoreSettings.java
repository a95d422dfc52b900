package dev.esker.kafka;

import dev.esker.Durability;
import dev.esker.Options;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;

/** The options of the database, from those of the application whose names begin with {@code esker.}. */
record StoreSettings(long memory, int workers, Durability durability, Options.Compression compression) {
    static final String MEMORY = "esker.memory";
    static final String WORKERS = "esker.workers";
    static final String DURABILITY = "esker.durability";
    static final String COMPRESSION = "esker.compression";

    private static final String PREFIX = "esker.";

    static StoreSettings of(Map<String, Object> configs) {
        for (String name : configs.keySet()) {
            if (name.startsWith(PREFIX) && !isKnown(name)) {
                throw new ConfigException(name, configs.get(name), "there is no option of this name; there are "
                        + String.join(", ", MEMORY, WORKERS, DURABILITY, COMPRESSION));
            }
        }
        return new StoreSettings(
                number(configs, MEMORY, Long.MAX_VALUE),
                (int) number(configs, WORKERS, Integer.MAX_VALUE),
                durability(configs),
                choice(configs, COMPRESSION, Options.Compression.class, null));
    }

    private static boolean isKnown(String name) {
        return name.equals(MEMORY) || name.equals(WORKERS) || name.equals(DURABILITY) || name.equals(COMPRESSION);
    }

    private static long number(Map<String, Object> configs, String name, long most) {
        Object value = configs.get(name);
        if (value == null) {
            return 0;
        }
        try {
            long number = Long.parseLong(value.toString().trim());
            if (number >= 0 && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Reported below, as a number out of range is.
        }
        throw new ConfigException(name, value, "it must be a whole number from 0 to " + most);
    }

    private static Durability durability(Map<String, Object> configs) {
        Durability chosen = choice(configs, DURABILITY, Durability.class, Durability.PROCESS);
        if (chosen == Durability.PROCESS || chosen == Durability.DISK) {
            return chosen;
        }
        // A write that is not logged may be lost while the offset behind it is kept.
        throw new ConfigException(DURABILITY, configs.get(DURABILITY), "it must be process or disk");
    }

    private static <E extends Enum<E>> E choice(Map<String, Object> configs, String name, Class<E> type, E otherwise) {
        Object value = configs.get(name);
        if (value == null) {
            return otherwise;
        }
        try {
            return Enum.valueOf(type, value.toString().trim().toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            StringBuilder names = new StringBuilder();
            for (E each : type.getEnumConstants()) {
                names.append(names.length() == 0 ? "" : ", ").append(each.name().toLowerCase(Locale.ROOT));
            }
            throw new ConfigException(name, value, "it must be one of " + names);
        }
    }

    Options options() {
        // A damaged log is cut at the damage: what is left is a state that the store had, with its offsets.
        Options options = new Options().durability(durability).recovery(Options.Recovery.KEEP_PREFIX);
        if (memory > 0) {
            options.memory(memory);
        }
        if (workers > 0) {
            options.workers(workers);
        }
        if (compression != null) {
            options.compression(compression);
        }
        return options;
    }
}
