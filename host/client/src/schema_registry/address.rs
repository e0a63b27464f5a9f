//! Where a registry is and who asks, from an address and options.
//!
//! Names and meaning of the options are those of the registry's own clients. Credentials are never written into a query:
//! its text shows up in plans, so an option names the variable that holds them.

use super::error::RegistryError;
use crate::database::Secret;
use millstream_common::Options;
use millstream_common::secrets::without_password;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// What the messages call us.
const OWNER: &str = "the schema registry";

/// The options that say how a registry is asked.
pub const REGISTRY_OPTIONS: [&str; 10] = [
    "basic.auth.credentials.source",
    "basic.auth.user.info.env",
    "bearer.auth.credentials.source",
    "bearer.auth.token.env",
    "http.connect.timeout.ms",
    "http.read.timeout.ms",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
    "ssl.ca.location",
];

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Login {
    /// By name and password.
    Basic { user: String, password: Secret },
    /// By a token.
    Bearer(Secret),
}

/// Where a registry is, who asks and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryAddress {
    url: Url,
    pub(super) login: Option<Login>,
    pub(super) connect_timeout: Duration,
    pub(super) read_timeout: Duration,
    pub(super) retries: u32,
    pub(super) wait: Duration,
    pub(super) wait_max: Duration,
    /// A file with certificates that are trusted beside those of the system.
    pub(super) authorities: Option<PathBuf>,
}

