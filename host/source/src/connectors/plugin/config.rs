//! What a query says about a source of a plugin: which one, and what it is given.

use crate::{SourceError, SourceSpec};
use arrow::datatypes::SchemaRef;
use millstream_common::{OptionError, Options, ReadLimit};
use millstream_wasm::{PluginSlot, SourceSignature};
use std::sync::Arc;

/// How errors of options name it.
const OWNER: &str = "source `plugin`";
/// The option that limits a batch.
const MAX_ROWS: &str = "maxRowsPerTrigger";
/// Options that are the connector's own; no source of a plugin has one of these names.
const OWN: [&str; 3] = ["plugin", "source", MAX_ROWS];

/// The options, read.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// The slot of the plugin.
    pub(super) slot: Arc<PluginSlot>,
    /// The source's name in it.
    pub(super) source: String,
    /// The columns, as a query sees them.
    pub(super) schema: SchemaRef,
    /// How much a batch may take.
    pub(super) limit: ReadLimit,
    /// What the source is given, under its own spelling of the names.
    pub(super) options: Vec<(String, String)>,
}

impl Config {
    pub(super) fn read(spec: &SourceSpec, slots: &[Arc<PluginSlot>]) -> Result<Self, SourceError> {
        let options = &spec.options;
        let slot = slot(options, slots)?;
        let component = slot.component();
        let signature = match (options.get("source"), component.sources()) {
            (_, []) => return Err(invalid("plugin", slot.name(), "that plugin has no source")),
            (None, [only]) => only,
            (Some(name), sources) => sources.iter().find(|source| source.name == name).ok_or_else(|| {
                let reason = format!("plugin `{}` has the sources {}", slot.name(), names(sources));
                invalid("source", name, &reason)
            })?,
            (None, sources) => {
                let owner = format!("{OWNER}, whose plugin has the sources {},", names(sources));
                return Err(OptionError::Missing { owner, option: "source".into() }.into());
            }
        };
        if spec.schema.is_some() {
            let reason = format!("`{}` has columns of its own; leave the schema out", signature.name);
            return Err(SourceError::Schema { name: spec.name.clone(), reason });
        }
        let expected = "write a whole number, at least 1";
        let limit = match options.parse::<u64>(OWNER, MAX_ROWS, expected)? {
            None => ReadLimit::AllAvailable,
            Some(0) => return Err(invalid(MAX_ROWS, "0", expected)),
            Some(rows) => ReadLimit::MaxRows(rows),
        };
        let given = of_source(options, signature)?;
        let (source, schema) = (signature.name.clone(), signature.schema());
        Ok(Self { slot: Arc::clone(slot), source, schema, limit, options: given })
    }
}

fn slot<'s>(options: &Options, slots: &'s [Arc<PluginSlot>]) -> Result<&'s Arc<PluginSlot>, SourceError> {
    let name = options.require(OWNER, "plugin")?;
    slots.iter().find(|slot| slot.name() == name).ok_or_else(|| {
        let known = slots.iter().map(|slot| format!("`{}`", slot.name())).collect::<Vec<_>>().join(", ");
        let reason =
            if known.is_empty() { "the query has no plugins".into() } else { format!("the query has {known}") };
        invalid("plugin", name, &reason)
    })
}

/// The options that are for the source.
fn of_source(options: &Options, signature: &SourceSignature) -> Result<Vec<(String, String)>, SourceError> {
    let owner = format!("source `{}`", signature.name);
    let known: Vec<&str> = OWN.into_iter().chain(signature.options.iter().map(|option| &*option.name)).collect();
    options.only(&owner, &known)?;
    let mut given = Vec::new();
    for option in &signature.options {
        match options.get(&option.name) {
            Some(value) => given.push((option.name.clone(), value.to_owned())),
            None if option.required => {
                return Err(OptionError::Missing { owner, option: option.name.clone() }.into());
            }
            None => {}
        }
    }
    Ok(given)
}

fn names(sources: &[SourceSignature]) -> String {
    sources.iter().map(|source| format!("`{}`", source.name)).collect::<Vec<_>>().join(", ")
}

fn invalid(option: &str, value: &str, reason: &str) -> SourceError {
    Options::invalid(OWNER, option, value, reason).into()
}
