//! From raw values to a query: each value is checked where it is from, and the last word wins.

use super::environment::Environment;
use super::host_file::HostFile;
use super::packaging::Fetching;
use super::raw::RawQuery;
use super::text::{self, SourceText, shortened};
use super::{
    LoadedQuery, Origin, Overrides, QueryFileError, SQL_BYTES, Value, accounts, connectors, plugins, size, trigger,
};
use crate::{QuerySpec, Settings, StateLimits};
use millstream_checkpoint::PluginStore;
use millstream_common::{Digest, OperatorUid, OutputMode, Trigger};
use millstream_plan::leading_functions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The most streams, tables and plugins of one query.
const PARTS: usize = 64;
/// The longest name of a query.
const NAME: usize = 200;

/// The query of one file.
pub(super) fn query(
    text: &SourceText,
    mut raw: RawQuery,
    host: &HostFile,
    environment: &Environment,
    overrides: Overrides,
) -> Result<LoadedQuery, QueryFileError> {
    let mut values = Vec::new();
    let name = name(text, &raw, &mut values)?;
    let sql = sql(text, &mut raw, &mut values)?;
    let mode = output_mode(text, &raw, &mut values)?;
    let trigger = effective_trigger(text, &raw, environment, &overrides, &mut values)?;

    let mut of_connectors = Vec::new();
    let (sink, in_options) = connectors::sink(text, &raw.sink, &mut of_connectors)?;
    let late_rows = connectors::late_rows(text, &raw.late_rows, &mut of_connectors)?;
    let checkpoint = checkpoint(text, &raw, in_options, environment, &overrides)?;
    values.push(match &checkpoint {
        Some((place, origin)) => Value::new("checkpoint", place, origin.clone()),
        None => Value::new("checkpoint", "a temporary folder", Origin::Default),
    });
    check_counts(text, &raw)?;
    let streams = raw.source.iter().map(|raw| connectors::stream(text, raw, &mut of_connectors));
    let streams = streams.collect::<Result<Vec<_>, _>>()?;
    let tables = raw.table.iter().map(|raw| connectors::table(text, raw, &mut of_connectors));
    let tables = tables.collect::<Result<Vec<_>, _>>()?;
    check_names(text, &raw)?;
    let tenant = accounts::tenant(text, &raw.tenant, &host.tenants, &mut of_connectors)?;
    let packages = host.packages.of(tenant.as_ref().map(|tenant| tenant.name.as_str()));
    let kept = |digest| kept(&checkpoint.as_ref()?.0, &host.object_store, digest);
    let mut fetching = Fetching::new(&text.path, &packages, &overrides, &kept)?;
    let mut plugins = Vec::new();
    for (name, raw) in &raw.plugin {
        plugins.push(plugins::plugin(text, name, raw, (host, &mut fetching), &mut of_connectors)?);
    }
    fetching.save(|name| raw.plugin.contains_key(name))?;
    plugins.iter_mut().for_each(|plugin| plugin.limits.tenant = tenant.clone());
    let uids = uids(text, &raw, &mut of_connectors)?;
    values.append(&mut of_connectors);

    let settings = settings(text, &raw, host, environment, &overrides, &mut values)?;
    for (name, value, origin) in &host.object_store {
        values.push(Value::new(format!("object_store.{name}"), value, origin.clone()));
    }
    if let Some((folder, origin)) = &host.run_dir {
        values.push(Value::new("directories.run", folder.to_string_lossy(), origin.clone()));
    }
    let state = state_limits(host, &mut values);
    let spec = QuerySpec {
        name,
        streams,
        tables,
        plugins,
        query: sql.into(),
        mode,
        trigger,
        sink,
        checkpoint: checkpoint.map(|(place, _)| place),
        checkpoint_options: host.object_store.iter().map(|(name, value, _)| (name.clone(), value.clone())).collect(),
        settings,
        uids,
        state,
        late_rows,
    };
    let file = text.path.file_name().map_or_else(|| text.folder.clone(), |name| text.folder.join(name));
    let run_dir = host.run_dir.as_ref().map(|(folder, _)| folder.clone());
    Ok(LoadedQuery { spec, values, file, run_dir, plugin_host: host.compiling.clone(), packages })
}

