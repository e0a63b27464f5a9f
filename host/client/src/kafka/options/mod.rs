//! From the options of a query to the configuration of a client.

use super::jaas;
use super::names::{Fate, fate};
use millstream_common::secrets::{HIDDEN, is_secret};
use millstream_common::{OptionError, Options};
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError as ClientError;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What options of a client begin with.
const PREFIX: &str = "kafka.";
const SERVERS: &str = "bootstrap.servers";
/// How long the clients of Java try one thing, where the user does not say.
const API_TIMEOUT: Duration = Duration::from_secs(60);

/// Who uses the client: some settings mean something to one of them only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KafkaRole {
    /// Records are read.
    Source,
    /// Records are written.
    Sink,
}

/// The options `kafka.*` of a connector, checked and translated.
#[derive(Clone)]
pub struct KafkaOptions {
    servers: String,
    timeout: Duration,
    /// By the names of the client.
    entries: BTreeMap<String, String>,
    /// As the user wrote them, without the prefix, in lower case: also those that are read here.
    said: BTreeMap<String, String>,
}

impl fmt::Debug for KafkaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(name, value): (&String, &String)| {
            (name.clone(), if is_secret(name) { HIDDEN.to_owned() } else { value.clone() })
        };
        f.debug_map().entries(self.entries.iter().map(shown)).finish()
    }
}

impl KafkaOptions {
    /// Takes the options that begin with `kafka.`, in any case; `owner` names the connector in messages. Connects to
    /// nothing, but every setting that the client takes is checked by the client itself.
    ///
    /// # Errors
    /// When `kafka.bootstrap.servers` is missing, a setting is refused or unknown, or a value does not fit. The message
    /// says why, and what to write instead.
    pub fn new(owner: &str, options: &Options, role: KafkaRole) -> Result<Self, OptionError> {
        let mut said = BTreeMap::new();
        for (key, value) in options.iter() {
            let key = key.to_ascii_lowercase();
            if let Some(name) = key.strip_prefix(PREFIX) {
                said.insert(name.to_owned(), value.to_owned());
            } else if is_unprefixed(&key) {
                let reason = format!("settings of the client begin with `{PREFIX}`: write `{PREFIX}{key}`");
                return Err(Options::invalid(owner, &key, shown(&key, value), &reason));
            }
        }
        let servers = options.require(owner, &format!("{PREFIX}{SERVERS}"))?.trim().to_owned();
        if servers.is_empty() {
            return Err(invalid(owner, SERVERS, "", "write one broker or more, as host:port,host:port"));
        }
        let timeout = match said.get("default.api.timeout.ms") {
            None => API_TIMEOUT,
            Some(text) => {
                let expected = "write milliseconds, more than 0";
                let ms: u64 =
                    text.trim().parse().map_err(|_| invalid(owner, "default.api.timeout.ms", text, expected))?;
                if ms == 0 {
                    return Err(invalid(owner, "default.api.timeout.ms", text, expected));
                }
                Duration::from_millis(ms)
            }
        };
        let mut entries = BTreeMap::from([(SERVERS.to_owned(), servers.clone())]);
        for (name, value) in &said {
            match fate(name, role) {
                Fate::Same => drop(entries.insert(name.clone(), value.clone())),
                Fate::Passed(other) => drop(entries.insert(other.to_owned(), unlimited(other, value))),
                Fate::Ignored(reason) => {
                    tracing::warn!(owner, "option `{PREFIX}{name}` is ignored: {reason}");
                }
                Fate::Refused(reason) => return Err(invalid(owner, name, value, reason)),
                Fate::Read => {}
            }
        }
        security(owner, &said, &mut entries)?;
        let options = Self { servers, timeout, entries, said };
        options.check(owner)?;
        Ok(options)
    }

    /// The options that do not begin with `kafka.`: those of the connector itself.
    pub fn others(options: &Options) -> Options {
        options
            .iter()
            .filter(|(key, _)| !key.to_ascii_lowercase().starts_with(PREFIX))
            .fold(Options::new(), |others, (key, value)| others.with(key, value))
    }

    /// The brokers as the user named them.
    pub fn servers(&self) -> &str {
        &self.servers
    }

    /// How long one thing may be tried: `kafka.default.api.timeout.ms`, a minute where the user does not say.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// What the user wrote for a setting, by its name without the prefix, in lower case. Also settings that the client
    /// does not take, such as `max.block.ms`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.said.get(name).map(String::as_str)
    }

    /// A fresh configuration. What the connector needs is set on it afterwards, by [`default_to`](Self::default_to) where
    /// the user's word goes first.
    pub fn client_config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (name, value) in &self.entries {
            config.set(name, value);
        }
        config
    }

    /// Sets a setting unless the user has said something else.
    pub fn default_to(&self, config: &mut ClientConfig, name: &str, value: &str) {
        if !self.entries.contains_key(name) {
            config.set(name, value);
        }
    }

    /// Asks the client what it thinks of its settings.
    fn check(&self, owner: &str) -> Result<(), OptionError> {
        let Err(error) = self.client_config().create_native_config() else { return Ok(()) };
        let ClientError::ClientConfig(_, reason, name, value) = error else {
            return Err(invalid(owner, SERVERS, &self.servers, &error.to_string()));
        };
        let unknown = reason.starts_with("No such configuration property");
        let reason = match unknown {
            true => {
                "neither Kafka's clients in Java nor librdkafka have this setting, or this build lacks it".to_owned()
            }
            // The client repeats the value.
            false if is_secret(&name) => "the client does not take it".to_owned(),
            false => reason,
        };
        // As the user wrote it, where the client has another name for it.
        let said = self.said.contains_key(&name).then_some(name.as_str());
        let renamed = self.said.keys().find(|said| {
            [KafkaRole::Source, KafkaRole::Sink]
                .iter()
                .any(|role| matches!(fate(said, *role), Fate::Passed(other) if other == name))
        });
        let name = said.or(renamed.map(String::as_str)).unwrap_or(&name);
        Err(invalid(owner, name, &value, &reason))
    }
}

