//! What a query says about a sink of a plugin: which one, and what it is given.

use crate::{SinkError, SinkSpec};
use millstream_common::{OptionError, Options};
use millstream_wasm::{PluginSlot, SinkSignature};
use std::sync::Arc;

/// How errors of options name it.
const OWNER: &str = "sink `plugin`";
/// The most partitions.
const PARTITIONS: u32 = 64;
/// Options that are the connector's own; no sink of a plugin has one of these names.
const OWN: [&str; 3] = ["plugin", "sink", "partitions"];

/// The options, read.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// The slot of the plugin.
    pub(super) slot: Arc<PluginSlot>,
    /// The sink's name in it.
    pub(super) sink: String,
    /// Partitions per batch.
    pub(super) partitions: u32,
    /// What the sink is given.
    pub(super) options: Vec<(String, String)>,
}

impl Config {
    pub(super) fn read(spec: &SinkSpec, slots: &[Arc<PluginSlot>]) -> Result<Self, SinkError> {
        let options = &spec.options;
        let slot = slot(options, slots)?;
        let component = slot.component();
        let signature = match (options.get("sink"), component.sinks()) {
            (_, []) => return Err(invalid("plugin", slot.name(), "that plugin has no sink")),
            (None, [only]) => only,
            (Some(name), sinks) => sinks.iter().find(|sink| sink.name == name).ok_or_else(|| {
                invalid("sink", name, &format!("plugin `{}` has the sinks {}", slot.name(), names(sinks)))
            })?,
            (None, sinks) => {
                let owner = format!("{OWNER}, whose plugin has the sinks {},", names(sinks));
                return Err(OptionError::Missing { owner, option: "sink".into() }.into());
            }
        };
        let partitions = match options.get("partitions") {
            None => 1,
            Some(text) => text
                .trim()
                .parse()
                .ok()
                .filter(|count| (1..=PARTITIONS).contains(count))
                .ok_or_else(|| invalid("partitions", text, "a number from 1 to 64 is expected"))?,
        };
        let given = of_sink(options, signature)?;
        Ok(Self { slot: Arc::clone(slot), sink: signature.name.clone(), partitions, options: given })
    }
}

fn slot<'s>(options: &Options, slots: &'s [Arc<PluginSlot>]) -> Result<&'s Arc<PluginSlot>, SinkError> {
    let name = options.require(OWNER, "plugin")?;
    slots.iter().find(|slot| slot.name() == name).ok_or_else(|| {
        let known = slots.iter().map(|slot| format!("`{}`", slot.name())).collect::<Vec<_>>().join(", ");
        let reason =
            if known.is_empty() { "the query has no plugins".into() } else { format!("the query has {known}") };
        invalid("plugin", name, &reason)
    })
}

/// The options that are for the sink, under its own spelling of their names.
fn of_sink(options: &Options, signature: &SinkSignature) -> Result<Vec<(String, String)>, SinkError> {
    let owner = format!("sink `{}`", signature.name);
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

fn names(sinks: &[SinkSignature]) -> String {
    sinks.iter().map(|sink| format!("`{}`", sink.name)).collect::<Vec<_>>().join(", ")
}

fn invalid(option: &str, value: &str, reason: &str) -> SinkError {
    Options::invalid(OWNER, option, value, reason).into()
}
