//! How the state of a processor lies in the store.
//!
//! ```text
//!   <value>            key                              ► [expires 8]? row
//!   <list>, <map>      key, number 8                    ► [expires 8]? row          of a map: map key, then columns
//!   <list>.range, …    key                              ► first number 8, end 8
//!   <any>.expiry       second 8, key, number 8?, expires 8                          only with a time to live
//!   timers.by_key      key                              ► due 8, …, ascending
//!   timers.by_time     second 8, key, due 8
//! ```
//!
//! Entries of lists and maps are rows of their own, so that what a batch writes is what it changes; the range names all
//! numbers of a key, and a number in it without a row is an entry that was removed. What ends by time is found in the
//! order of times, a table per second, so that the work is that of what ends.

use crate::event_order::{NEVER, ordered};
use crate::row_codec::{FORMAT, RowCodec};
use crate::state_family::PluginColumns;
use crate::{StateFamily, StatePart};
use arrow::datatypes::{DataType, FieldRef, Fields};
use arrow::error::ArrowError;
use millstream_common::Digest;
use millstream_state::{FamilyId, FamilySpec, Layout, StateError, StateStore};
use millstream_wasm::processor::{ProcessorSignature, VariableKind, VariableSignature};
use std::sync::Arc;

/// The width of a table of what ends by time.
const SECOND_US: i64 = 1_000_000;

/// Milliseconds as a prefix.
pub(super) fn prefix_of_ms(ms: i64) -> u64 {
    ordered(ms.saturating_mul(1000)).min(NEVER - 1)
}

/// A prefix as milliseconds.
pub(super) fn ms_of_prefix(prefix: u64) -> i64 {
    ((prefix ^ (1 << 63)) as i64).div_euclid(1000)
}

/// The table that a time is in.
pub(super) fn second_of(prefix: u64) -> u64 {
    let time_us = (prefix ^ (1 << 63)) as i64;
    ordered(time_us.div_euclid(SECOND_US).saturating_mul(SECOND_US)).min(NEVER - 1)
}

/// One variable.
pub(super) struct VariableLayout {
    pub(super) kind: VariableKind,
    pub(super) ttl_ms: Option<i64>,
    /// Map key, then columns.
    pub(super) rows: RowCodec,
    /// The map key alone.
    pub(super) map_keys: RowCodec,
    pub(super) row_family: FamilySpec,
    pub(super) range_family: Option<FamilySpec>,
    pub(super) expiry_family: Option<FamilySpec>,
    fields: Fields,
    state: PluginColumns,
}

/// The families of a variable in one store.
#[derive(Debug, Clone, Copy)]
pub(super) struct VariableFamilies {
    pub(super) rows: FamilyId,
    pub(super) range: Option<FamilyId>,
    pub(super) expiry: Option<FamilyId>,
}

/// The families of the timers in one store.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimerFamilies {
    pub(super) by_key: FamilyId,
    pub(super) by_time: FamilyId,
}

/// All families in one store.
#[derive(Debug, Clone)]
pub(super) struct StoreFamilies {
    pub(super) variables: Vec<VariableFamilies>,
    pub(super) timers: TimerFamilies,
}

/// All of a processor's state.
pub(super) struct StateLayout {
    pub(super) keys: RowCodec,
    pub(super) variables: Vec<VariableLayout>,
    pub(super) timers: FamilySpec,
    by_time: FamilySpec,
    key_fields: Fields,
}

fn types(fields: &Fields) -> Vec<DataType> {
    fields.iter().map(|field| field.data_type().clone()).collect()
}

fn digest(parts: &[&dyn std::fmt::Debug]) -> String {
    Digest::of(format!("{FORMAT} {parts:?}").as_bytes()).to_string()
}

fn family(name: String, layout: Layout, schema_id: &str) -> FamilySpec {
    FamilySpec { name, layout, schema_id: schema_id.to_owned() }
}

impl VariableLayout {
    fn try_new(
        plugin: &str,
        processor: &ProcessorSignature,
        variable: &VariableSignature,
        key: &[DataType],
    ) -> Result<Self, ArrowError> {
        let name = variable.name.clone();
        let fields: Fields = variable.map_key.iter().chain(&variable.columns).cloned().collect();
        let (of_map, of_row) = (types(&variable.map_key), types(&variable.columns));
        let lives = variable.ttl_ms.is_some();
        // How long entries live may change: those that are there keep their time.
        let schema_id = digest(&[&key, &variable.kind, &of_map, &of_row, &variable.state_id, &lives]);
        let numbered = variable.kind != VariableKind::Value;
        let state = PluginColumns {
            plugin: plugin.to_owned(),
            state: format!("{}.{name}", processor.name),
            state_id: variable.state_id.clone(),
            first: 0,
            count: fields.len(),
        };
        Ok(Self {
            kind: variable.kind,
            ttl_ms: variable.ttl_ms,
            rows: RowCodec::try_new(types(&fields))?,
            map_keys: RowCodec::try_new(of_map)?,
            range_family: numbered.then(|| family(format!("{name}.range"), Layout::Hash, &schema_id)),
            expiry_family: lives.then(|| family(format!("{name}.expiry"), Layout::Windowed, &schema_id)),
            row_family: family(name, Layout::Hash, &schema_id),
            fields,
            state,
        })
    }

