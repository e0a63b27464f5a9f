//! Where a server is and who asks, from the options of a connector.

use crate::database::Secret;
use crate::server_options;
use ::redis::{ConnectionInfo, IntoConnectionInfo, parse_redis_url};
use millstream_common::secrets::without_password;
use millstream_common::{OptionError, Options};
use std::time::Duration;

/// The options that say where a server is; connectors add their own.
pub const REDIS_OPTIONS: [&str; 8] =
    ["url", "user", "password", "passwordEnv", "db", "sslrootcert", "connectTimeout", "queryTimeout"];

/// How long a connection may take to open where nobody says it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may take where nobody says it.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// The variable in which the server's own programs look for a password.
const PASSWORD_VARIABLE: &str = "REDISCLI_AUTH";

const EXAMPLE: &str = "write for example redis://user@host:6379/0, or rediss:// for TLS";

/// Where a server is, and who asks.
#[derive(Debug, Clone)]
pub struct RedisAddress {
    /// The machine.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The number of the database.
    pub db: i64,
    /// The user; without one the server's default.
    pub user: Option<String>,
    /// The user's password, if there is one.
    pub password: Option<Secret>,
    /// Whether the connection is encrypted and the server must prove its name.
    pub tls: bool,
    /// A file with the certificates that are trusted, in the place of the system's.
    pub root_certificates: Option<String>,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub query_timeout: Option<Duration>,
}

impl RedisAddress {
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
        } else if address.password.is_none() {
            address.password = environment(PASSWORD_VARIABLE).map(Secret::new);
        }
        if let Some(db) = options.parse::<u32>(owner, "db", "write the number of a database, such as 0")? {
            address.db = db.into();
        }
        if let Some(file) = options.get("sslrootcert") {
            if !address.tls {
                let reason = "the connection is not encrypted; let `url` begin with rediss://";
                return Err(Options::invalid(owner, "sslrootcert", file, reason));
            }
            address.root_certificates = Some(file.to_owned());
        }
        if let Some(time) = server_options::connect_timeout(owner, options)? {
            address.connect_timeout = time;
        }
        address.query_timeout = server_options::query_timeout(owner, options, address.query_timeout)?;
        Ok(address)
    }

    fn of_url(owner: &str, written: &str) -> Result<Self, OptionError> {
        let shown = without_password(written);
        let invalid = |reason: &str| Options::invalid(owner, "url", &shown, reason);
        let url = parse_redis_url(written.trim()).ok_or_else(|| invalid(EXAMPLE))?;
        let tls = match url.scheme() {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err(invalid(EXAMPLE)),
        };
        if url.fragment().is_some() {
            return Err(invalid(
                "what follows the `#` is not taken; with rediss:// the server must always prove its name",
            ));
        }
        if url.query().is_some() {
            return Err(invalid("it has parameters, and none is known; write them as options"));
        }
        let info: ConnectionInfo = url.clone().into_connection_info().map_err(|error| {
            let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
            invalid(&format!("{reason}; {EXAMPLE}"))
        })?;
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let redis = info.redis_settings();
        if redis.db() < 0 || url.port() == Some(0) {
            return Err(invalid(EXAMPLE));
        }
        Ok(Self {
            host,
            port: url.port().unwrap_or(6379),
            db: redis.db(),
            user: redis.username().map(str::to_owned),
            password: redis.password().map(Secret::new),
            tls,
            root_certificates: None,
            connect_timeout: CONNECT_TIMEOUT,
            query_timeout: Some(QUERY_TIMEOUT),
        })
    }

    /// The place as a person would name it.
    pub fn place(&self) -> String {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{scheme}://{host}:{}/{}", self.port, self.db)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(options: &Options) -> Result<RedisAddress, OptionError> {
        let environment = |name: &str| (name == "CACHE_PASSWORD").then(|| "of the environment".to_owned());
        RedisAddress::new("sink `redis`", options, &environment)
    }

    fn of_url(url: &str) -> Result<RedisAddress, OptionError> {
        address(&Options::new().with("url", url))
    }

    #[test]
    fn a_url_says_all_and_options_go_before_it() {
        let plain = of_url("redis://cache").unwrap();
        assert_eq!((plain.place().as_str(), plain.tls), ("redis://cache:6379/0", false));
        assert_eq!(plain.query_timeout, Some(QUERY_TIMEOUT));
        let full = of_url("rediss://ann:p%40ss@cache:7000/3").unwrap();
        assert_eq!((full.place().as_str(), full.tls), ("rediss://cache:7000/3", true));
        assert_eq!((full.user.as_deref(), full.password.as_ref().unwrap().reveal()), (Some("ann"), "p@ss"));
        assert_eq!(of_url("redis://[::1]:7000").unwrap().place(), "redis://[::1]:7000/0");
        let options = Options::new().with("url", "redis://ann:old@cache/3").with("user", "bob").with("password", "new");
        let options = options.with("db", "5").with("queryTimeout", "0").with("connectTimeout", "2 seconds");
        let mixed = address(&options).unwrap();
        assert_eq!((mixed.user.as_deref(), mixed.password.unwrap().reveal(), mixed.db), (Some("bob"), "new", 5));
        assert_eq!((mixed.query_timeout, mixed.connect_timeout), (None, Duration::from_secs(2)));
    }

    #[test]
    fn a_password_comes_from_the_environment_and_is_never_shown() {
        let options = Options::new().with("url", "redis://ann@cache").with("passwordEnv", "CACHE_PASSWORD");
        let found = address(&options).unwrap();
        assert!(!format!("{found:?}").contains("of the environment"), "{found:?}");
        assert_eq!(found.password.unwrap().reveal(), "of the environment");
        let error = address(&options.with("passwordEnv", "NONE")).unwrap_err();
        assert!(error.to_string().contains("no such variable"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_refused_without_the_password() {
        for (url, part) in [
            ("http://ann:secret@cache", "redis://user@host"),
            ("unix:///run/redis.sock", "redis://user@host"),
            ("cache:6379", "redis://user@host"),
            ("redis://ann:secret@cache/users", "database number"),
            ("redis://ann:secret@cache/-1", "redis://user@host"),
            ("redis://ann:secret@cache/0?protocol=resp3", "parameters"),
            ("rediss://ann:secret@cache/0#insecure", "prove its name"),
            ("redis://ann:secret@", "redis://user@host"),
        ] {
            let text = of_url(url).unwrap_err().to_string();
            assert!(text.contains(part) && !text.contains("secret"), "{url}: {text}");
        }
        let error = address(&Options::new().with("url", "redis://c").with("sslrootcert", "ca.pem")).unwrap_err();
        assert!(error.to_string().contains("rediss://"), "{error}");
        assert!(address(&Options::new()).unwrap_err().to_string().contains("`url`"));
    }
}
