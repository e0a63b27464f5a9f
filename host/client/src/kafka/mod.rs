//! Kafka: options with the prefix `kafka.` become the configuration of a client.
