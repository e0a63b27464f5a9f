//! Where a database is and who asks, from the options of a connector.

use super::secret::Secret;
use super::url;
use crate::server_options;
use millstream_common::secrets::without_password;
use millstream_common::{OptionError, Options};
use std::time::Duration;

/// The options that say where a database is; connectors add their own.
pub const ADDRESS_OPTIONS: [&str; 9] =
    ["url", "user", "password", "passwordEnv", "driver", "sslmode", "sslrootcert", "connectTimeout", "queryTimeout"];

/// How long a connection may take to open where nobody says it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Parameters of URLs that say how a driver of another language works, and mean nothing here.
const OF_OTHER_DRIVERS: [&str; 10] = [
    "applicationname",
    "application_name",
    "autoreconnect",
    "characterencoding",
    "rewritebatchedstatements",
    "rewritebatchedinserts",
    "servertimezone",
    "useunicode",
    "usecursorfetch",
    "allowpublickeyretrieval",
];

/// Which database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
}

impl Product {
    fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &["postgresql", "postgres"],
            Self::Mysql => &["mysql", "mariadb"],
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Postgres => 5432,
            Self::Mysql => 3306,
        }
    }

    /// The variable in which its own programs look for a password.
    fn password_variable(self) -> &'static str {
        match self {
            Self::Postgres => "PGPASSWORD",
            Self::Mysql => "MYSQL_PWD",
        }
    }

    fn example(self) -> String {
        format!("write for example {}://user@host:{}/database", self.schemes()[0], self.port())
    }
}

/// How a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Not at all.
    Disable,
    /// If the server can; whoever it is.
    Prefer,
    /// Always; whoever the server is.
    Require,
    /// Always, and the server must prove its name.
    VerifyFull,
}

impl TlsMode {
    fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().replace('_', "-").as_str() {
            "disable" | "disabled" => Self::Disable,
            "prefer" | "preferred" => Self::Prefer,
            "require" | "required" => Self::Require,
            "verify-full" | "verify-identity" => Self::VerifyFull,
            _ => return None,
        })
    }
}

/// Where a database is, and who asks.
#[derive(Debug, Clone)]
pub struct Address {
    /// Which database it is.
    pub product: Product,
    /// The machine.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The database.
    pub database: String,
    /// The user.
    pub user: String,
    /// The user's password, if there is one.
    pub password: Option<Secret>,
    /// How the connection is encrypted.
    pub tls: TlsMode,
    /// A file with the certificates that are trusted, in the place of the system's.
    pub root_certificates: Option<String>,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long a statement may take.
    pub query_timeout: Option<Duration>,
}