/// A component out of the query's checkpoint: with it, a restart needs no registry.
fn kept(place: &str, object_store: &[(String, String, Origin)], digest: Digest) -> Option<Vec<u8>> {
    let options: Vec<_> = object_store.iter().map(|(name, value, _)| (name.clone(), value.clone())).collect();
    let files = millstream_checkpoint::open_files(place, &options).ok()?;
    match PluginStore::new(files).get(&digest) {
        Ok(bytes) => Some(bytes.to_vec()),
        Err(error) => {
            tracing::debug!(
                "component {digest} is not in the checkpoint: {}",
                millstream_common::describe_chain(&error)
            );
            None
        }
    }
}

fn name(text: &SourceText, raw: &RawQuery, values: &mut Vec<Value>) -> Result<Option<String>, QueryFileError> {
    let Some(raw) = &raw.name else { return Ok(None) };
    let name = raw.get_ref();
    if name.trim().is_empty() || name.len() > NAME || name.chars().any(char::is_control) {
        return Err(text.invalid(raw, "name", name, format!("a name has 1 to {NAME} printable characters")));
    }
    values.push(Value::new("name", name, Origin::QueryFile(text.place_of(raw))));
    Ok(Some(name.clone()))
}

/// The query; functions that are created in front of it become plugins.
fn sql(text: &SourceText, raw: &mut RawQuery, values: &mut Vec<Value>) -> Result<String, QueryFileError> {
    let (key, sql, at) = match (&raw.sql, &raw.sql_file) {
        (Some(sql), None) => ("sql", sql.get_ref().clone(), sql),
        (None, Some(file)) => {
            let path = text.resolve(file.get_ref());
            ("sql_file", text::read_text(Path::new(&path), SQL_BYTES, "the SQL")?, file)
        }
        (Some(_), Some(file)) => {
            return Err(QueryFileError::Conflict {
                place: text.place_of(file),
                reason: "`sql` and `sql_file` are both there".into(),
                hint: "keep one of the two".into(),
            });
        }
        (None, None) => {
            return Err(QueryFileError::Missing {
                place: text.place(),
                key: "sql".into(),
                hint: "write `sql = \"SELECT …\"`, or `sql_file = \"query.sql\"`".into(),
            });
        }
    };
    let origin = text.place_of(at);
    let read = leading_functions(sql.trim());
    let (functions, query) = read.map_err(|error| text.invalid(at, key, &sql, error.to_string()))?;
    let is_missing = query.trim_end_matches([';', ' ', '\n', '\r', '\t']).is_empty();
    let mut created = plugins::created(text, (key, at.span()), &functions, &raw.plugin)?;
    raw.plugin.append(&mut created);
    if is_missing {
        let hint = "write one SELECT".into();
        return Err(QueryFileError::Missing { place: origin, key: key.into(), hint });
    }
    let sql = sql.trim().trim_end_matches(';').trim_end().to_owned();
    values.push(Value::new(key, shortened(&sql), Origin::QueryFile(origin)));
    Ok(sql)
}

fn output_mode(text: &SourceText, raw: &RawQuery, values: &mut Vec<Value>) -> Result<OutputMode, QueryFileError> {
    let (mode, origin) = match &raw.output_mode {
        None => (OutputMode::default(), Origin::Default),
        Some(raw) => {
            let mode = raw.get_ref().parse();
            let expected = "write append, update or complete";
            let mode = mode.map_err(|_| text.invalid(raw, "output_mode", raw.get_ref(), expected))?;
            (mode, Origin::QueryFile(text.place_of(raw)))
        }
    };
    values.push(Value::new("output_mode", mode.to_string(), origin));
    Ok(mode)
}

