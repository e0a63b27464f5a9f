//! One side of a join: how its rows look in the state, and which rows of a batch take part.
//!
//! ```text
//!   counts   [time 8]? key                 ► number of rows with that key
//!   rows     [time 8]? key, number 4       ► [matched 1]? row
//!   times    second 8, key, number 4       ► event time 8       only when rows expire by their own time
//! ```
//!
//! Rows of a key are numbered without gaps, so that one look at the count names them all. The time in front of a key is
//! the time that the key carries: then a watermark drops whole tables. Where rows expire by a column of theirs, `times`
//! has them in the order of that column, a table per second.

use super::spec::{JoinKind, JoinSide, JoinSpec, TimeBound};
use crate::event_order::{self, NEVER, ordered, passed};
use crate::float_identity::unify_floats;
use crate::partitions::Partition;
use crate::row_codec::{EncodedRows, FORMAT, RowCodec};
use crate::{EventTimeKey, EventTimeKind, StateFamily, StatePart};
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::physical_expr::PhysicalExprRef;
use millstream_common::{Digest, Watermark};
use millstream_state::{FamilyId, FamilySpec, Layout, StateError};
use std::fmt;

/// The width of a table of `times`.
const SECOND_US: i64 = 1_000_000;

/// Which side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Left,
    Right,
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
        }
    }
}

/// When rows of a side leave the state.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expiry {
    /// Never.
    Never,
    /// When the watermark reaches the time in their key.
    ByKey(EventTimeKey),
    /// When the state watermark that the bounds give reaches the time in that column.
    ByTime { column: usize, bounds: Vec<TimeBound> },
}

impl Expiry {
    /// The time through which rows leave, in milliseconds, when nothing before `watermark` is to come.
    pub(super) fn state_watermark(&self, watermark: Watermark) -> Option<Watermark> {
        match self {
            Self::Never => None,
            Self::ByKey(_) => Some(watermark),
            Self::ByTime { bounds, .. } => bounds.iter().map(|bound| bound.state_watermark(watermark)).min(),
        }
    }

    /// The same as a prefix.
    pub(super) fn through(&self, watermark: Watermark) -> Option<u64> {
        self.state_watermark(watermark).map(|watermark| passed(watermark.as_micros()))
    }
}

/// The families of a side in one store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Families {
    pub(super) counts: FamilyId,
    pub(super) rows: FamilyId,
    pub(super) times: FamilyId,
}

/// One side of a join.
pub(super) struct Side {
    pub(super) which: Which,
    pub(super) schema: SchemaRef,
    pub(super) row_codec: RowCodec,
    /// Unmatched rows come out when they leave; so rows in the state say whether they matched.
    pub(super) is_preserved: bool,
    pub(super) expiry: Expiry,
    keys: Vec<PhysicalExprRef>,
    key_codec: RowCodec,
    filter: Option<PhysicalExprRef>,
    event_time: Option<EventTimeKey>,
    counts: FamilySpec,
    rows: FamilySpec,
    times: FamilySpec,
    text: String,
}

/// The keys of rows that came in.
pub(super) struct Keys {
    pub(super) encoded: EncodedRows,
    /// The time that the key carries, or [`NEVER`]; empty when keys carry none.
    pub(super) times: Vec<u64>,
    /// Which keys have no null; `None` when none has one.
    pub(super) known: Option<NullBuffer>,
}

impl Side {
    pub(super) fn try_new(which: Which, spec: &JoinSpec) -> Result<Self, DataFusionError> {
        let side = match which {
            Which::Left => &spec.left,
            Which::Right => &spec.right,
        };
        let plan_error = |text: String| DataFusionError::Plan(format!("the {} side {text}", which.name()));
        let key_types = side.keys.iter().map(|key| key.data_type(&side.schema)).collect::<Result<Vec<_>, _>>()?;
        check_event_time(side, spec, &key_types).map_err(plan_error)?;
        let types: Vec<DataType> = side.schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let is_preserved = matches!(
            (which, spec.kind),
            (_, JoinKind::FullOuter) | (Which::Left, JoinKind::LeftOuter) | (Which::Right, JoinKind::RightOuter)
        );
        let expiry = match (spec.event_time_key, side.event_time) {
            (Some(key), _) => Expiry::ByKey(key),
            (None, Some(time)) if !side.bounds.is_empty() => {
                Expiry::ByTime { column: time.index, bounds: side.bounds.clone() }
            }
            _ => Expiry::Never,
        };
        let text = describe_state(side, &key_types, is_preserved, &expiry);
        let form = describe_form(&types, &key_types, is_preserved, &expiry);
        let schema_id = Digest::of(format!("{} join, {FORMAT}; {form}", spec.kind).as_bytes()).to_string();
        let by_key = if matches!(expiry, Expiry::ByKey(_)) { Layout::Windowed } else { Layout::Hash };
        let family = |name: &str, layout| FamilySpec {
            name: format!("{}-{name}", which.name()),
            layout,
            schema_id: schema_id.clone(),
        };
        Ok(Self {
            which,
            schema: SchemaRef::clone(&side.schema),
            row_codec: RowCodec::try_new(types)?,
            is_preserved,
            keys: side.keys.clone(),
            key_codec: RowCodec::try_new(key_types)?,
            filter: side.filter.clone(),
            event_time: side.event_time,
            counts: family("counts", by_key),
            rows: family("rows", by_key),
            times: family("times", Layout::Windowed),
            expiry,
            text,
        })
    }

