use super::*;

const OWNER: &str = "source `t`";

fn some() -> Options {
    Options::new().with("kafka.bootstrap.servers", "localhost:9092")
}

fn refusal(options: &Options, role: KafkaRole) -> String {
    KafkaOptions::new(OWNER, options, role).unwrap_err().to_string()
}

#[test]
fn settings_lose_their_prefix_and_are_checked_by_the_client() {
    let options =
        some().with("Kafka.Fetch.Min.Bytes", "5").with("kafka.fetch.max.wait.ms", "70").with("subscribe", "t");
    let kafka = KafkaOptions::new(OWNER, &options, KafkaRole::Source).unwrap();
    let config = kafka.client_config();
    assert_eq!(config.get("bootstrap.servers"), Some("localhost:9092"));
    assert_eq!((config.get("fetch.min.bytes"), config.get("fetch.wait.max.ms")), (Some("5"), Some("70")));
    assert_eq!(KafkaOptions::others(&options), Options::new().with("subscribe", "t"));
    let text = refusal(&some().with("kafka.fetch.max.wait.ms", "soon"), KafkaRole::Source);
    assert!(text.starts_with("option `kafka.fetch.max.wait.ms` of source `t` cannot be `soon`"), "{text}");
    let text = refusal(&some().with("kafka.no.such.thing", "1"), KafkaRole::Source);
    assert!(text.contains("`kafka.no.such.thing`") && text.contains("neither"), "{text}");
}

#[test]
fn what_spark_refuses_is_refused_with_the_way_out() {
    for (name, way_out) in [
        ("kafka.auto.offset.reset", "startingOffsets"),
        ("kafka.key.deserializer", "CAST(key AS STRING)"),
        ("kafka.value.deserializer", "CAST(value AS STRING)"),
        ("kafka.enable.auto.commit", "never committed"),
        ("kafka.interceptor.classes", "interceptors"),
        ("group.id", "kafka.group.id"),
    ] {
        let text = refusal(&some().with(name, "x"), KafkaRole::Source);
        assert!(text.contains(name) && text.contains(way_out), "{text}");
    }
    for (name, way_out) in [
        ("kafka.key.serializer", "column `key`"),
        ("kafka.value.serializer", "column `value`"),
        ("kafka.interceptor.classes", "Java"),
    ] {
        let text = refusal(&some().with(name, "x"), KafkaRole::Sink);
        assert!(text.contains(name) && text.contains(way_out), "{text}");
    }
    let text = refusal(&Options::new().with("subscribe", "t"), KafkaRole::Source);
    assert_eq!(text, "option `kafka.bootstrap.servers` of source `t` is missing");
}

#[test]
fn a_login_of_java_becomes_user_and_password_which_nobody_sees() {
    let login =
        "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"alice\" password=\"sesame\";";
    let options = some()
        .with("kafka.security.protocol", "SASL_SSL")
        .with("kafka.sasl.mechanism", "SCRAM-SHA-512")
        .with("kafka.sasl.jaas.config", login);
    let kafka = KafkaOptions::new(OWNER, &options, KafkaRole::Sink).unwrap();
    let config = kafka.client_config();
    assert_eq!((config.get("sasl.username"), config.get("sasl.password")), (Some("alice"), Some("sesame")));
    assert_eq!(config.get("security.protocol"), Some("sasl_ssl"));
    assert!(!format!("{kafka:?}").contains("sesame"));
    let text = refusal(&some().with("kafka.sasl.jaas.config", login), KafkaRole::Sink);
    assert!(text.contains("SCRAM-SHA-256") && !text.contains("sesame"), "{text}");
    let text = refusal(&some().with("kafka.sasl.jaas.config", "x.Other required password=sesame;"), KafkaRole::Sink);
    assert!(!text.contains("sesame"), "{text}");
    let text = refusal(&some().with("sasl.password", "sesame"), KafkaRole::Sink);
    assert!(text.contains("kafka.sasl.password") && !text.contains("sesame"), "{text}");
}

#[test]
fn stores_of_java_and_logins_that_are_not_there_are_refused() {
    let text = refusal(&some().with("kafka.ssl.truststore.location", "/etc/trust.jks"), KafkaRole::Source);
    assert!(text.contains("PEM"), "{text}");
    let text = refusal(&some().with("kafka.ssl.keystore.location", "/etc/keys.jks"), KafkaRole::Source);
    assert!(text.contains("PKCS12"), "{text}");
    let text = refusal(&some().with("kafka.security.protocol", "SASL_PLAINTEXT"), KafkaRole::Source);
    assert!(text.contains("GSSAPI") && text.contains("SCRAM"), "{text}");
    let pem = some().with("kafka.security.protocol", "SSL").with("kafka.ssl.truststore.location", "/etc/ca.pem");
    let kafka = KafkaOptions::new(OWNER, &pem, KafkaRole::Source).unwrap();
    assert_eq!(kafka.client_config().get("ssl.ca.location"), Some("/etc/ca.pem"));
}

#[test]
fn what_the_user_says_goes_before_what_a_connector_would_like() {
    let kafka =
        KafkaOptions::new(OWNER, &some().with("kafka.isolation.level", "read_committed"), KafkaRole::Source).unwrap();
    let mut config = kafka.client_config();
    kafka.default_to(&mut config, "isolation.level", "read_uncommitted");
    kafka.default_to(&mut config, "fetch.wait.max.ms", "100");
    assert_eq!(config.get("isolation.level"), Some("read_committed"));
    assert_eq!(config.get("fetch.wait.max.ms"), Some("100"));
    assert_eq!(kafka.timeout(), Duration::from_secs(60));
}
