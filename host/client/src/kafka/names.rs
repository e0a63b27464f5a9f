//! What becomes of each setting of the Java clients: taken as it is, renamed, ignored, or refused.
//!
//! Names of librdkafka itself pass as they are, so that its own settings can be had, too.

use super::KafkaRole;

/// What becomes of a setting.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Under this name to the client.
    Passed(&'static str),
    /// As it is to the client.
    Same,
    /// It has no meaning here; the query does what it says without it.
    Ignored(&'static str),
    /// The query would mean something else: why, and the way out.
    Refused(&'static str),
    /// Read by the connector, or translated together with others.
    Read,
}

/// The fate of a setting, by its name without the prefix, in lower case.
pub(super) fn fate(name: &str, role: KafkaRole) -> Fate {
    let by_role = match role {
        KafkaRole::Source => of_source(name),
        KafkaRole::Sink => of_sink(name),
    };
    by_role.or_else(|| of_security(name)).unwrap_or_else(|| of_both(name))
}

fn of_source(name: &str) -> Option<Fate> {
    Some(match name {
        "auto.offset.reset" => Fate::Refused(
            "where to begin is said by startingOffsets, and what becomes of lost offsets by failOnDataLoss; the checkpoint \
             says where to go on",
        ),
        "key.deserializer" => {
            Fate::Refused("keys are bytes; decode them in the query, for example by CAST(key AS STRING)")
        }
        "value.deserializer" => {
            Fate::Refused("values are bytes; decode them in the query, for example by CAST(value AS STRING)")
        }
        "enable.auto.commit" | "auto.commit.interval.ms" | "auto.commit.enable" | "enable.auto.offset.store" => {
            Fate::Refused("offsets are kept in the checkpoint and never committed to Kafka; leave it out")
        }
        "enable.partition.eof" => Fate::Refused("the source needs to see ends of partitions; leave it out"),
        "fetch.max.wait.ms" => Fate::Passed("fetch.wait.max.ms"),
        "max.partition.fetch.bytes" => Fate::Passed("fetch.message.max.bytes"),
        "request.timeout.ms" => Fate::Passed("socket.timeout.ms"),
        "max.poll.records" => Fate::Ignored("records are taken by offsets; see maxOffsetsPerTrigger"),
        "partition.assignment.strategy" | "exclude.internal.topics" | "group.protocol" | "group.remote.assignor" => {
            Fate::Ignored("the source takes its partitions itself and joins no group")
        }
        "session.timeout.ms" | "heartbeat.interval.ms" | "max.poll.interval.ms" | "group.instance.id" => {
            Fate::Ignored("the source joins no group")
        }
        _ => return None,
    })
}

fn of_sink(name: &str) -> Option<Fate> {
    Some(match name {
        "key.serializer" => Fate::Refused("keys are written as they are: column `key` of type string or binary"),
        "value.serializer" => Fate::Refused("values are written as they are: column `value` of type string or binary"),
        "partitioner.class" => Fate::Refused(
            "classes of Java cannot be loaded; name the partition in a column `partition`, or set kafka.partitioner",
        ),
        "max.request.size" => Fate::Passed("message.max.bytes"),
        "max.block.ms" | "buffer.memory" => Fate::Read,
        "metadata.max.idle.ms" | "partitioner.ignore.keys" | "partitioner.adaptive.partitioning.enable" => {
            Fate::Ignored("the client has no such setting")
        }
        "partitioner.availability.timeout.ms" => Fate::Ignored("the client has no such setting"),
        _ => return None,
    })
}

fn of_security(name: &str) -> Option<Fate> {
    Some(match name {
        "sasl.jaas.config" | "security.protocol" | "ssl.endpoint.identification.algorithm" => Fate::Read,
        "ssl.truststore.location" | "ssl.truststore.type" | "ssl.keystore.location" | "ssl.keystore.type" => Fate::Read,
        "ssl.truststore.password" => Fate::Read,
        "ssl.truststore.certificates" => Fate::Passed("ssl.ca.pem"),
        "ssl.keystore.certificate.chain" => Fate::Passed("ssl.certificate.pem"),
        "ssl.keystore.key" => Fate::Passed("ssl.key.pem"),
        "ssl.protocol"
        | "ssl.enabled.protocols"
        | "ssl.provider"
        | "ssl.trustmanager.algorithm"
        | "ssl.keymanager.algorithm"
        | "ssl.secure.random.implementation"
        | "security.providers" => Fate::Ignored("TLS is that of OpenSSL here, from version 1.2 on"),
        "ssl.engine.factory.class" => Fate::Refused("classes of Java cannot be loaded"),
        "sasl.login.class"
        | "sasl.login.callback.handler.class"
        | "sasl.client.callback.handler.class"
        | "sasl.oauthbearer.jwt.retriever.class" => {
            Fate::Refused("classes of Java cannot be loaded; log in by kafka.sasl.username and kafka.sasl.password")
        }
        "plugin.library.paths" => Fate::Refused("no libraries are loaded into the host"),
        name if name.starts_with("sasl.login.refresh.") || name.starts_with("sasl.kerberos.ticket.") => {
            Fate::Ignored("logins are by user and password here")
        }
        _ => return None,
    })
}

fn of_both(name: &str) -> Fate {
    match name {
        "bootstrap.servers" | "default.api.timeout.ms" => Fate::Read,
        "metadata.broker.list" => Fate::Refused("write kafka.bootstrap.servers"),
        "interceptor.classes" => Fate::Refused(
            "interceptors could change what a batch reads or writes, and classes of Java cannot be loaded",
        ),
        "metadata.max.age.ms" => Fate::Passed("topic.metadata.refresh.interval.ms"),
        "receive.buffer.bytes" => Fate::Passed("socket.receive.buffer.bytes"),
        "send.buffer.bytes" => Fate::Passed("socket.send.buffer.bytes"),
        "socket.connection.setup.timeout.max.ms" => Fate::Passed("socket.connection.setup.timeout.ms"),
        "metric.reporters" | "metrics.num.samples" | "metrics.recording.level" | "metrics.sample.window.ms" => {
            Fate::Ignored("figures are in the progress of the query")
        }
        "auto.include.jmx.reporter" | "config.providers" => Fate::Ignored("it is a matter of Java"),
        _ => Fate::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_one_fate_by_role() {
        use KafkaRole::{Sink, Source};
        assert_eq!(fate("fetch.max.wait.ms", Source), Fate::Passed("fetch.wait.max.ms"));
        assert_eq!(fate("linger.ms", Sink), Fate::Same);
        assert!(matches!(fate("auto.offset.reset", Source), Fate::Refused(_)));
        assert!(matches!(fate("interceptor.classes", Sink), Fate::Refused(_)));
        assert!(matches!(fate("max.poll.records", Source), Fate::Ignored(_)));
        assert_eq!(fate("sasl.jaas.config", Sink), Fate::Read);
        assert_eq!(fate("request.timeout.ms", Sink), Fate::Same);
    }
}
