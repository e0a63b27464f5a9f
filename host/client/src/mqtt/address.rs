//! Where a broker is and who asks, from the options of a connector.

use crate::database::{Secret, parse_url};
use crate::server_options;
use millstream_common::secrets::without_password;
use millstream_common::{OptionError, Options};
use std::time::Duration;

/// The options that say where a broker is; connectors add their own.
pub const MQTT_OPTIONS: [&str; 11] = [
    "url",
    "user",
    "password",
    "passwordEnv",
    "clientId",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "connectTimeout",
    "queryTimeout",
    "keepAlive",
];

/// How long a connection may take to open where nobody says it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may take where nobody says it.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// After how long a silent connection is looked after where nobody says it.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// A packet says the time in seconds, with 16 bits.
const LONGEST_KEEP_ALIVE: Duration = Duration::from_secs(u16::MAX as u64);

const EXAMPLE: &str = "write for example mqtt://user@host:1883, or mqtts:// for TLS";

/// Where a broker is, and who asks.
#[derive(Debug, Clone)]
pub struct MqttAddress {
    /// The machine.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The user; without one nobody in particular.
    pub user: Option<String>,
    /// The user's password, if there is one.
    pub password: Option<Secret>,
    /// The name that the user gives the client, if they give one.
    pub client_id: Option<String>,
    /// Whether the connection is encrypted and the broker must prove its name.
    pub tls: bool,
    /// A file with the certificates that are trusted, in the place of the system's.
    pub root_certificates: Option<String>,
    /// Files with the certificate that shows who asks, and with its key.
    pub certificate: Option<(String, String)>,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub query_timeout: Option<Duration>,
    /// After how long without a word the two sides look whether the other is there.
    pub keep_alive: Duration,
}

