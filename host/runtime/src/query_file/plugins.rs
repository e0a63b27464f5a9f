//! Plugins: what the query asks for, under what the operator grants.

use super::host_file::{HostFile, RawGrants};
use super::packaging::Fetching;
use super::raw::RawPlugin;
use super::scalar::Scalar;
use super::text::SourceText;
use super::{Origin, QueryFileError, Value, accounts, permissions, size};
use crate::PluginSpec;
use millstream_common::duration;
use millstream_package::PackageReference;
use millstream_plan::CreateFunction;
use millstream_wasm::{AccountLimits, FaultPolicy, PluginLimits};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use toml::Spanned;

/// The most memory that a 32-bit guest can have.
const MEMORY_BYTES: u64 = 4 << 30;
/// The longest deadline.
const DEADLINE: Duration = Duration::from_secs(3600);
/// The largest result.
const RESULT_BYTES: u64 = 2 << 30;
/// The most log of one call.
const LOG_BYTES: u64 = 1 << 30;

/// One limit: what a plugin gets, and the most that it can ask for.
#[derive(Debug)]
pub(super) struct Grant<T> {
    default: (T, Origin),
    maximum: T,
}

/// What the operator grants to plugins.
#[derive(Debug)]
pub(super) struct PluginGrants {
    memory: Grant<u64>,
    deadline: Grant<Duration>,
    result: Grant<u64>,
    log_bytes_per_call: u64,
    /// CPU time of one call.
    cpu_per_call: Option<Duration>,
    account: AccountLimits,
}

impl Default for PluginGrants {
    fn default() -> Self {
        let limits = PluginLimits::default();
        Self {
            memory: Grant { default: (limits.memory_bytes, Origin::Default), maximum: MEMORY_BYTES },
            deadline: Grant { default: (limits.deadline, Origin::Default), maximum: DEADLINE },
            result: Grant { default: (limits.result_bytes, Origin::Default), maximum: RESULT_BYTES },
            log_bytes_per_call: limits.log_bytes_per_call,
            cpu_per_call: None,
            account: AccountLimits::default(),
        }
    }
}

/// The grants of a host file.
pub(super) fn grants(text: &SourceText, raw: &RawGrants) -> Result<PluginGrants, QueryFileError> {
    let grants = PluginGrants::default();
    let log_bytes_per_call = match &raw.log {
        None => grants.log_bytes_per_call,
        Some(raw) => {
            let value = &raw.get_ref().0;
            size::within(value, (0, LOG_BYTES)).map_err(|reason| text.invalid(raw, "plugins.log", value, reason))?
        }
    };
    let account = AccountLimits {
        cpu_per_second: accounts::cpu(text, "plugins.cpu_per_second".into(), &raw.cpu_per_second)?,
        beyond: accounts::beyond(text, "plugins.cpu_beyond".into(), &raw.cpu_beyond)?,
        memory_bytes: None,
        instances: accounts::instances(text, "plugins.instances".into(), &raw.instances)?,
    };
    Ok(PluginGrants {
        memory: grant(text, grants.memory, ("memory", &raw.memory), &raw.memory_max, memory)?,
        deadline: grant(text, grants.deadline, ("deadline", &raw.deadline), &raw.deadline_max, deadline)?,
        result: grant(text, grants.result, ("result", &raw.result), &raw.result_max, result)?,
        log_bytes_per_call,
        cpu_per_call: accounts::cpu(text, "plugins.cpu_per_call".into(), &raw.cpu_per_call)?,
        account,
    })
}

