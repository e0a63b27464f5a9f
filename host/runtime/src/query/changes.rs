//! What differs between a query and the one that made its checkpoint, and why it may not.
//!
//! After planning, before anything is opened: [`Recovered`](super::recovery::Recovered) compares the newest entry of the
//! offset log with the plan and collects all differences that state or offsets could not survive.
//!
//! ```text
//!   may change   filters, projections, sinks that do not need every batch, triggers, limits, the delay of a watermark,
//!                plugins, the output mode between append and update, and from complete
//!   may not      the set of sources, a source's connector or place, the set of stateful operators, their keys and
//!                values, the output mode to complete where windows have been dropped
//! ```
//!
//! Rule of its life: state that no operator would read is never dropped in silence, and bytes are never read as
//! something else.

use millstream_checkpoint::{ConnectorPin, StatePin};
use millstream_common::OutputMode;
use millstream_operators::{PluginColumns, StateFamily, StatePart};
use std::collections::BTreeMap;
use std::fmt;

/// One thing that is not as it was and cannot change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryChange {
    /// A source is no longer read.
    SourceGone {
        /// Its name.
        source: String,
    },
    /// A source is read that was not there.
    SourceNew {
        /// Its name.
        source: String,
    },
    /// A source has another connector.
    SourceFormat {
        /// Its name.
        source: String,
        /// The connector that wrote the offsets.
        was: String,
        /// The connector of the query.
        is: String,
    },
    /// A source reads another place.
    SourcePlace {
        /// Its name.
        source: String,
        /// The place that the offsets are of.
        was: String,
        /// The place of the query.
        is: String,
    },
    /// An operator that has state is no longer in the query.
    OperatorGone {
        /// Its uid.
        uid: String,
        /// The operator of the query that has the same form of state and none stored, if there is exactly one.
        renamed_to: Option<String>,
    },
    /// A stateful operator is in the query that was not there.
    OperatorNew {
        /// Its uid.
        uid: String,
    },
    /// The keys or values of an operator are others.
    State {
        /// Its uid.
        uid: String,
        /// Column by column; empty when the stored form is not known or differs otherwise.
        columns: Vec<ColumnChange>,
        /// The stored form in words.
        was: String,
        /// The form of the query in words.
        is: String,
    },
    /// The code of a plugin gives the columns of its state another meaning than the code that wrote them.
    StateMeaning {
        /// The operator's uid.
        uid: String,
        /// The plugin.
        plugin: String,
        /// The state's name in the plugin: the aggregate function, or `processor.variable`.
        state: String,
        /// The stored state id.
        was: String,
        /// The state id of the query's component.
        is: String,
    },
    /// Rows of state that the output mode needs have been dropped.
    OutputMode {
        /// The operator.
        uid: String,
        /// The mode of the last batch.
        was: OutputMode,
        /// The mode of the query.
        is: OutputMode,
    },
}

/// One column of an operator's state that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnChange {
    /// The family, when the operator has several.
    pub family: Option<String>,
    /// Whether it is a column of the key or of the value.
    pub side: &'static str,
    /// Its name.
    pub column: String,
    /// Its type as stored; `None` for a new one.
    pub was: Option<String>,
    /// Its type in the query; `None` for one that is gone. Both are equal when only its place differs.
    pub is: Option<String>,
}

impl fmt::Display for QueryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceGone { source } => write!(f, "source `{source}` is gone"),
            Self::SourceNew { source } => write!(f, "source `{source}` is new"),
            Self::SourceFormat { source, was, is } => {
                write!(f, "source `{source}` has the connector `{is}`, its offsets are of `{was}`")
            }
            Self::SourcePlace { source, was, is } => {
                write!(f, "source `{source}` reads `{is}`, its offsets are of `{was}`")
            }
            Self::OperatorGone { uid, .. } => {
                write!(f, "the operator `{uid}` is gone and its state would be lost")
            }
            Self::OperatorNew { uid } => write!(f, "the operator `{uid}` is new and would miss what was read before"),
            Self::State { uid, columns, was, is } if columns.is_empty() => {
                write!(f, "the state of `{uid}` is ({was}) in the checkpoint and ({is}) in the query")
            }
            Self::State { uid, columns, .. } => {
                write!(f, "the state of `{uid}` has changed: ")?;
                for (index, column) in columns.iter().enumerate() {
                    let gap = if index == 0 { "" } else { ", " };
                    write!(f, "{gap}{column}")?;
                }
                Ok(())
            }
            Self::StateMeaning { uid, plugin, state, was, is } => write!(
                f,
                "the state of `{state}` of plugin `{plugin}` in `{uid}` means `{was}` in the checkpoint and `{is}` in the component"
            ),
            Self::OutputMode { uid, was, is } => write!(
                f,
                "output mode {is} needs all groups of `{uid}`, and in mode {was} those that the watermark passed were dropped"
            ),
        }
    }
}