impl MqttAddress {
    /// The address that options say. `environment` answers what a variable of the process holds.
    ///
    /// # Errors
    /// When an option is missing or does not fit.
    pub fn new(
        owner: &str,
        options: &Options,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, OptionError> {
        let mut address = Self::of_url(owner, options.require(owner, "url")?)?;
        if let Some(user) = options.get("user") {
            address.user = Some(user.to_owned()).filter(|user| !user.is_empty());
        }
        if let Some(password) = server_options::password(owner, options, environment)? {
            address.password = Some(password);
        }
        for name in ["sslrootcert", "sslcert", "sslkey"] {
            if let Some(file) = options.get(name).filter(|_| !address.tls) {
                let reason = "the connection is not encrypted; let `url` begin with mqtts://";
                return Err(Options::invalid(owner, name, file, reason));
            }
        }
        address.root_certificates = options.get("sslrootcert").map(str::to_owned);
        address.certificate = match (options.get("sslcert"), options.get("sslkey")) {
            (Some(certificate), Some(key)) => Some((certificate.to_owned(), key.to_owned())),
            (None, None) => None,
            (Some(file), None) => {
                return Err(Options::invalid(owner, "sslcert", file, "name the file of its key with `sslkey`"));
            }
            (None, Some(file)) => {
                return Err(Options::invalid(owner, "sslkey", file, "name the file of its certificate with `sslcert`"));
            }
        };
        if let Some(id) = options.get("clientId") {
            if id.is_empty() || id.len() > usize::from(u16::MAX) || id.contains(char::is_control) {
                let reason = "write a name that no other client of the broker has, or leave it out";
                return Err(Options::invalid(owner, "clientId", id, reason));
            }
            address.client_id = Some(id.to_owned());
        }
        if let Some(time) = server_options::connect_timeout(owner, options)? {
            address.connect_timeout = time;
        }
        address.query_timeout = server_options::query_timeout(owner, options, address.query_timeout)?;
        if let Some(time) = server_options::time(owner, options, "keepAlive")? {
            if time < Duration::from_secs(1) || time > LONGEST_KEEP_ALIVE {
                let text = options.get("keepAlive").unwrap_or_default();
                return Err(Options::invalid(owner, "keepAlive", text, "write a time from 1 second to 18 hours"));
            }
            address.keep_alive = time;
        }
        Ok(address)
    }

    fn of_url(owner: &str, written: &str) -> Result<Self, OptionError> {
        let shown = without_password(written);
        let invalid = |reason: &str| Options::invalid(owner, "url", &shown, reason);
        if !written.contains("://") {
            return Err(invalid(EXAMPLE));
        }
        let parts = parse_url(written.trim()).map_err(|reason| invalid(&format!("{reason}; {EXAMPLE}")))?;
        let tls = match parts.scheme.as_str() {
            "mqtt" => false,
            "mqtts" => true,
            _ => return Err(invalid(EXAMPLE)),
        };
        if parts.host.is_empty() {
            return Err(invalid(EXAMPLE));
        }
        if parts.database.is_some() || !parts.parameters.is_empty() {
            return Err(invalid("nothing may follow the port; write topics and all else as options"));
        }
        Ok(Self {
            host: parts.host,
            port: parts.port.unwrap_or(if tls { 8883 } else { 1883 }),
            user: parts.user,
            password: parts.password.map(Secret::new),
            client_id: None,
            tls,
            root_certificates: None,
            certificate: None,
            connect_timeout: CONNECT_TIMEOUT,
            query_timeout: Some(QUERY_TIMEOUT),
            keep_alive: KEEP_ALIVE,
        })
    }

    /// The place as a person would name it.
    pub fn place(&self) -> String {
        let scheme = if self.tls { "mqtts" } else { "mqtt" };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{scheme}://{host}:{}", self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(options: &Options) -> Result<MqttAddress, OptionError> {
        let environment = |name: &str| (name == "BROKER_PASSWORD").then(|| "of the environment".to_owned());
        MqttAddress::new("source `s`", options, &environment)
    }

    fn of_url(url: &str) -> Result<MqttAddress, OptionError> {
        address(&Options::new().with("url", url))
    }

    #[test]
    fn a_url_says_all_and_options_go_before_it() {
        let plain = of_url("mqtt://broker").unwrap();
        assert_eq!((plain.place().as_str(), plain.tls, plain.user), ("mqtt://broker:1883", false, None));
        let full = of_url("mqtts://ann:p%40ss@broker").unwrap();
        assert_eq!((full.place().as_str(), full.tls), ("mqtts://broker:8883", true));
        assert_eq!((full.user.as_deref(), full.password.as_ref().unwrap().reveal()), (Some("ann"), "p@ss"));
        assert_eq!(of_url("mqtt://[::1]:7000/").unwrap().place(), "mqtt://[::1]:7000");
        let options = Options::new().with("url", "mqtt://ann:old@broker").with("user", "bob").with("password", "new");
        let options = options.with("queryTimeout", "0").with("connectTimeout", "2 seconds");
        let mixed = address(&options.with("keepAlive", "5 seconds").with("clientId", "me")).unwrap();
        assert_eq!((mixed.user.as_deref(), mixed.password.unwrap().reveal()), (Some("bob"), "new"));
        assert_eq!((mixed.query_timeout, mixed.connect_timeout), (None, Duration::from_secs(2)));
        assert_eq!((mixed.keep_alive, mixed.client_id.as_deref()), (Duration::from_secs(5), Some("me")));
    }

    #[test]
    fn a_password_comes_from_the_environment_and_is_never_shown() {
        let options = Options::new().with("url", "mqtt://ann@broker").with("passwordEnv", "BROKER_PASSWORD");
        let found = address(&options).unwrap();
        assert!(!format!("{found:?}").contains("of the environment"), "{found:?}");
        assert_eq!(found.password.unwrap().reveal(), "of the environment");
    }

    #[test]
    fn what_does_not_fit_is_refused_without_the_password() {
        for (url, part) in [
            ("tcp://ann:secret@broker", "mqtt://user@host"),
            ("broker:1883", "mqtt://user@host"),
            ("mqtt://ann:secret@", "mqtt://user@host"),
            ("mqtt://ann:secret@broker:0", "1 to 65535"),
            ("mqtt://ann:secret@broker/topic", "as options"),
            ("mqtt://ann:secret@broker?qos=1", "as options"),
        ] {
            let text = of_url(url).unwrap_err().to_string();
            assert!(text.contains(part) && !text.contains("secret"), "{url}: {text}");
        }
        let plain = Options::new().with("url", "mqtt://b");
        for name in ["sslrootcert", "sslcert", "sslkey"] {
            let error = address(&plain.clone().with(name, "file.pem")).unwrap_err().to_string();
            assert!(error.contains("mqtts://"), "{error}");
        }
        let encrypted = Options::new().with("url", "mqtts://b");
        for (name, other) in [("sslcert", "sslkey"), ("sslkey", "sslcert")] {
            let error = address(&encrypted.clone().with(name, "file.pem")).unwrap_err().to_string();
            assert!(error.contains(other), "{error}");
        }
        for (name, value) in [("keepAlive", "0 s"), ("keepAlive", "2 days"), ("clientId", ""), ("queryTimeout", "x")] {
            let error = address(&plain.clone().with(name, value)).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        assert!(address(&Options::new()).unwrap_err().to_string().contains("`url`"));
    }
}