fn grant<T: Copy + Ord>(
    text: &SourceText,
    before: Grant<T>,
    (key, default): (&str, &Option<Spanned<Scalar>>),
    maximum: &Option<Spanned<Scalar>>,
    parse: fn(&str) -> Result<T, String>,
) -> Result<Grant<T>, QueryFileError> {
    let value = |key: String, raw: &Spanned<Scalar>| {
        parse(&raw.get_ref().0).map_err(|reason| text.invalid(raw, key, &raw.get_ref().0, reason))
    };
    let (maximum, of_maximum) = match maximum {
        Some(raw) => (value(format!("plugins.{key}_max"), raw)?, Origin::HostFile(text.place_of(raw))),
        None => (before.maximum, Origin::Default),
    };
    let default = match default {
        Some(raw) => {
            let asked = value(format!("plugins.{key}"), raw)?;
            if asked > maximum {
                let reason = format!("it is above `{key}_max`");
                return Err(text.invalid(raw, format!("plugins.{key}"), &raw.get_ref().0, reason));
            }
            (asked, Origin::HostFile(text.place_of(raw)))
        }
        // A maximum below the built-in default is also the default.
        None if before.default.0 > maximum => (maximum, of_maximum),
        None => before.default,
    };
    Ok(Grant { default, maximum })
}

fn memory(text: &str) -> Result<u64, String> {
    size::within(text, (1 << 16, MEMORY_BYTES))
}

fn result(text: &str) -> Result<u64, String> {
    size::within(text, (1, RESULT_BYTES))
}

fn deadline(text: &str) -> Result<Duration, String> {
    let micros = duration::parse_micros(text).map_err(|error| error.to_string())?;
    let deadline = u64::try_from(micros).map(Duration::from_micros).unwrap_or_default();
    if deadline >= Duration::from_millis(1) && deadline <= DEADLINE {
        return Ok(deadline);
    }
    Err("a duration from 1 ms to 1 hour is expected".into())
}

/// Loads one plugin of a query.
pub(super) fn plugin(
    text: &SourceText,
    name: &str,
    raw: &Spanned<RawPlugin>,
    (host, fetching): (&HostFile, &mut Fetching<'_>),
    values: &mut Vec<Value>,
) -> Result<PluginSpec, QueryFileError> {
    let grants = &host.grants;
    let place = text.place_of(raw);
    let key = |of: &str| format!("plugin.{name}.{of}");
    let plugin = raw.get_ref();
    let component = plugin.component.as_ref().ok_or_else(|| QueryFileError::Missing {
        place: place.clone(),
        key: key("component"),
        hint: format!("write `component = \"{name}.wasm\"`: a file that `millstream plugin build` made"),
    })?;
    let (bytes, shown) = fetching.component(text, name, component)?;
    values.push(Value::new(key("component"), &*shown, Origin::QueryFile(text.place_of(component))));

    let on_fault = match &plugin.on_fault {
        None => (FaultPolicy::default(), Origin::Default),
        Some(raw) => (on_fault(text, key("on_fault"), raw)?, Origin::QueryFile(text.place_of(raw))),
    };
    values.push(Value::new(key("on_fault"), policy_name(on_fault.0), on_fault.1));
    let asking = Asking { text, plugin: name };
    let memory = asking.limit("memory", &plugin.memory, &grants.memory, memory, |bytes| size::format(*bytes))?;
    let deadline =
        asking.limit("deadline", &plugin.deadline, &grants.deadline, deadline, |time| format!("{time:?}"))?;
    let result = asking.limit("result", &plugin.result, &grants.result, result, |bytes| size::format(*bytes))?;
    values.push(Value::new(key("memory"), size::format(memory.0), memory.1));
    values.push(Value::new(key("deadline"), format!("{:?}", deadline.0), deadline.1));
    values.push(Value::new(key("result"), size::format(result.0), result.1));
    let limits = PluginLimits {
        memory_bytes: memory.0,
        deadline: deadline.0,
        result_bytes: result.0,
        log_bytes_per_call: grants.log_bytes_per_call,
        cpu_per_call: grants.cpu_per_call,
        permissions: Arc::new(permissions::of_plugin(
            text,
            name,
            (&host.permissions, host.asked_anew),
            &plugin.config,
        )?),
        account: grants.account.clone(),
        ..PluginLimits::default()
    };
    Ok(PluginSpec { name: name.to_owned(), component: bytes, limits, on_fault: on_fault.0 })
}

/// The plugins that statements `CREATE FUNCTION … USING COMPONENT` in front of the query ask for: one for each component, by
/// the name of its file. `sql` is where they stand.
pub(super) fn created(
    text: &SourceText,
    sql: (&str, Range<usize>),
    functions: &[CreateFunction],
    declared: &BTreeMap<String, Spanned<RawPlugin>>,
) -> Result<BTreeMap<String, Spanned<RawPlugin>>, QueryFileError> {
    let (key, span) = sql;
    let mut plugins: BTreeMap<String, Spanned<RawPlugin>> = BTreeMap::new();
    for function in functions {
        let component = || Spanned::new(span.clone(), function.component.clone());
        let reference = function.component.parse::<PackageReference>().ok();
        let stem = match &reference {
            Some(reference) => reference.name(),
            None => Path::new(&function.component).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(),
        };
        let is_same = |plugin: &Spanned<RawPlugin>| {
            let component = plugin.get_ref().component.as_ref();
            let file = |path: &str| PathBuf::from(text.resolve(path));
            component.is_some_and(|known| file(known.get_ref()) == file(&function.component))
        };
        match declared.get(stem).or_else(|| plugins.get(stem)) {
            Some(plugin) if is_same(plugin) => continue,
            Some(_) => {
                let reason = format!("its CREATE FUNCTION would make a second plugin `{stem}`, of another file");
                return Err(text.invalid(&component(), key, &function.component, reason));
            }
            None => {}
        }
        if stem.is_empty() {
            return Err(text.invalid(&component(), key, &function.component, "a component is a file"));
        }
        let plugin = RawPlugin { component: Some(component()), ..RawPlugin::default() };
        plugins.insert(stem.to_owned(), Spanned::new(span.clone(), plugin));
    }
    Ok(plugins)
}

struct Asking<'a> {
    text: &'a SourceText,
    plugin: &'a str,
}

