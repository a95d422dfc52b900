/**
 * State stores of Kafka Streams that keep their entries in Esker.
 *
 * <p>One line moves an application:
 *
 * <pre>{@code
 * properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, EskerDslStoreSuppliers.class);
 * }</pre>
 *
 * <p>{@link dev.esker.kafka.EskerStores} has the suppliers of single stores, for the processor API.
 *
 * <p><b>Errors.</b> The stores throw the exceptions that Kafka Streams knows: {@code
 * InvalidStateStoreException} for what was closed, {@code TaskCorruptedException} for damage, upon which Kafka
 * restores the task from its changelogs, and {@code ProcessorStateException} for the rest, with the {@link
 * dev.esker.EskerException} as its cause.
 */
package dev.esker.kafka;
