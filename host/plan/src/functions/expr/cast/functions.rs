//! Casts under the names of their types: `int('1')`, `string(x)`, `date(x)`.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::error::Result;

use super::super::common_type::timestamp;
use super::super::fault::{Mode, raise};
use super::super::function::{Call, Nulls, Row, shape};
use super::{Rules, can_cast, cast_array};

macro_rules! cast_to {
    ($name:literal, $to:expr) => {
        Row::new($name, |types, ansi| accepted(types, &$to, ansi), |_, _| Ok($to), cast).nulls(Nulls::Possible)
    };
}

/// The family's functions.
pub(crate) const ROWS: &[Row] = &[
    cast_to!("boolean", DataType::Boolean),
    cast_to!("tinyint", DataType::Int8),
    cast_to!("smallint", DataType::Int16),
    cast_to!("int", DataType::Int32),
    cast_to!("bigint", DataType::Int64),
    cast_to!("float", DataType::Float32),
    cast_to!("double", DataType::Float64),
    cast_to!("decimal", DataType::Decimal128(10, 0)),
    cast_to!("string", DataType::Utf8),
    cast_to!("binary", DataType::Binary),
    cast_to!("date", DataType::Date32),
    cast_to!("timestamp", timestamp()),
];

fn accepted(types: &[DataType], to: &DataType, ansi: bool) -> Option<Vec<DataType>> {
    let accepted = shape::any_one(types, ansi)?;
    can_cast(&accepted[0], to, ansi).then_some(accepted)
}

fn cast(call: &Call<'_>) -> Result<ArrayRef> {
    let rules = Rules { mode: Mode::of(call.ansi), ansi: call.ansi, today: 0 };
    cast_array(&call.arrays[0], call.result, rules).map_err(raise)
}