/// Names of the client that users forget the prefix of.
fn is_unprefixed(key: &str) -> bool {
    matches!(
        key,
        "group.id" | "auto.offset.reset" | "enable.auto.commit" | "interceptor.classes" | "isolation.level" | SERVERS
    ) || key.ends_with(".serializer")
        || key.ends_with(".deserializer")
        || key.starts_with("sasl.")
        || key.starts_with("ssl.")
        || key.starts_with("security.")
}

fn shown<'a>(name: &str, value: &'a str) -> &'a str {
    if is_secret(name) { HIDDEN } else { value }
}

fn invalid(owner: &str, name: &str, value: &str, reason: &str) -> OptionError {
    Options::invalid(owner, &format!("{PREFIX}{name}"), shown(name, value), reason)
}

/// The clients of Java write -1 for the buffers that the system chooses.
fn unlimited(name: &str, value: &str) -> String {
    if name.ends_with("buffer.bytes") && value.trim() == "-1" { "0".to_owned() } else { value.to_owned() }
}

/// What Java says about TLS and logins, as the client wants it.
fn security(
    owner: &str,
    said: &BTreeMap<String, String>,
    entries: &mut BTreeMap<String, String>,
) -> Result<(), OptionError> {
    let get = |name: &str| said.get(name).map(String::as_str);
    if let Some(protocol) = get("security.protocol") {
        entries.insert("security.protocol".into(), protocol.trim().to_ascii_lowercase());
    }
    if let Some(algorithm) = get("ssl.endpoint.identification.algorithm") {
        let algorithm = if algorithm.trim().is_empty() { "none" } else { algorithm.trim() };
        entries.insert("ssl.endpoint.identification.algorithm".into(), algorithm.to_ascii_lowercase());
    }
    stores(owner, said, entries)?;
    if let Some(text) = get("sasl.jaas.config") {
        let login = jaas::parse(text).map_err(|reason| invalid(owner, "sasl.jaas.config", text, reason))?;
        let named = get("sasl.mechanism").or(get("sasl.mechanisms"));
        match (named, login.mechanism) {
            (Some(named), Some(implied)) if !named.eq_ignore_ascii_case(implied) => {
                return Err(invalid(
                    owner,
                    "sasl.mechanism",
                    named,
                    "the login module of sasl.jaas.config is that of PLAIN",
                ));
            }
            (None, Some(implied)) => drop(entries.insert("sasl.mechanism".into(), implied.into())),
            (None, None) => {
                let reason = "with a ScramLoginModule kafka.sasl.mechanism says SCRAM-SHA-256 or SCRAM-SHA-512";
                return Err(invalid(owner, "sasl.jaas.config", text, reason));
            }
            _ => {}
        }
        entries.entry("sasl.username".into()).or_insert(login.username);
        entries.entry("sasl.password".into()).or_insert(login.password);
    }
    let is_sasl =
        get("security.protocol").is_some_and(|protocol| protocol.trim().to_ascii_lowercase().starts_with("sasl"));
    let mechanism = entries.get("sasl.mechanism").or(entries.get("sasl.mechanisms")).map(String::as_str);
    let (name, value) = match mechanism {
        // Kafka's own default is Kerberos.
        None if is_sasl => ("sasl.mechanism", "GSSAPI"),
        Some(value) => ("sasl.mechanism", value),
        None => return Ok(()),
    };
    match value.to_ascii_uppercase().as_str() {
        "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512" => Ok(()),
        other => {
            let reason = "this build logs in by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, or by certificates of TLS";
            Err(invalid(owner, name, other, reason))
        }
    }
}

/// Stores of certificates. OpenSSL reads PEM and PKCS#12; the stores of Java must be converted.
fn stores(
    owner: &str,
    said: &BTreeMap<String, String>,
    entries: &mut BTreeMap<String, String>,
) -> Result<(), OptionError> {
    let kind = |store: &str, place: &str| {
        let named = said.get(&format!("ssl.{store}.type")).map(|kind| kind.trim().to_ascii_uppercase());
        let ending = place.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        named.unwrap_or_else(|| match ending.as_str() {
            "pem" | "crt" | "cer" => "PEM".to_owned(),
            "p12" | "pfx" => "PKCS12".to_owned(),
            _ => "JKS".to_owned(),
        })
    };
    if let Some(place) = said.get("ssl.truststore.location") {
        if kind("truststore", place) != "PEM" {
            let reason = "trusted certificates are read as PEM: convert the store, for example by \
                          `keytool -exportcert -rfc`, and set kafka.ssl.truststore.type to PEM";
            return Err(invalid(owner, "ssl.truststore.location", place, reason));
        }
        entries.insert("ssl.ca.location".into(), place.clone());
    }
    if let Some(place) = said.get("ssl.keystore.location") {
        match kind("keystore", place).as_str() {
            "PKCS12" => drop(entries.insert("ssl.keystore.location".into(), place.clone())),
            "PEM" => {
                // One file with both, as Kafka has it.
                entries.insert("ssl.certificate.location".into(), place.clone());
                entries.insert("ssl.key.location".into(), place.clone());
            }
            _ => {
                let reason = "keys are read as PEM or PKCS#12: convert the store, for example by `keytool -importkeystore \
                              -deststoretype PKCS12`, and set kafka.ssl.keystore.type";
                return Err(invalid(owner, "ssl.keystore.location", place, reason));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