impl fmt::Display for ColumnChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, side, column, was, is } = self;
        write!(f, "{side} column `{column}`")?;
        if let Some(family) = family {
            write!(f, " of `{family}`")?;
        }
        match (was, is) {
            (Some(was), Some(is)) if was == is => write!(f, " has moved"),
            (Some(was), Some(is)) => write!(f, " was {was} and is {is}"),
            (None, Some(is)) => write!(f, " {is} is new"),
            (Some(was), None) => write!(f, " {was} is gone"),
            (None, None) => Ok(()),
        }
    }
}

/// All changes in one line.
pub(crate) fn describe(changes: &[QueryChange]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// What to do about the changes.
pub(crate) fn advice(changes: &[QueryChange]) -> String {
    let renames: Vec<String> = changes
        .iter()
        .filter_map(|change| match change {
            QueryChange::OperatorGone { uid, renamed_to: Some(new) } => Some(format!("`{new} = \"{uid}\"`")),
            _ => None,
        })
        .collect();
    if !renames.is_empty() {
        return format!(
            "if it is the same operator under another name, write {} below [uid] in the query file; otherwise take the \
             change back, or start a new checkpoint",
            renames.join(" and ")
        );
    }
    let Some((first, rest)) = changes.split_first() else { return String::new() };
    let is_operators =
        |change: &QueryChange| matches!(change, QueryChange::OperatorGone { .. } | QueryChange::OperatorNew { .. });
    let is_alike = |change: &QueryChange| {
        std::mem::discriminant(change) == std::mem::discriminant(first) || is_operators(change) && is_operators(first)
    };
    match first {
        _ if !rest.iter().all(is_alike) => "take the changes back, or start a new checkpoint".into(),
        QueryChange::SourcePlace { .. } => {
            "name the old place again, or start a new checkpoint; with the option `fileNameOnly` a folder of files can move"
                .into()
        }
        QueryChange::OperatorGone { .. } | QueryChange::OperatorNew { .. } => {
            "give the operator back (its uid comes from the name of its WITH clause; [uid] in the query file renames it), \
             or start a new checkpoint"
                .into()
        }
        QueryChange::StateMeaning { .. } => {
            "run a component with the old state id of that function, or start a new checkpoint".into()
        }
        QueryChange::State { .. } => "give back the old keys and functions, or start a new checkpoint".into(),
        _ => "take the change back, or start a new checkpoint".into(),
    }
}

/// Compares the sources; `stored` says nothing about connectors in an old entry.
pub(super) fn sources<'a>(
    logged: impl Iterator<Item = &'a String> + Clone,
    stored: &BTreeMap<String, ConnectorPin>,
    planned: &BTreeMap<String, ConnectorPin>,
) -> Vec<QueryChange> {
    let mut changes = Vec::new();
    for source in logged.clone().filter(|source| !planned.contains_key(*source)) {
        changes.push(QueryChange::SourceGone { source: source.clone() });
    }
    for (source, pin) in planned {
        if !logged.clone().any(|logged| logged == source) {
            changes.push(QueryChange::SourceNew { source: source.clone() });
            continue;
        }
        let Some(stored) = stored.get(source) else { continue };
        if !stored.format.eq_ignore_ascii_case(&pin.format) {
            let (was, is) = (stored.format.clone(), pin.format.clone());
            changes.push(QueryChange::SourceFormat { source: source.clone(), was, is });
        } else if let (Some(was), Some(is)) = (&stored.place, &pin.place)
            && was != is
        {
            changes.push(QueryChange::SourcePlace { source: source.clone(), was: was.clone(), is: is.clone() });
        }
    }
    changes
}

