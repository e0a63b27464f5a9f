//! Options that mean the same for every server: the password, and how long to wait for what.
//!
//! Read by the addresses of [`database`](crate::database) and [`redis`](crate::redis) and by their sinks. An option that is
//! not set leaves the caller's default.
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
    match (options.get("password"), options.get("passwordEnv")) {
        (Some(_), Some(variable)) => {
            let reason = "`password` is set too; keep one of the two";
            Err(Options::invalid(owner, "passwordEnv", variable, reason))
        }
        (Some(password), None) => Ok(Some(Secret::new(password))),
        (None, Some(variable)) => match environment(variable) {
            Some(password) => Ok(Some(Secret::new(password))),
            None => {
                let reason = "the environment of this process has no such variable";
                Err(Options::invalid(owner, "passwordEnv", variable, reason))
            }
        },
        (None, None) => Ok(None),
    }
}

/// `connectTimeout`: how long a connection may take to open.
pub(crate) fn connect_timeout(owner: &str, options: &Options) -> Result<Option<Duration>, OptionError> {
    let Some(text) = options.get("connectTimeout") else { return Ok(None) };
    let time = duration::parse_micros(text).ok().filter(|micros| *micros > 0);
    let micros = time.ok_or_else(|| {
        Options::invalid(owner, "connectTimeout", text, "write a duration greater than 0, such as `10 seconds`")
    })?;
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