    /// The state of the side in words.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The spec of the family that holds the rows.
    pub(super) fn rows_family(&self) -> &FamilySpec {
        &self.rows
    }

    /// What the bytes of the side's families mean.
    pub(super) fn state_families(&self) -> Vec<StateFamily> {
        let named = self.keys.iter().zip(self.key_types());
        let columns: Vec<Field> = named.map(|(key, kind)| Field::new(key.to_string(), kind.clone(), true)).collect();
        let time = || StatePart::EventTime("event_time".to_owned());
        let number = || StatePart::U32("number".to_owned());
        let mut key = vec![StatePart::row(columns)];
        if matches!(self.expiry, Expiry::ByKey(_)) {
            key.insert(0, time());
        }
        let numbered = key.iter().cloned().chain([number()]).collect::<Vec<_>>();
        let matched = self.is_preserved.then(|| StatePart::U8("matched".to_owned()));
        let row = StatePart::row(self.schema.fields().clone());
        let family = |spec: &FamilySpec, key, value| StateFamily {
            name: spec.name.clone(),
            schema_id: spec.schema_id.clone(),
            key,
            value,
        };
        let by_time = [StatePart::EventTime("second".to_owned())].into_iter().chain(numbered.clone()).collect();
        vec![
            family(&self.rows, numbered, matched.into_iter().chain([row]).collect()),
            family(&self.counts, key, vec![StatePart::U32("rows".to_owned())]),
            family(&self.times, by_time, vec![time()]),
        ]
    }

    /// The types of the keys.
    pub(super) fn key_types(&self) -> &[DataType] {
        self.key_codec.types()
    }

    /// The families of this side in the store of a partition.
    pub(super) fn families(&self, partition: &mut Partition) -> Result<Families, StateError> {
        Ok(Families {
            counts: partition.store.family(&self.counts)?,
            rows: partition.store.family(&self.rows)?,
            times: partition.store.family(&self.times)?,
        })
    }

    /// Which rows are late; `None` when none can be.
    pub(super) fn late(&self, rows: &RecordBatch, late: Watermark) -> Option<BooleanArray> {
        let time = self.event_time?;
        let through = passed(late.as_micros());
        let times = event_order::prefixes(rows.column(time.index), time.kind)?;
        Some(times.iter().map(|time| Some(*time <= through)).collect())
    }

    /// For which rows the part of the condition that reads this side only is true; `None` without such a part.
    pub(super) fn passing(&self, rows: &RecordBatch) -> Result<Option<BooleanArray>, DataFusionError> {
        self.filter.as_ref().map(|filter| super::condition::true_rows(filter, rows)).transpose()
    }

    /// The keys of rows.
    pub(super) fn keys(&self, rows: &RecordBatch) -> Result<Keys, DataFusionError> {
        let columns = self
            .keys
            .iter()
            .map(|key| Ok(unify_floats(&key.evaluate(rows)?.into_array(rows.num_rows())?)?))
            .collect::<Result<Vec<ArrayRef>, DataFusionError>>()?;
        let columns = self.key_codec.conform(columns)?;
        let times = match self.expiry {
            Expiry::ByKey(key) => event_order::prefixes(&columns[key.index], key.kind)
                .ok_or_else(|| DataFusionError::Execution("a window in a join key has no end".into()))?,
            _ => Vec::new(),
        };
        let known = columns
            .iter()
            .map(|column| column.logical_nulls())
            .fold(None, |all, nulls| NullBuffer::union(all.as_ref(), nulls.as_ref()));
        Ok(Keys { encoded: self.key_codec.encode(&columns)?, times, known })
    }

    /// The columns of rows exactly as the state gives them back.
    pub(super) fn conform(&self, rows: &RecordBatch) -> Result<Vec<ArrayRef>, ArrowError> {
        self.row_codec.conform(rows.columns().to_vec())
    }