fn effective_trigger(
    text: &SourceText,
    raw: &RawQuery,
    environment: &Environment,
    overrides: &Overrides,
    values: &mut Vec<Value>,
) -> Result<Trigger, QueryFileError> {
    // A value that loses is checked all the same: a mistake should not wait for the day it is needed.
    let mut winner = (Trigger::Default, Origin::Default);
    if let Some(raw) = &raw.trigger {
        let parsed = trigger::parse(raw.get_ref());
        let parsed = parsed.map_err(|reason| text.invalid(raw, "trigger", raw.get_ref(), reason))?;
        winner = (parsed, Origin::QueryFile(text.place_of(raw)));
    }
    if let Some((value, origin)) = &environment.trigger {
        let parsed = trigger::parse(value).map_err(|reason| QueryFileError::Environment {
            name: "MILLSTREAM_TRIGGER".into(),
            reason: format!("cannot be `{}`: {reason}", shortened(value)),
            hint: None,
        })?;
        winner = (parsed, origin.clone());
    }
    if let Some(value) = &overrides.trigger {
        let flag = format!("--trigger {}", shortened(value));
        let parsed = trigger::parse(value)
            .map_err(|reason| QueryFileError::Flag { flag, reason: format!("does not fit: {reason}") })?;
        winner = (parsed, Origin::Flag("--trigger".into()));
    }
    values.push(Value::new("trigger", winner.0.to_string(), winner.1));
    Ok(winner.0)
}

fn checkpoint(
    text: &SourceText,
    raw: &RawQuery,
    in_options: Option<(String, Origin)>,
    environment: &Environment,
    overrides: &Overrides,
) -> Result<Option<(String, Origin)>, QueryFileError> {
    let mut winner = in_options;
    if let Some(raw) = &raw.checkpoint {
        if winner.is_some() {
            return Err(QueryFileError::Conflict {
                place: text.place_of(raw),
                reason: "`checkpoint` and the sink's option `checkpointLocation` are both there".into(),
                hint: "keep one of the two".into(),
            });
        }
        if raw.get_ref().trim().is_empty() {
            return Err(text.invalid(raw, "checkpoint", raw.get_ref(), "name a folder or a URL"));
        }
        winner = Some((text.resolve(raw.get_ref()), Origin::QueryFile(text.place_of(raw))));
    }
    if let Some((value, origin)) = &environment.checkpoint {
        if value.trim().is_empty() {
            return Err(QueryFileError::Environment {
                name: "MILLSTREAM_CHECKPOINT".into(),
                reason: "is empty".into(),
                hint: Some("name a folder or a URL, or unset it".into()),
            });
        }
        winner = Some((value.clone(), origin.clone()));
    }
    if let Some(value) = &overrides.checkpoint {
        if value.trim().is_empty() {
            return Err(QueryFileError::Flag { flag: "--checkpoint".into(), reason: "is empty".into() });
        }
        winner = Some((value.clone(), Origin::Flag("--checkpoint".into())));
    }
    Ok(winner)
}

fn check_counts(text: &SourceText, raw: &RawQuery) -> Result<(), QueryFileError> {
    if raw.source.is_empty() {
        return Err(QueryFileError::Missing {
            place: text.place(),
            key: "source".into(),
            hint: "a query reads at least one stream: write `[[source]]` with `name` and `format`".into(),
        });
    }
    let counts = [("source", raw.source.len()), ("table", raw.table.len()), ("plugin", raw.plugin.len())];
    match counts.into_iter().find(|(_, count)| *count > PARTS) {
        None => Ok(()),
        Some((key, count)) => Err(QueryFileError::Conflict {
            place: text.place(),
            reason: format!("`{key}` is there {count} times, more than {PARTS}"),
            hint: "make several queries of it".into(),
        }),
    }
}

