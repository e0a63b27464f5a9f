//! The parts of a session operator that do not change during a run: keys, functions, and the form of its state.

use super::ranges::Range;
use crate::aggregate::functions::Functions;
use crate::aggregate::keys::KeyColumns;
use crate::aggregate::merge::AggregatePlan;
use crate::row_codec::{EncodedRows, FORMAT, RowCodec};
use crate::{AggregateSpec, EventTimeKey, EventTimeKind, OperatorError, StateFamily, StatePart};
use arrow::array::{Array, ArrayRef, AsArray, StructArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Fields, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use millstream_common::Digest;
use millstream_state::{ByteRows, FamilySpec, Layout};
use std::sync::Arc;

/// What the merging and the evicting of sessions share.
pub(super) struct SessionPlan {
    /// Keys with the session among them, functions and result columns.
    pub(super) groups: AggregatePlan,
    /// The position of the session among the keys.
    session: usize,
    /// The fields of the session: its start and its end.
    parts: Fields,
    /// By end and keys: the states of each session.
    pub(super) sessions: FamilySpec,
    /// By keys without the session: the ranges of their sessions.
    pub(super) ranges: FamilySpec,
}

impl SessionPlan {
    pub(super) fn try_new(spec: AggregateSpec, session: usize, description: String) -> Result<Self, OperatorError> {
        let misbuilt = |error| OperatorError::from_expression(&description, error);
        let misfit = |reason: String| OperatorError::Misfit { operator: description.clone(), reason };
        let event_time = Some(EventTimeKey { index: session, kind: EventTimeKind::Window });
        let keys = KeyColumns::try_new(spec.group_by.clone(), event_time, &spec.input).map_err(misbuilt)?;
        spec.check_output(keys.fields(), &description)?;
        let functions = Functions::try_new(spec.functions, spec.filters, &spec.input).map_err(misbuilt)?;
        let types: Vec<DataType> = keys.fields().iter().map(|field| field.data_type().clone()).collect();
        let has_time = |field: &arrow::datatypes::FieldRef, name| {
            field.name() == name && matches!(field.data_type(), DataType::Timestamp(TimeUnit::Microsecond, _))
        };
        let parts = match &types[session] {
            DataType::Struct(parts)
                if parts.len() == 2 && has_time(&parts[0], "start") && has_time(&parts[1], "end") =>
            {
                parts.clone()
            }
            other => return Err(misfit(format!("its session is {other}"))),
        };
        let mut owners = types.clone();
        owners.remove(session);
        if owners.is_empty() {
            return Err(misfit("it has no key but the session".to_owned()));
        }
        let owners = RowCodec::try_new(owners).map_err(|error| misbuilt(error.into()))?;
        let texts: Vec<_> = types.iter().map(ToString::to_string).collect();
        let states = functions.state_text();
        let text = format!("sessions, {FORMAT}; keys {}; session {session}; states {states}", texts.join(", "));
        let schema_id = Digest::of(text.as_bytes()).to_string();
        Ok(Self {
            session,
            parts,
            sessions: FamilySpec { name: "sessions".into(), layout: Layout::Windowed, schema_id: schema_id.clone() },
            ranges: FamilySpec { name: "ranges".into(), layout: Layout::Hash, schema_id },
            groups: AggregatePlan {
                keys,
                functions,
                output: spec.output,
                description,
                plugins: spec.plugins,
                owners: Some((session, owners)),
            },
        })
    }

    /// What the bytes of the two families mean. The session has no say in the partition of a key.
    pub(super) fn families(&self) -> Vec<StateFamily> {
        let columns = self.groups.named_keys();
        let end = format!("{}.end", columns[self.session].name());
        let owners: Vec<usize> = (0..columns.len()).filter(|column| *column != self.session).collect();
        let others: Vec<_> = owners.iter().map(|owner| Arc::clone(&columns[*owner])).collect();
        vec![
            StateFamily {
                name: self.sessions.name.clone(),
                schema_id: self.sessions.schema_id.clone(),
                key: vec![StatePart::EventTime(end), StatePart::owned_row(columns, owners)],
                value: vec![self.groups.state_part()],
            },
            StateFamily {
                name: self.ranges.name.clone(),
                schema_id: self.ranges.schema_id.clone(),
                key: vec![StatePart::row(others)],
                value: vec![StatePart::EventTimes("starts_and_ends".to_owned())],
            },
        ]
    }

    /// The bytes of the keys without the session.
    pub(super) fn encode_owners(&self, keys: &[ArrayRef]) -> Result<EncodedRows, DataFusionError> {
        self.groups.owner_bytes(keys)
    }

    /// The range of each row; `None` for rows that have none.
    pub(super) fn ranges_of(&self, keys: &[ArrayRef]) -> Vec<Option<Range>> {
        let session = keys[self.session].as_struct();
        let starts = session.column(0).as_primitive::<TimestampMicrosecondType>();
        let ends = session.column(1).as_primitive::<TimestampMicrosecondType>();
        let is_there = |row| session.is_valid(row) && starts.is_valid(row) && ends.is_valid(row);
        (0..session.len())
            .map(|row| is_there(row).then(|| Range { start: starts.value(row), end: ends.value(row) }))
            .collect()
    }

    /// Key columns with other sessions.
    pub(super) fn with_ranges(
        &self,
        mut keys: Vec<ArrayRef>,
        ranges: impl Iterator<Item = Range> + Clone,
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        let times = |values: Vec<i64>, part: usize| -> ArrayRef {
            Arc::new(TimestampMicrosecondArray::from(values).with_data_type(self.parts[part].data_type().clone()))
        };
        let starts = times(ranges.clone().map(|range| range.start).collect(), 0);
        let ends = times(ranges.map(|range| range.end).collect(), 1);
        keys[self.session] = Arc::new(StructArray::try_new(self.parts.clone(), vec![starts, ends], None)?);
        Ok(keys)
    }

    /// The keys of sessions as the store has them: the end, then all keys.
    pub(super) fn session_keys(&self, columns: &[ArrayRef]) -> Result<ByteRows, OperatorError> {
        let encoded = self.groups.keys.encode(columns).map_err(|error| self.groups.failed(error))?;
        let ends = self.groups.keys.prefixes(columns).unwrap_or_default();
        let mut rows = ByteRows::with_capacity(ends.len(), ends.len() * 48);
        ends.iter().enumerate().for_each(|(row, end)| rows.push_parts(&[&end.to_be_bytes(), encoded.row(row)]));
        Ok(rows)
    }

    /// The state is not what this operator wrote.
    pub(super) fn damaged(&self, reason: &str) -> OperatorError {
        self.groups.unreadable(ArrowError::ParseError(reason.to_owned()))
    }
}
