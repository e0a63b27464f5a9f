//! Options that mean the same for every server: the password, and how long to wait for what.
//!
//! Read by the addresses of [`database`](crate::database), [`redis`](crate::redis), [`nats`](crate::nats) and [`mqtt`](crate::mqtt)
//! and by their sinks. An option that is not set leaves the caller's default.
//!
//! It opens nothing.

use crate::database::Secret;
use millstream_common::{OptionError, Options, duration};
use std::time::Duration;

/// How long it is tried again where nobody says it.
const RETRY: Duration = Duration::from_secs(60);

/// The password of `password`, or of the variable that `passwordEnv` names.
pub(crate) fn password(
    owner: &str,
    options: &Options,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Secret>, OptionError> {
    secret(owner, options, environment, ("password", "passwordEnv"))
}

/// The secret of the first option, or of the variable that the second one names.
pub(crate) fn secret(
    owner: &str,
    options: &Options,
    environment: &dyn Fn(&str) -> Option<String>,
    (plain, named): (&str, &str),
) -> Result<Option<Secret>, OptionError> {
    match (options.get(plain), options.get(named)) {
        (Some(_), Some(variable)) => {
            let reason = format!("`{plain}` is set too; keep one of the two");
            Err(Options::invalid(owner, named, variable, &reason))
        }
        (Some(secret), None) => Ok(Some(Secret::new(secret))),
        (None, Some(variable)) => match environment(variable) {
            Some(secret) => Ok(Some(Secret::new(secret))),
            None => {
                let reason = "the environment of this process has no such variable";
                Err(Options::invalid(owner, named, variable, reason))
            }
        },
        (None, None) => Ok(None),
    }
}

/// `sslcert` and `sslkey`: the files with the certificate that shows who asks, and with its key.
pub(crate) fn own_certificate(owner: &str, options: &Options) -> Result<Option<(String, String)>, OptionError> {
    match (options.get("sslcert"), options.get("sslkey")) {
        (Some(certificate), Some(key)) => Ok(Some((certificate.to_owned(), key.to_owned()))),
        (None, None) => Ok(None),
        (Some(file), None) => Err(Options::invalid(owner, "sslcert", file, "name the file of its key with `sslkey`")),
        (None, Some(file)) => {
            Err(Options::invalid(owner, "sslkey", file, "name the file of its certificate with `sslcert`"))
        }
    }
}

/// `connectTimeout`: how long a connection may take to open.
pub(crate) fn connect_timeout(owner: &str, options: &Options) -> Result<Option<Duration>, OptionError> {
    time(owner, options, "connectTimeout")
}

/// An option that is a duration greater than 0.
///
/// # Errors
/// When it is none.
pub fn time(owner: &str, options: &Options, name: &str) -> Result<Option<Duration>, OptionError> {
    let Some(text) = options.get(name) else { return Ok(None) };
    let time = duration::parse_micros(text).ok().filter(|micros| *micros > 0);
    let micros = time
        .ok_or_else(|| Options::invalid(owner, name, text, "write a duration greater than 0, such as `10 seconds`"))?;
    Ok(Some(Duration::from_micros(micros.unsigned_abs())))
}

/// `queryTimeout`: how long an answer may take; none for ever.
pub(crate) fn query_timeout(
    owner: &str,
    options: &Options,
    default: Option<Duration>,
) -> Result<Option<Duration>, OptionError> {
    let seconds = options.parse(owner, "queryTimeout", "write a number of seconds, or 0 for no limit")?;
    Ok(seconds.map_or(default, |seconds| Some(Duration::from_secs(seconds)).filter(|time| !time.is_zero())))
}

/// `retryTimeout`: how long a batch waits for a server that is away; a minute where it is not set.
///
/// # Errors
/// When it is no duration.
pub fn retry_timeout(owner: &str, options: &Options) -> Result<Duration, OptionError> {
    let Some(text) = options.get("retryTimeout") else { return Ok(RETRY) };
    let micros = duration::parse_micros(text).ok().and_then(|micros| u64::try_from(micros).ok());
    let micros =
        micros.ok_or_else(|| Options::invalid(owner, "retryTimeout", text, "write a duration, such as `1 minute`"))?;
    Ok(Duration::from_micros(micros))
}