    pub(super) fn is_numbered(&self) -> bool {
        self.kind != VariableKind::Value
    }

    fn open(&self, store: &mut dyn StateStore) -> Result<VariableFamilies, StateError> {
        let mut optional = |spec: &Option<FamilySpec>| spec.as_ref().map(|spec| store.family(spec)).transpose();
        let (range, expiry) = (optional(&self.range_family)?, optional(&self.expiry_family)?);
        Ok(VariableFamilies { rows: store.family(&self.row_family)?, range, expiry })
    }

    fn describe(&self, key: &StatePart, families: &mut Vec<StateFamily>) {
        let number = || self.is_numbered().then(|| StatePart::U64("number".into()));
        let expires = || self.ttl_ms.map(|_| StatePart::EventTime("expires".into()));
        let mut add = |spec: &FamilySpec, key: Vec<StatePart>, value: Vec<StatePart>| {
            let (name, schema_id) = (spec.name.clone(), spec.schema_id.clone());
            families.push(StateFamily { name, schema_id, key, value });
        };
        let row = StatePart::row_of_plugins(self.fields.clone(), vec![self.state.clone()]);
        let keys = std::iter::once(key.clone()).chain(number());
        add(&self.row_family, keys.collect(), expires().into_iter().chain([row]).collect());
        if let Some(range) = &self.range_family {
            let value = vec![StatePart::U64("first".into()), StatePart::U64("end".into())];
            add(range, vec![key.clone()], value);
        }
        if let Some(expiry) = &self.expiry_family {
            let second = [StatePart::EventTime("second".into()), key.clone()];
            add(expiry, second.into_iter().chain(number()).chain(expires()).collect(), Vec::new());
        }
    }
}

impl StateLayout {
    pub(super) fn try_new(plugin: &str, processor: &ProcessorSignature) -> Result<Self, ArrowError> {
        let key = types(&processor.key);
        let schema_id = digest(&[&"processor", &key]);
        let variables = processor.variables.iter();
        let variables = variables.map(|variable| VariableLayout::try_new(plugin, processor, variable, &key));
        Ok(Self {
            variables: variables.collect::<Result<_, _>>()?,
            keys: RowCodec::try_new(key)?,
            timers: family("timers.by_key".into(), Layout::Hash, &schema_id),
            by_time: family("timers.by_time".into(), Layout::Windowed, &schema_id),
            key_fields: processor.key.clone(),
        })
    }

    /// Opens the families in a store.
    pub(super) fn open(&self, store: &mut dyn StateStore) -> Result<StoreFamilies, StateError> {
        let variables = self.variables.iter().map(|variable| variable.open(store)).collect::<Result<_, _>>()?;
        let timers = TimerFamilies { by_key: store.family(&self.timers)?, by_time: store.family(&self.by_time)? };
        Ok(StoreFamilies { variables, timers })
    }

    /// What the bytes mean.
    pub(super) fn families(&self) -> Vec<StateFamily> {
        let key = StatePart::row(self.key_fields.iter().map(Arc::clone).collect::<Vec<FieldRef>>());
        let mut families = Vec::new();
        self.variables.iter().for_each(|variable| variable.describe(&key, &mut families));
        let mut timers = |spec: &FamilySpec, key: Vec<StatePart>, value: Vec<StatePart>| {
            let (name, schema_id) = (spec.name.clone(), spec.schema_id.clone());
            families.push(StateFamily { name, schema_id, key, value });
        };
        timers(&self.timers, vec![key.clone()], vec![StatePart::EventTimes("due".into())]);
        let (second, due) = (StatePart::EventTime("second".into()), StatePart::EventTime("due".into()));
        timers(&self.by_time, vec![second, key, due], Vec::new());
        families
    }

    /// What is kept, in words.
    pub(super) fn text(&self, processor: &ProcessorSignature) -> String {
        let key = self.key_fields.iter().map(|field| format!("{} {}", field.name(), field.data_type()));
        let key = key.collect::<Vec<_>>().join(", ");
        let variables = processor.variables.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let variables = if variables.is_empty() { "no variables".to_owned() } else { variables };
        format!("key: {key} | {variables} | timers of {}", processor.time_mode)
    }
}