impl Asking<'_> {
    /// What the plugin gets of one limit.
    fn limit<T: Copy + Ord, S: Display>(
        &self,
        key: &'static str,
        asked: &Option<Spanned<Scalar>>,
        grant: &Grant<T>,
        parse: fn(&str) -> Result<T, String>,
        show: impl Fn(&T) -> S,
    ) -> Result<(T, Origin), QueryFileError> {
        let Some(raw) = asked else { return Ok(grant.default.clone()) };
        let value = &raw.get_ref().0;
        let asked = parse(value)
            .map_err(|reason| self.text.invalid(raw, format!("plugin.{}.{key}", self.plugin), value, reason))?;
        if asked > grant.maximum {
            return Err(QueryFileError::NotGranted {
                place: self.text.place_of(raw),
                plugin: self.plugin.to_owned(),
                key,
                asked: value.clone(),
                maximum: show(&grant.maximum).to_string(),
            });
        }
        Ok((asked, Origin::QueryFile(self.text.place_of(raw))))
    }
}

fn on_fault(text: &SourceText, key: String, raw: &Spanned<String>) -> Result<FaultPolicy, QueryFileError> {
    match raw.get_ref().to_ascii_lowercase().as_str() {
        "fail" => Ok(FaultPolicy::Fail),
        "skip" => Ok(FaultPolicy::Skip),
        "dead-letter" => Ok(FaultPolicy::DeadLetter),
        _ => Err(text.invalid(raw, key, raw.get_ref(), "write fail, skip or dead-letter")),
    }
}

fn policy_name(policy: FaultPolicy) -> &'static str {
    match policy {
        FaultPolicy::Fail => "fail",
        FaultPolicy::Skip => "skip",
        FaultPolicy::DeadLetter => "dead-letter",
    }
}
