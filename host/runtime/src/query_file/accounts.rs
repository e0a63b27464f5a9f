//! What plugins may spend over time and together: `[plugins]` for each, `[tenants.NAME]` for all of a tenant.

use super::scalar::Scalar;
use super::text::SourceText;
use super::{Origin, QueryFileError, Value, size};
use millstream_common::duration;
use millstream_wasm::{AccountLimits, Beyond, Tenant};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use toml::Spanned;

/// The most CPU time per second that can be written: that of a thousand processors.
const CPU: Duration = Duration::from_secs(1000);
/// The most instances.
const INSTANCES: u64 = 1 << 20;

/// `[tenants.NAME]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTenant {
    cpu_per_second: Option<Spanned<Scalar>>,
    cpu_beyond: Option<Spanned<String>>,
    memory: Option<Spanned<Scalar>>,
    instances: Option<Spanned<Scalar>>,
    /// Whose signatures count, in place of the host's.
    pub(super) keys: Option<Spanned<Vec<Spanned<String>>>>,
}

/// The tenants of a host file, by name.
pub(super) fn tenants(
    text: &SourceText,
    raw: &BTreeMap<String, RawTenant>,
) -> Result<BTreeMap<String, Tenant>, QueryFileError> {
    let tenant = |(name, raw): (&String, &RawTenant)| {
        let key = |of: &str| format!("tenants.{name}.{of}");
        let memory = raw.memory.as_ref().map(|raw| {
            let value = &raw.get_ref().0;
            size::within(value, (1 << 16, 1 << 44)).map_err(|reason| text.invalid(raw, key("memory"), value, reason))
        });
        let limits = AccountLimits {
            cpu_per_second: cpu(text, key("cpu_per_second"), &raw.cpu_per_second)?,
            beyond: beyond(text, key("cpu_beyond"), &raw.cpu_beyond)?,
            memory_bytes: memory.transpose()?,
            instances: instances(text, key("instances"), &raw.instances)?,
        };
        Ok((name.clone(), Tenant { name: name.clone(), limits }))
    };
    raw.iter().map(tenant).collect()
}

/// `cpu_per_second`.
pub(super) fn cpu(
    text: &SourceText,
    key: String,
    raw: &Option<Spanned<Scalar>>,
) -> Result<Option<Duration>, QueryFileError> {
    let Some(raw) = raw else { return Ok(None) };
    let value = &raw.get_ref().0;
    let parsed =
        duration::parse_micros(value).map_err(|error| text.invalid(raw, key.clone(), value, error.to_string()))?;
    let time = u64::try_from(parsed).map(Duration::from_micros).unwrap_or_default();
    if time >= Duration::from_millis(1) && time <= CPU {
        return Ok(Some(time));
    }
    Err(text.invalid(raw, key, value, "a duration from 1 ms to 1000 seconds is expected"))
}

/// `cpu_beyond`.
pub(super) fn beyond(text: &SourceText, key: String, raw: &Option<Spanned<String>>) -> Result<Beyond, QueryFileError> {
    let Some(raw) = raw else { return Ok(Beyond::default()) };
    match raw.get_ref().to_ascii_lowercase().as_str() {
        "throttle" => Ok(Beyond::Throttle),
        "reject" => Ok(Beyond::Reject),
        "terminate" => Ok(Beyond::Terminate),
        _ => Err(text.invalid(raw, key, raw.get_ref(), "write throttle, reject or terminate")),
    }
}

/// `instances`.
pub(super) fn instances(
    text: &SourceText,
    key: String,
    raw: &Option<Spanned<Scalar>>,
) -> Result<Option<u64>, QueryFileError> {
    let Some(raw) = raw else { return Ok(None) };
    let value = &raw.get_ref().0;
    let number = value.parse::<u64>().ok().filter(|number| (1..=INSTANCES).contains(number));
    number.map(Some).ok_or_else(|| text.invalid(raw, key, value, format!("a number from 1 to {INSTANCES} is expected")))
}

/// The tenant that a query names.
pub(super) fn tenant(
    text: &SourceText,
    raw: &Option<Spanned<String>>,
    tenants: &BTreeMap<String, Tenant>,
    values: &mut Vec<Value>,
) -> Result<Option<Tenant>, QueryFileError> {
    let Some(raw) = raw else { return Ok(None) };
    let tenant = tenants.get(raw.get_ref()).ok_or_else(|| {
        text.invalid(raw, "tenant", raw.get_ref(), "the host file has no [tenants] entry of that name")
    })?;
    values.push(Value::new("tenant", raw.get_ref(), Origin::QueryFile(text.place_of(raw))));
    Ok(Some(tenant.clone()))
}