impl RegistryAddress {
    /// The registry at `url`, asked as `options` say; `environment` looks variables up. Options of other names are left to
    /// the caller.
    ///
    /// # Errors
    /// When the address is none, or an option does not fit.
    pub fn new(
        url: &str,
        options: &Options,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, RegistryError> {
        let milliseconds = |option: &str, default: u64| {
            let expected = "write a number of milliseconds";
            let value = options.parse::<u64>(OWNER, option, expected)?;
            Ok::<_, RegistryError>(Duration::from_millis(value.unwrap_or(default)))
        };
        let retries = options.parse::<u32>(OWNER, "max.retries", "write a number up to 100")?.unwrap_or(3);
        Ok(Self {
            url: base(url)?,
            login: login(options, environment)?,
            connect_timeout: milliseconds("http.connect.timeout.ms", 10_000)?,
            read_timeout: milliseconds("http.read.timeout.ms", 10_000)?,
            retries: retries.min(100),
            wait: milliseconds("retries.wait.ms", 1_000)?,
            wait_max: milliseconds("retries.max.wait.ms", 20_000)?,
            authorities: options.get("ssl.ca.location").map(PathBuf::from),
        })
    }

    /// The address, as it may be shown.
    pub fn place(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    /// Whether it is asked over TLS.
    pub(super) fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The address of something that the registry keeps, a name for each folder of the path.
    pub(super) fn at(&self, path: &[&str]) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }
}

fn base(text: &str) -> Result<Url, RegistryError> {
    let refuse = |reason: &str| RegistryError::Address { place: without_password(text), reason: reason.to_owned() };
    let url = Url::parse(text.trim()).map_err(|error| refuse(&format!("it is no URL, {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(refuse("it does not begin with `http://` or `https://` and a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let reason = "who asks does not belong into it: let option `basic.auth.user.info.env` name a variable with USER:PASSWORD";
        return Err(refuse(reason));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("it goes on after the path"));
    }
    Ok(url)
}

fn login(options: &Options, environment: impl Fn(&str) -> Option<String>) -> Result<Option<Login>, RegistryError> {
    for (written, named) in
        [("basic.auth.user.info", "basic.auth.user.info.env"), ("bearer.auth.token", "bearer.auth.token.env")]
    {
        if options.get(written).is_some() {
            let reason =
                format!("a query's text shows up in plans and logs; let `{named}` name a variable that holds it");
            return Err(Options::invalid(OWNER, written, "***", &reason).into());
        }
    }
    let source = |option: &str, only: &str| match options.get(option) {
        Some(source) if !source.eq_ignore_ascii_case(only) => {
            Err(Options::invalid(OWNER, option, source, &format!("it can only be {only}")))
        }
        _ => Ok(()),
    };
    source("basic.auth.credentials.source", "USER_INFO")?;
    source("bearer.auth.credentials.source", "STATIC_TOKEN")?;
    let value = |option: &str| match options.get(option) {
        None => Ok(None),
        Some(variable) => match environment(variable) {
            Some(value) if !value.is_empty() => Ok(Some((variable.to_owned(), value))),
            _ => Err(Options::invalid(OWNER, option, variable, "the environment of this process has no such variable")),
        },
    };
    match (value("basic.auth.user.info.env")?, value("bearer.auth.token.env")?) {
        (None, None) => Ok(None),
        (Some((variable, _)), Some(_)) => {
            let reason = "`bearer.auth.token.env` is set too; keep one of the two";
            Err(Options::invalid(OWNER, "basic.auth.user.info.env", &variable, reason).into())
        }
        (Some((variable, value)), None) => match value.split_once(':') {
            Some((user, password)) => Ok(Some(Login::Basic { user: user.to_owned(), password: Secret::new(password) })),
            None => {
                let reason = "what this variable holds is not of the form USER:PASSWORD";
                Err(Options::invalid(OWNER, "basic.auth.user.info.env", &variable, reason).into())
            }
        },
        (None, Some((_, token))) => Ok(Some(Login::Bearer(Secret::new(token)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(name: &str) -> Option<String> {
        match name {
            "LOGIN" => Some("ada:sesame".into()),
            "TOKEN" => Some("sesame".into()),
            "WRONG" => Some("sesame".into()),
            _ => None,
        }
    }

    fn address(url: &str, options: &Options) -> Result<RegistryAddress, RegistryError> {
        RegistryAddress::new(url, options, variables)
    }

    #[test]
    fn an_address_may_have_a_path_and_names_are_written_as_one_part_of_it() {
        let address = address("http://localhost:8081/apis/ccompat/v7/", &Options::new()).unwrap();
        let url = address.at(&["subjects", "a/b?c d", "versions", "latest"]);
        assert_eq!(url.as_str(), "http://localhost:8081/apis/ccompat/v7/subjects/a%2Fb%3Fc%20d/versions/latest");
        assert_eq!(address.place(), "http://localhost:8081/apis/ccompat/v7");
    }

    #[test]
    fn an_address_without_host_or_with_credentials_is_refused_and_the_credentials_are_not_told() {
        for wrong in ["localhost:8081", "ftp://x/", "http://ada:sesame@x:1", "http://x/?a=b", "nonsense"] {
            let error = address(wrong, &Options::new()).unwrap_err().to_string();
            assert!(!error.contains("sesame"), "{error}");
        }
    }

    #[test]
    fn credentials_come_from_variables_and_are_not_shown() {
        let options = Options::new().with("basic.auth.user.info.env", "LOGIN");
        let found = address("https://x", &options).unwrap();
        assert!(matches!(&found.login, Some(Login::Basic { user, .. }) if user == "ada"));
        assert!(!format!("{found:?}").contains("sesame"));
        let options = Options::new().with("Bearer.Auth.Token.Env", "TOKEN");
        let found = address("https://x", &options).unwrap();
        assert!(matches!(found.login, Some(Login::Bearer(_))));
        assert!(!format!("{found:?}").contains("sesame"));
    }

    #[test]
    fn credentials_that_do_not_fit_are_refused_without_being_told() {
        for (option, value) in [
            ("basic.auth.user.info", "ada:sesame"),
            ("bearer.auth.token", "sesame"),
            ("basic.auth.user.info.env", "NONE"),
            ("basic.auth.user.info.env", "WRONG"),
            ("basic.auth.credentials.source", "URL"),
            ("max.retries", "many"),
        ] {
            let error = address("https://x", &Options::new().with(option, value)).unwrap_err().in_one_line();
            assert!(error.contains(option) && !error.contains("sesame"), "{error}");
        }
    }
}
