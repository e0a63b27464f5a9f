//! What plugins may have beyond computing, granted by the operator to names of plugins: `[grants.NAME]`.

use super::QueryFileError;
use super::scalar::{DottedScalars, Scalar};
use super::size;
use super::text::{self, SourceText};
use millstream_wasm::{AskedAnew, HttpGrant, Permissions, check_authorities};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;

/// Bytes of one response, where the host file says nothing, and the most.
const RESPONSE: u64 = 8 << 20;
const RESPONSE_MAX: u64 = 1 << 30;
/// The most bytes of a file of certificates.
const CERTIFICATES: u64 = 4 << 20;

/// `[grants.NAME]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPermissions {
    #[serde(default)]
    config: bool,
    #[serde(default)]
    clock: bool,
    #[serde(default)]
    random: bool,
    #[serde(default)]
    http: Vec<Spanned<String>>,
    #[serde(default)]
    http_private: bool,
    http_response: Option<Spanned<Scalar>>,
    http_ca: Option<Spanned<String>>,
}

/// The grants of a host file by the name of the plugin; `config` is granted as an empty set of options.
pub(super) fn grants(
    text: &SourceText,
    raw: &BTreeMap<String, RawPermissions>,
) -> Result<BTreeMap<String, Permissions>, QueryFileError> {
    raw.iter().map(|(plugin, raw)| Ok((plugin.clone(), permissions(text, plugin, raw)?))).collect()
}

fn permissions(text: &SourceText, plugin: &str, raw: &RawPermissions) -> Result<Permissions, QueryFileError> {
    let key = |of: &str| format!("grants.{plugin}.{of}");
    let hosts = raw.http.iter().map(|host| {
        host.get_ref().parse().map_err(|reason: String| text.invalid(host, key("http"), host.get_ref(), reason))
    });
    let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
    let response_bytes = match &raw.http_response {
        None => RESPONSE,
        Some(raw) => {
            let value = &raw.get_ref().0;
            size::within(value, (1, RESPONSE_MAX))
                .map_err(|reason| text.invalid(raw, key("http_response"), value, reason))?
        }
    };
    let http_authorities = match &raw.http_ca {
        None => None,
        Some(file) => {
            let path = text.resolve(file.get_ref());
            let pem = text::read_bytes(Path::new(&path), CERTIFICATES, "a file of certificates")?;
            check_authorities(&pem).map_err(|reason| text.invalid(file, key("http_ca"), file.get_ref(), reason))?;
            Some(Arc::from(pem))
        }
    };
    let http = (!hosts.is_empty()).then_some(HttpGrant { hosts, private: raw.http_private, response_bytes });
    let (config, clock, random) = (raw.config.then(BTreeMap::new), raw.clock, raw.random);
    Ok(Permissions { config, clock, random, http, http_authorities, ..Permissions::default() })
}

/// `[plugins] asked_anew`: what follows when new code asks for more than the code before it, and has it granted.
pub(super) fn asked_anew(text: &SourceText, raw: &Option<Spanned<String>>) -> Result<AskedAnew, QueryFileError> {
    let Some(raw) = raw else { return Ok(AskedAnew::default()) };
    match raw.get_ref().as_str() {
        "needs approval" => Ok(AskedAnew::NeedsApproval),
        "ok" => Ok(AskedAnew::Ok),
        "reject" => Ok(AskedAnew::Reject),
        _ => Err(text.invalid(raw, "plugins.asked_anew", raw.get_ref(), "write needs approval, ok or reject")),
    }
}

/// What one plugin of a query may have, with the options that the query gives it.
pub(super) fn of_plugin(
    text: &SourceText,
    plugin: &str,
    (granted, anew): (&BTreeMap<String, Permissions>, AskedAnew),
    options: &DottedScalars,
) -> Result<Permissions, QueryFileError> {
    let mut permissions = granted.get(plugin).cloned().unwrap_or_default();
    permissions.anew = anew;
    match &mut permissions.config {
        Some(config) => {
            config.extend(options.0.iter().map(|(name, value)| (name.clone(), value.get_ref().0.clone())));
        }
        None => {
            if let Some((name, value)) = options.0.first() {
                let reason = format!("the host file does not grant `config` in [grants.{plugin}]");
                return Err(text.invalid(value, format!("plugin.{plugin}.config.{name}"), &value.get_ref().0, reason));
            }
        }
    }
    Ok(permissions)
}
