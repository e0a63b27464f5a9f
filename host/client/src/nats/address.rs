//! Where servers are and who asks, from the options of a connector.

use crate::database::{Secret, parse_url};
use crate::server_options;
use millstream_common::secrets::without_password;
use millstream_common::{OptionError, Options};
use std::time::Duration;

/// The options that say where servers are; connectors add their own.
pub const NATS_OPTIONS: [&str; 15] = [
    "servers",
    "user",
    "password",
    "passwordEnv",
    "token",
    "tokenEnv",
    "nkey",
    "credentials",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "domain",
    "inboxPrefix",
    "connectTimeout",
    "queryTimeout",
];

/// How long a connection may take to open where nobody says it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may take where nobody says it.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// The variable in which the server's own programs look for a password.
const PASSWORD_VARIABLE: &str = "NATS_PASSWORD";

const EXAMPLE: &str = "write for example nats://one:4222, or several with commas between, as in \
                       nats://one:4222,nats://two:4222; tls:// for TLS";
/// User and password of a URL.
type UserInfo = (String, Option<String>);

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// Nobody in particular.
    Nobody,
    /// A user.
    User {
        /// The name.
        name: String,
        /// The password; empty where there is none.
        password: Secret,
    },
    /// Whoever has the token.
    Token(Secret),
    /// Whoever has the key of which this file holds the seed.
    Nkey(String),
    /// The user whose token and key are in this file.
    Credentials(String),
}

impl Login {
    /// As a person would name them.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Nobody => "nobody in particular".to_owned(),
            Self::User { name, .. } => format!("user `{name}`"),
            Self::Token(_) => "the token".to_owned(),
            Self::Nkey(file) => format!("the key of `{file}`"),
            Self::Credentials(file) => format!("the user of `{file}`"),
        }
    }
}

/// Where servers are, and who asks.
#[derive(Debug, Clone)]
pub struct NatsAddress {
    /// One server, or several of one cluster, of which any will do: `nats://host:port`, without a user.
    pub servers: Vec<String>,
    /// Who asks.
    pub login: Login,
    /// Whether the connection must be encrypted; it is also when the server demands it.
    pub tls: bool,
    /// A file with the certificates that are trusted, in the place of the system's.
    pub root_certificates: Option<String>,
    /// Files with the certificate that shows who asks, and with its key.
    pub certificate: Option<(String, String)>,
    /// The domain of JetStream, when it is not the one of the server that is connected to.
    pub domain: Option<String>,
    /// What subjects begin with to which answers come.
    pub inbox_prefix: Option<String>,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub query_timeout: Option<Duration>,
}