impl Address {
    /// The address that options say. `environment` answers what a variable of the process holds.
    ///
    /// # Errors
    /// When an option is missing or does not fit.
    pub fn new(
        product: Product,
        owner: &str,
        options: &Options,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, OptionError> {
        let written = options.require(owner, "url")?;
        let shown = without_password(written);
        let invalid = |reason: &str| Options::invalid(owner, "url", &shown, reason);
        let parts = url::parse(written).map_err(|reason| invalid(&reason))?;
        if !product.schemes().contains(&parts.scheme.as_str()) {
            return Err(invalid(&product.example()));
        }
        let mut address = Self {
            product,
            host: if parts.host.is_empty() { "localhost".to_owned() } else { parts.host },
            port: parts.port.unwrap_or(product.port()),
            database: parts.database.unwrap_or_default(),
            user: parts.user.unwrap_or_default(),
            password: parts.password.map(Secret::new),
            tls: TlsMode::Prefer,
            root_certificates: None,
            connect_timeout: CONNECT_TIMEOUT,
            query_timeout: None,
        };
        for (name, value) in &parts.parameters {
            let bad = |reason: &str| invalid(&format!("its parameter `{name}` does not fit: {reason}"));
            match name.to_ascii_lowercase().as_str() {
                "user" => address.user.clone_from(value),
                "password" => address.password = Some(Secret::new(value)),
                "sslmode" => address.tls = TlsMode::parse(value).ok_or_else(|| bad(TLS_MODES))?,
                "usessl" if value.eq_ignore_ascii_case("false") => address.tls = TlsMode::Disable,
                "usessl" => address.tls = TlsMode::Require,
                "sslrootcert" => address.root_certificates = Some(value.clone()),
                "connect_timeout" => address.connect_timeout = seconds(value).ok_or_else(|| bad("write seconds"))?,
                lower if OF_OTHER_DRIVERS.iter().any(|known| known.eq_ignore_ascii_case(lower)) => {}
                _ => return Err(invalid(&format!("it has the unknown parameter `{name}`"))),
            }
        }
        address.take(owner, options, environment)?;
        Ok(address)
    }

    fn take(
        &mut self,
        owner: &str,
        options: &Options,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), OptionError> {
        if let Some(user) = options.get("user") {
            user.clone_into(&mut self.user);
        }
        if self.user.is_empty() {
            return Err(OptionError::Missing { owner: owner.to_owned(), option: "user".to_owned() });
        }
        if self.database.is_empty() {
            let shown = without_password(options.get("url").unwrap_or_default());
            let reason = format!("it names no database; {}", self.product.example());
            return Err(Options::invalid(owner, "url", &shown, &reason));
        }
        if let Some(password) = server_options::password(owner, options, environment)? {
            self.password = Some(password);
        } else if self.password.is_none() {
            self.password = environment(self.product.password_variable()).map(Secret::new);
        }
        if let Some(mode) = options.get("sslmode") {
            self.tls = TlsMode::parse(mode).ok_or_else(|| Options::invalid(owner, "sslmode", mode, TLS_MODES))?;
        }
        if let Some(file) = options.get("sslrootcert") {
            self.root_certificates = Some(file.to_owned());
        }
        if let Some(time) = server_options::connect_timeout(owner, options)? {
            self.connect_timeout = time;
        }
        self.query_timeout = server_options::query_timeout(owner, options, None)?;
        Ok(())
    }

    /// The place as a person would name it.
    pub fn place(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{}://{host}:{}/{}", self.product.schemes()[0], self.port, self.database)
    }
}

const TLS_MODES: &str = "write disable, prefer, require or verify-full";

fn seconds(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(options: &Options) -> Result<Address, OptionError> {
        let environment = |name: &str| (name == "SHOP_PASSWORD" || name == "PGPASSWORD").then(|| format!("of {name}"));
        Address::new(Product::Postgres, "sink `postgresql`", options, &environment)
    }

    #[test]
    fn options_of_spark_and_a_url_say_the_same() {
        let url = Options::new().with("url", "postgresql://ann:pw@db:6000/shop?sslmode=require");
        let spark = Options::new()
            .with("url", "jdbc:postgresql://db:6000/shop")
            .with("user", "ann")
            .with("password", "pw")
            .with("sslmode", "require")
            .with("driver", "org.postgresql.Driver");
        for options in [url, spark] {
            let address = address(&options).unwrap();
            assert_eq!(address.place(), "postgresql://db:6000/shop");
            assert_eq!((address.user.as_str(), address.tls), ("ann", TlsMode::Require));
            assert_eq!(address.password.unwrap().reveal(), "pw");
        }
    }

    #[test]
    fn a_password_comes_from_the_environment_and_is_never_shown() {
        let options = Options::new().with("url", "postgresql://ann@db/shop");
        assert_eq!(address(&options).unwrap().password.unwrap().reveal(), "of PGPASSWORD");
        let options = options.with("passwordEnv", "SHOP_PASSWORD");
        let address = address(&options).unwrap();
        assert!(!format!("{address:?}").contains("of SHOP"), "{address:?}");
        assert_eq!(address.password.unwrap().reveal(), "of SHOP_PASSWORD");
        let error = super::tests::address(&options.with("passwordEnv", "NONE")).unwrap_err();
        assert!(error.to_string().contains("no such variable"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_refused_without_the_password() {
        for (url, part) in [
            ("mysql://ann:secret@db/shop", "postgresql://user@host"),
            ("postgresql://ann:secret@db", "names no database"),
            ("postgresql://ann:secret@db/shop?nonsense=1", "unknown parameter `nonsense`"),
            ("postgresql://ann:secret@db/shop?sslmode=maybe", "verify-full"),
        ] {
            let text = address(&Options::new().with("url", url)).unwrap_err().to_string();
            assert!(text.contains(part) && !text.contains("secret"), "{text}");
        }
        let error = address(&Options::new().with("url", "postgresql://db/shop")).unwrap_err();
        assert_eq!(error.to_string(), "option `user` of sink `postgresql` is missing");
    }
}