/// Streams and tables share one space of names in SQL.
fn check_names(text: &SourceText, raw: &RawQuery) -> Result<(), QueryFileError> {
    let mut seen = BTreeSet::new();
    let sources = raw.source.iter().filter_map(|raw| raw.get_ref().name.as_ref());
    let tables = raw.table.iter().filter_map(|raw| raw.get_ref().name.as_ref());
    for name in sources.chain(tables) {
        if !seen.insert(name.get_ref().to_lowercase()) {
            return Err(QueryFileError::Conflict {
                place: text.place_of(name),
                reason: format!("the name `{}` is there twice", shortened(name.get_ref())),
                hint: "give each source and table a name of its own".into(),
            });
        }
    }
    Ok(())
}

fn uids(
    text: &SourceText,
    raw: &RawQuery,
    values: &mut Vec<Value>,
) -> Result<BTreeMap<String, String>, QueryFileError> {
    let mut uids = BTreeMap::new();
    for (uid, raw) in &raw.uid {
        let wanted = OperatorUid::new(raw.get_ref());
        let wanted =
            wanted.map_err(|error| text.invalid(raw, format!("uid.{uid}"), raw.get_ref(), error.to_string()))?;
        values.push(Value::new(format!("uid.{uid}"), wanted.as_str(), Origin::QueryFile(text.place_of(raw))));
        uids.insert(uid.clone(), wanted.as_str().to_owned());
    }
    Ok(uids)
}

/// The operator's alone: a query cannot ask for more.
fn state_limits(host: &HostFile, values: &mut Vec<Value>) -> StateLimits {
    let limits = StateLimits {
        memory: host.state_memory.as_ref().map(|(bytes, _)| *bytes),
        spill: host.spill.as_ref().map(|(folder, _)| folder.clone()),
    };
    let origin = host.state_memory.as_ref().map_or(Origin::Default, |(_, origin)| origin.clone());
    let memory = limits.memory.map_or_else(|| "no limit".into(), size::format);
    values.push(Value::new("state.memory", memory, origin));
    if limits.memory.is_some() || host.spill.is_some() {
        let origin = host.spill.as_ref().map_or(Origin::Default, |(_, origin)| origin.clone());
        values.push(Value::new("directories.spill", limits.spill_folder().to_string_lossy(), origin));
    }
    limits
}

fn settings(
    text: &SourceText,
    raw: &RawQuery,
    host: &HostFile,
    environment: &Environment,
    overrides: &Overrides,
    values: &mut Vec<Value>,
) -> Result<Settings, QueryFileError> {
    let mut settings = Settings::default();
    let mut origins: BTreeMap<&str, Origin> = BTreeMap::new();
    for (name, value, origin) in &host.settings {
        // The host file was checked when it was loaded.
        if settings.set(name, value).is_ok() {
            origins.insert(name, origin.clone());
        }
    }
    for (name, value) in &raw.settings.0 {
        let set = settings.set(name, &value.get_ref().0);
        set.map_err(|error| QueryFileError::Syntax { place: text.place_of(value), message: error.to_string() })?;
        origins.insert(name, Origin::QueryFile(text.place_of(value)));
    }
    for (name, value, variable) in &environment.settings {
        settings.set(name, value).map_err(|error| QueryFileError::Environment {
            name: variable.clone(),
            reason: format!("does not fit: {error}"),
            hint: None,
        })?;
        origins.insert(name, Origin::Environment(variable.clone()));
    }
    for (name, value) in &overrides.settings {
        settings.set(name, value).map_err(|error| QueryFileError::Flag {
            flag: format!("--set {name}={}", shortened(value)),
            reason: format!("does not fit: {error}"),
        })?;
        origins.insert(name, Origin::Flag("--set".into()));
    }
    for (name, value) in settings.values() {
        values.push(Value::new(name, value, origins.remove(name).unwrap_or(Origin::Default)));
    }
    Ok(settings)
}
