//! How components are compiled, and where compiled ones are kept: keys of `[plugins]` in the host file.

use super::host_file::RawGrants;
use super::scalar::Scalar;
use super::text::SourceText;
use super::{QueryFileError, size};
use millstream_common::duration;
use millstream_wasm::{CacheOptions, PluginHostOptions};
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

/// The longest time for compiling one component.
const COMPILE_TIME: Duration = Duration::from_secs(24 * 3600);

/// What the host file says about compiling. Without a word, compiled components are kept in the user's cache.
pub(super) fn options(text: &SourceText, raw: &RawGrants) -> Result<PluginHostOptions, QueryFileError> {
    let mut options = default_options();
    let bytes = |key: &str, raw: &Spanned<Scalar>, most: u64| {
        let value = &raw.get_ref().0;
        size::within(value, (1 << 16, most))
            .map_err(|reason| text.invalid(raw, format!("plugins.{key}"), value, reason))
    };
    if let Some(raw) = &raw.component_max {
        options.compile.component_bytes = bytes("component_max", raw, 1 << 30)?;
    }
    if let Some(raw) = &raw.compile_memory {
        options.compile.memory_bytes = bytes("compile_memory", raw, 1 << 44)?;
    }
    if let Some(raw) = &raw.compile_time {
        let value = &raw.get_ref().0;
        let invalid = |reason: String| text.invalid(raw, "plugins.compile_time", value, reason);
        let micros = duration::parse_micros(value).map_err(|error| invalid(error.to_string()))?;
        let time = u64::try_from(micros).map(Duration::from_micros).unwrap_or_default();
        if time < Duration::from_millis(1) || time > COMPILE_TIME {
            return Err(invalid("a duration from 1 ms to 1 day is expected".into()));
        }
        options.compile.time = time;
    }
    if let Some(raw) = &raw.cache {
        options.cache = match raw.get_ref().as_str() {
            "off" => None,
            folder => {
                let limit_bytes = options.cache.map_or(CacheOptions::LIMIT_BYTES, |cache| cache.limit_bytes);
                Some(CacheOptions { folder: PathBuf::from(text.resolve(folder)), limit_bytes })
            }
        };
    }
    if let (Some(raw), Some(cache)) = (&raw.cache_size, &mut options.cache) {
        cache.limit_bytes = bytes("cache_size", raw, 1 << 44)?;
    }
    Ok(options)
}

/// Without a host file.
pub(super) fn default_options() -> PluginHostOptions {
    PluginHostOptions { cache: CacheOptions::of_user(), ..PluginHostOptions::default() }
}