    /// The times by which rows leave the state one by one, [`NEVER`] where there is none; empty when they do not.
    pub(super) fn own_times(&self, columns: &[ArrayRef]) -> Vec<u64> {
        match self.expiry {
            Expiry::ByTime { column, .. } => {
                event_order::prefixes(&columns[column], EventTimeKind::Timestamp).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// The bytes of a row's value as its row and whether it has matched.
    pub(super) fn open_value<'a>(&self, value: &'a [u8]) -> Result<(bool, &'a [u8]), ArrowError> {
        if !self.is_preserved {
            return Ok((false, value));
        }
        match value.split_first() {
            Some((0, row)) => Ok((false, row)),
            Some((1, row)) => Ok((true, row)),
            _ => Err(ArrowError::ParseError("a row does not say whether it has matched".to_owned())),
        }
    }

    /// What stands in front of a row's bytes.
    pub(super) fn flag(&self, matched: bool) -> &'static [u8] {
        match (self.is_preserved, matched) {
            (false, _) => &[],
            (true, false) => &[0],
            (true, true) => &[1],
        }
    }
}

/// The table of `times` that a time is in.
pub(super) fn second_of(time: u64) -> u64 {
    let time_us = (time ^ (1 << 63)) as i64;
    ordered(time_us.div_euclid(SECOND_US).saturating_mul(SECOND_US)).min(NEVER - 1)
}

fn check_event_time(side: &JoinSide, spec: &JoinSpec, key_types: &[DataType]) -> Result<(), String> {
    let is_time = |kind: &DataType| matches!(kind, DataType::Timestamp(TimeUnit::Microsecond, _));
    let fits = |kind: Option<&DataType>, time: EventTimeKind| match (time, kind) {
        (EventTimeKind::Timestamp, Some(kind)) => is_time(kind),
        (EventTimeKind::Window, Some(DataType::Struct(fields))) => {
            fields.find("end").is_some_and(|(_, end)| is_time(end.data_type()))
        }
        _ => false,
    };
    if let Some(time) = side.event_time {
        let kind = side.schema.fields().get(time.index).map(|field| field.data_type());
        if !fits(kind, time.kind) {
            return Err(format!("has the event time in column {}, which is {kind:?}", time.index));
        }
    }
    if let Some(key) = spec.event_time_key
        && !fits(key_types.get(key.index), key.kind)
    {
        return Err(format!("has the event time in key {}, which is {:?}", key.index, key_types.get(key.index)));
    }
    let is_timestamp = side.event_time.is_some_and(|time| time.kind == EventTimeKind::Timestamp);
    if !side.bounds.is_empty() && spec.event_time_key.is_none() && !is_timestamp {
        return Err("bounds a time that it does not have".to_owned());
    }
    Ok(())
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let which = self.which.name();
        match &self.expiry {
            Expiry::Never => write!(f, "{which} rows stay"),
            Expiry::ByKey(key) => write!(f, "{which} rows leave when the watermark reaches key {}", key.index),
            Expiry::ByTime { column, bounds } => {
                let column = self.schema.field(*column).name();
                let texts = bounds.iter().map(|bound| {
                    let verb = if bound.inclusive { "passes" } else { "reaches" };
                    let unit = if bound.whole_seconds { "watermark in seconds" } else { "watermark" };
                    format!("when the {unit} {:+} ms {verb} {column}", bound.offset_us / 1000)
                });
                write!(f, "{which} rows leave {}", texts.collect::<Vec<_>>().join(" and "))
            }
        }
    }
}

/// What the bytes of the state mean, whatever columns are called.
fn describe_form(types: &[DataType], key_types: &[DataType], has_flag: bool, expiry: &Expiry) -> String {
    let list = |types: &[DataType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let kept = match expiry {
        Expiry::Never => "none".to_owned(),
        Expiry::ByKey(EventTimeKey { index, kind }) => format!("{kind:?} in key {index}"),
        Expiry::ByTime { column, .. } => format!("column {column}"),
    };
    format!("keys {}; flag {has_flag}; columns {}; expiry {kept}", list(key_types), list(types))
}

fn describe_state(side: &JoinSide, key_types: &[DataType], has_flag: bool, expiry: &Expiry) -> String {
    let keys = key_types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let columns: Vec<String> =
        side.schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    let flag = if has_flag { "matched, " } else { "" };
    let kept = match expiry {
        Expiry::Never => "kept for ever".to_owned(),
        Expiry::ByKey(key) => format!("kept until the time in key {}", key.index),
        Expiry::ByTime { column, .. } => format!("kept until a bound on {}", side.schema.field(*column).name()),
    };
    format!("key: {keys} | value: {flag}{} | {kept}", columns.join(", "))
}