/// Compares the stateful operators.
pub(crate) fn operators(stored: &BTreeMap<String, StatePin>, planned: &BTreeMap<String, StatePin>) -> Vec<QueryChange> {
    let new: Vec<&String> = planned.keys().filter(|uid| !stored.contains_key(*uid)).collect();
    let mut changes = Vec::new();
    for (uid, pin) in stored {
        let Some(plan) = planned.get(uid) else {
            let mut alike = new.iter().filter(|new| planned[**new].schema_id == pin.schema_id);
            let renamed_to = alike.next().filter(|_| alike.next().is_none()).map(|new| (*new).clone());
            changes.push(QueryChange::OperatorGone { uid: uid.clone(), renamed_to });
            continue;
        };
        // What cannot be compared column by column is still compared by its schema id.
        let (columns, meanings, has_changed) = match (families_of(pin), families_of(plan)) {
            (Ok(stored), Ok(planned)) if pin.schema_id == plan.schema_id => {
                let (stored, planned) = shared(uid, stored, planned);
                let has_changed = stored.iter().zip(&planned).any(|(was, is)| was.schema_id != is.schema_id);
                let meanings = if has_changed { meanings(uid, &stored, &planned) } else { Vec::new() };
                (columns(&stored, &planned), meanings, has_changed)
            }
            (Ok(stored), Ok(planned)) => (columns(&stored, &planned), meanings(uid, &stored, &planned), true),
            _ => (Vec::new(), Vec::new(), pin.schema_id != plan.schema_id),
        };
        if has_changed {
            let only_meanings = columns.is_empty() && !meanings.is_empty();
            changes.extend(meanings);
            if only_meanings {
                continue;
            }
            let (was, is) = (pin.schema_text.clone(), plan.schema_text.clone());
            changes.push(QueryChange::State { uid: uid.clone(), columns, was, is });
        } else if !columns.is_empty() {
            // Names are not part of the form: the bytes are read as they are.
            let renamed = columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            tracing::warn!("the state of `{uid}` goes on under other names: {renamed}");
        }
    }
    changes.extend(new.into_iter().map(|uid| QueryChange::OperatorNew { uid: uid.clone() }));
    changes
}

/// The families that both sides have, side by side. The others may come and go where the operator as a whole keeps the
/// same, as the variables of a processor do.
fn shared(uid: &str, stored: Vec<StateFamily>, planned: Vec<StateFamily>) -> (Vec<StateFamily>, Vec<StateFamily>) {
    let (mut was, mut is) = (Vec::new(), Vec::new());
    for family in stored {
        match planned.iter().find(|planned| planned.name == family.name) {
            Some(planned) => {
                is.push(planned.clone());
                was.push(family);
            }
            None => tracing::warn!("`{}` of `{uid}` is gone, and its state goes with the next batch", family.name),
        }
    }
    (was, is)
}

/// The families that an entry tells of; none for one of an older release.
pub(crate) fn families_of(pin: &StatePin) -> Result<Vec<StateFamily>, String> {
    if pin.families.is_null() {
        return Ok(Vec::new());
    }
    serde_json::from_value(pin.families.clone()).map_err(|error| format!("its families cannot be read: {error}"))
}