impl NatsAddress {
    /// The address that options say. `environment` answers what a variable of the process holds.
    ///
    /// # Errors
    /// When an option is missing or does not fit.
    pub fn new(
        owner: &str,
        options: &Options,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, OptionError> {
        let (servers, of_urls) = servers(owner, options.require(owner, "servers")?)?;
        let root_certificates = options.get("sslrootcert").map(str::to_owned);
        let certificate = server_options::own_certificate(owner, options)?;
        let tls = root_certificates.is_some()
            || certificate.is_some()
            || servers.iter().any(|server| server.starts_with("tls://"));
        for (name, is_name) in [("domain", true), ("inboxPrefix", false)] {
            let is_part = |text: &str| {
                let is_plain = |token: &str| !token.is_empty() && !token.contains([' ', '\t', '\r', '\n', '*', '>']);
                text.split('.').all(is_plain) && !(is_name && text.contains('.'))
            };
            if let Some(text) = options.get(name).filter(|text| !is_part(text)) {
                return Err(Options::invalid(owner, name, text, "write a name without spaces and wildcards"));
            }
        }
        Ok(Self {
            login: login(owner, options, environment, of_urls)?,
            servers,
            tls,
            root_certificates,
            certificate,
            domain: options.get("domain").map(str::to_owned),
            inbox_prefix: options.get("inboxPrefix").map(str::to_owned),
            connect_timeout: server_options::connect_timeout(owner, options)?.unwrap_or(CONNECT_TIMEOUT),
            query_timeout: server_options::query_timeout(owner, options, Some(QUERY_TIMEOUT))?,
        })
    }

    /// The place as a person would name it.
    pub fn place(&self) -> String {
        self.servers.join(",")
    }
}

/// The servers of the option, and the user and password that are in the URLs.
fn servers(owner: &str, written: &str) -> Result<(Vec<String>, Option<UserInfo>), OptionError> {
    let shown = written.split(',').map(without_password).collect::<Vec<_>>().join(",");
    let invalid = |reason: &str| Options::invalid(owner, "servers", &shown, reason);
    let (mut servers, mut login) = (Vec::new(), None);
    for text in written.split(',') {
        let text = text.trim();
        let url = if text.contains("://") { text.to_owned() } else { format!("nats://{text}") };
        let parts = parse_url(&url).map_err(|reason| invalid(&format!("{reason}; {EXAMPLE}")))?;
        if !matches!(parts.scheme.as_str(), "nats" | "tls") || parts.host.is_empty() {
            return Err(invalid(EXAMPLE));
        }
        if parts.database.is_some() || !parts.parameters.is_empty() {
            return Err(invalid("nothing may follow the port; write streams and all else as options"));
        }
        if let Some(user) = parts.user {
            let found = Some((user, parts.password));
            if login.is_some() && login != found {
                return Err(invalid("its servers name several users; write `user` and `password` as options"));
            }
            login = found;
        }
        let host = if parts.host.contains(':') { format!("[{}]", parts.host) } else { parts.host };
        servers.push(format!("{}://{host}:{}", parts.scheme, parts.port.unwrap_or(4222)));
    }
    Ok((servers, login))
}

/// Who asks: exactly one of the ways in which somebody can.
fn login(
    owner: &str,
    options: &Options,
    environment: &dyn Fn(&str) -> Option<String>,
    of_urls: Option<UserInfo>,
) -> Result<Login, OptionError> {
    let password = server_options::password(owner, options, environment)?;
    let token = server_options::secret(owner, options, environment, ("token", "tokenEnv"))?;
    let user = options.get("user").filter(|user| !user.is_empty()).map(str::to_owned);
    let is_same_user = |name: &String| of_urls.as_ref().is_none_or(|(of_urls, _)| of_urls == name);
    let in_url = of_urls.as_ref().and_then(|(_, password)| password.clone()).filter(|_| user.iter().all(is_same_user));
    let user = user.or(of_urls.map(|(name, _)| name));
    let ways = [
        ("user", user.is_some()),
        ("token", token.is_some()),
        ("nkey", options.get("nkey").is_some()),
        ("credentials", options.get("credentials").is_some()),
    ];
    let mut set = ways.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name);
    if let (Some(one), Some(other)) = (set.next(), set.next()) {
        let shown = if other == "token" { "***" } else { options.get(other).unwrap_or_default() };
        let reason = format!("`{one}` is set too; somebody is let in by one of user, token, nkey and credentials");
        return Err(Options::invalid(owner, other, shown, &reason));
    }
    if let Some(name) = user {
        let password = password.or(in_url.map(Secret::new)).or_else(|| environment(PASSWORD_VARIABLE).map(Secret::new));
        return Ok(Login::User { name, password: password.unwrap_or(Secret::new("")) });
    }
    if password.is_some() {
        return Err(OptionError::Missing { owner: owner.to_owned(), option: "user".to_owned() });
    }
    let file = |name: &str| options.get(name).map(str::to_owned);
    Ok(match (token, file("nkey"), file("credentials")) {
        (Some(token), _, _) => Login::Token(token),
        (None, Some(file), _) => Login::Nkey(file),
        (None, None, Some(file)) => Login::Credentials(file),
        (None, None, None) => Login::Nobody,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(options: &[(&str, &str)]) -> Result<NatsAddress, OptionError> {
        let environment = |name: &str| (name == "BUS_SECRET").then(|| "of the environment".to_owned());
        let options = options.iter().fold(Options::new(), |all, (name, value)| all.with(*name, *value));
        NatsAddress::new("source `s`", &options, &environment)
    }

    fn user(name: &str, password: &str) -> Login {
        Login::User { name: name.into(), password: Secret::new(password) }
    }

    #[test]
    fn servers_are_a_list_and_options_go_before_what_urls_say() {
        let plain = address(&[("servers", "one")]).unwrap();
        assert_eq!((plain.place().as_str(), plain.tls, &plain.login), ("nats://one:4222", false, &Login::Nobody));
        assert_eq!(plain.query_timeout, Some(QUERY_TIMEOUT));
        let several = address(&[("servers", "nats://one:1, tls://two , nats://[::1]:7")]).unwrap();
        assert_eq!((several.place().as_str(), several.tls), ("nats://one:1,tls://two:4222,nats://[::1]:7", true));
        let full = address(&[("servers", "nats://ann:p%40ss@one,nats://ann:p%40ss@two")]).unwrap();
        assert_eq!((full.place().as_str(), full.login), ("nats://one:4222,nats://two:4222", user("ann", "p@ss")));
        let other = [("servers", "nats://ann:old@one"), ("user", "bob"), ("password", "new"), ("queryTimeout", "0")];
        let other = address(&other).unwrap();
        assert_eq!((other.login, other.query_timeout), (user("bob", "new"), None));
        let nobody = address(&[("servers", "nats://ann:old@one"), ("user", "bob")]).unwrap();
        assert_eq!(nobody.login, user("bob", ""), "the password of another user is none");
    }

    #[test]
    fn somebody_is_let_in_in_one_way() {
        let way = |name: &str, value: &str| address(&[("servers", "one"), (name, value)]).map(|found| found.login);
        assert_eq!(way("token", "t").unwrap(), Login::Token(Secret::new("t")));
        assert_eq!(way("tokenEnv", "BUS_SECRET").unwrap(), Login::Token(Secret::new("of the environment")));
        assert_eq!(way("nkey", "user.nk").unwrap(), Login::Nkey("user.nk".into()));
        assert_eq!(way("credentials", "user.creds").unwrap(), Login::Credentials("user.creds".into()));
        assert!(way("password", "p").unwrap_err().to_string().contains("`user`"));
        for (one, other) in [("user", "token"), ("token", "nkey"), ("nkey", "credentials"), ("user", "credentials")] {
            let error = address(&[("servers", "one"), (one, "secret"), (other, "secret")]).unwrap_err().to_string();
            assert!(error.contains(one) && error.contains(other), "{error}");
            assert!(other != "token" || !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn secrets_are_never_shown() {
        let options = [("servers", "nats://ann@one"), ("passwordEnv", "BUS_SECRET")];
        let found = address(&options).unwrap();
        assert!(!format!("{found:?}").contains("of the environment"), "{found:?}");
        assert_eq!(found.login, user("ann", "of the environment"));
        for servers in ["http://ann:secret@one", "nats://ann:secret@", "one,nats://ann:secret@two/orders"] {
            let text = address(&[("servers", servers)]).unwrap_err().to_string();
            assert!(text.contains("servers") && !text.contains("secret"), "{servers}: {text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_way_out() {
        for (name, value, part) in [
            ("servers", "ws://one", "nats://one:4222"),
            ("servers", "one,,two", "nats://one:4222"),
            ("servers", "nats://ann@one,nats://bob@two", "several users"),
            ("sslcert", "me.pem", "sslkey"),
            ("sslkey", "me.key", "sslcert"),
            ("domain", "a.b", "without spaces"),
            ("inboxPrefix", "_INBOX.>", "without spaces"),
            ("connectTimeout", "soon", "connectTimeout"),
        ] {
            let error = address(&[("servers", "one"), (name, value)]).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(name), "{error}");
        }
        assert!(address(&[]).unwrap_err().to_string().contains("`servers`"));
        let encrypted = address(&[("servers", "one"), ("sslrootcert", "ca.pem")]).unwrap();
        assert!(encrypted.tls, "who names whom to trust wants TLS");
    }
}