/// Compares families column by column. Empty when one side does not tell of any.
fn columns(stored: &[StateFamily], planned: &[StateFamily]) -> Vec<ColumnChange> {
    if stored.is_empty() || planned.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<&String> = stored.iter().chain(planned).map(|family| &family.name).collect();
    names.sort();
    names.dedup();
    let many = names.len() > 1;
    let side = |families: &[StateFamily], name: &str, parts: Parts| {
        let family = families.iter().find(|family| family.name == name);
        family.map(|family| parts(family).iter().flat_map(StatePart::columns).collect::<Vec<_>>()).unwrap_or_default()
    };
    let mut changes = Vec::new();
    for name in names {
        let sides: [(&'static str, Parts); 2] = [("key", |family| &family.key), ("value", |family| &family.value)];
        for (which, parts) in sides {
            for (column, was, is) in pairs(&side(stored, name, parts), &side(planned, name, parts)) {
                let family = many.then(|| name.clone());
                changes.push(ColumnChange { family, side: which, column, was, is });
            }
        }
    }
    changes
}

/// Compares what plugins call their states.
fn meanings(uid: &str, stored: &[StateFamily], planned: &[StateFamily]) -> Vec<QueryChange> {
    let was: Vec<&PluginColumns> = plugin_columns(stored).collect();
    let mut changes: Vec<QueryChange> = Vec::new();
    for is in plugin_columns(planned) {
        let Some(was) = was.iter().find(|was| was.state == is.state && was.first == is.first) else { continue };
        if was.state_id != is.state_id {
            let change = QueryChange::StateMeaning {
                uid: uid.to_owned(),
                plugin: is.plugin.clone(),
                state: is.state.clone(),
                was: was.state_id.clone(),
                is: is.state_id.clone(),
            };
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
    }
    changes
}

fn plugin_columns(families: &[StateFamily]) -> impl Iterator<Item = &PluginColumns> {
    let parts = families.iter().flat_map(|family| &family.value);
    parts.filter_map(|part| if let StatePart::Row(row) = part { Some(row.plugins()) } else { None }).flatten()
}

/// The key's or the value's parts of a family.
type Parts = fn(&StateFamily) -> &[StatePart];

/// Name, stored type, planned type.
type Pair = (String, Option<String>, Option<String>);

/// The columns that differ.
fn pairs(stored: &[(String, String)], planned: &[(String, String)]) -> Vec<Pair> {
    let mut left: Vec<&(String, String)> = planned.iter().collect();
    let (mut pairs, mut in_order) = (Vec::new(), Vec::new());
    for (name, was) in stored {
        match left.iter().position(|(planned, _)| planned == name) {
            Some(at) => {
                let (_, is) = left.remove(at);
                if is != was {
                    pairs.push((name.clone(), Some(was.clone()), Some(is.clone())));
                }
                in_order.push(name);
            }
            None => pairs.push((name.clone(), Some(was.clone()), None)),
        }
    }
    pairs.extend(left.into_iter().map(|(name, is)| (name.clone(), None, Some(is.clone()))));
    if pairs.is_empty() {
        let moved = planned.iter().zip(in_order).find(|((planned, _), stored)| planned != *stored);
        pairs.extend(moved.map(|((name, is), _)| (name.clone(), Some(is.clone()), Some(is.clone()))));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(columns: &[(&str, &str)]) -> Vec<(String, String)> {
        columns.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
    }

    fn shown(stored: &[(&str, &str)], planned: &[(&str, &str)]) -> Vec<String> {
        let change = |(column, was, is)| ColumnChange { family: None, side: "key", column, was, is };
        pairs(&typed(stored), &typed(planned)).into_iter().map(|pair| change(pair).to_string()).collect()
    }

    #[test]
    fn columns_are_compared_by_name_then_type_then_place() {
        let stored = [("a", "Int64"), ("b", "Utf8")];
        assert!(shown(&stored, &stored).is_empty());
        assert_eq!(shown(&stored, &[("a", "Int32"), ("b", "Utf8")]), ["key column `a` was Int64 and is Int32"]);
        assert_eq!(
            shown(&stored, &[("b", "Utf8"), ("c", "Date32")]),
            ["key column `a` Int64 is gone", "key column `c` Date32 is new"]
        );
        assert_eq!(shown(&stored, &[("b", "Utf8"), ("a", "Int64")]), ["key column `b` has moved"]);
        assert_eq!(shown(&[("a", "Int64"), ("a", "Utf8")], &[("a", "Int64")]), ["key column `a` Utf8 is gone"]);
    }

    fn pin(schema_id: &str) -> StatePin {
        StatePin {
            schema_id: schema_id.into(),
            schema_text: format!("text of {schema_id}"),
            partitions: 1,
            families: serde_json::Value::Null,
        }
    }

    #[test]
    fn a_rename_is_suggested_only_when_it_is_clear_what_it_would_be() {
        let stored = BTreeMap::from([("old".to_owned(), pin("1")), ("other".to_owned(), pin("2"))]);
        let mut planned = BTreeMap::from([("new".to_owned(), pin("1")), ("other".to_owned(), pin("2"))]);
        let changes = operators(&stored, &planned);
        assert_eq!(changes.len(), 2, "{changes:?}");
        assert!(advice(&changes).contains("`new = \"old\"` below [uid]"), "{}", advice(&changes));
        planned.insert("newer".to_owned(), pin("1"));
        let changes = operators(&stored, &planned);
        assert_eq!(changes[0], QueryChange::OperatorGone { uid: "old".into(), renamed_to: None });
        assert!(!advice(&changes).contains('"'), "{}", advice(&changes));
        planned.insert("other".to_owned(), pin("3"));
        let text = describe(&operators(&stored, &planned));
        assert!(text.contains("the state of `other` is (text of 2) in the checkpoint and (text of 3)"), "{text}");
    }

    #[test]
    fn sources_are_compared_by_name_connector_and_place() {
        let pin =
            |format: &str, place: Option<&str>| ConnectorPin { format: format.into(), place: place.map(str::to_owned) };
        let map = |pin| BTreeMap::from([("s".to_owned(), pin)]);
        let logged = ["s".to_owned()];
        let compare = |stored, planned| describe(&sources(logged.iter(), &map(stored), &map(planned)));
        assert_eq!(compare(pin("text", Some("/a")), pin("TEXT", Some("/a"))), "");
        assert_eq!(compare(pin("text", Some("/a")), pin("text", None)), "");
        let text = compare(pin("text", Some("/a")), pin("text", Some("/b")));
        assert_eq!(text, "source `s` reads `/b`, its offsets are of `/a`");
        let text = compare(pin("rate", None), pin("socket", None));
        assert_eq!(text, "source `s` has the connector `socket`, its offsets are of `rate`");
        let other = BTreeMap::from([("t".to_owned(), pin("rate", None))]);
        let text = describe(&sources(logged.iter(), &BTreeMap::new(), &other));
        assert_eq!(text, "source `s` is gone; source `t` is new");
    }
}
