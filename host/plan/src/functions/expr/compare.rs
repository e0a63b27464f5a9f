//! What comparisons need beyond Arrow's kernels: one zero and one NaN, `greatest`, `least`, `isnan`, `nanvl`.
//!
//! Arrow orders doubles totally: -0.0 below 0.0, negative NaN below everything. [`normalized`] makes them Spark's;
//! the analyzer rule puts it around floating-point operands of native comparisons, group and join keys.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, StructArray};
use arrow::compute::kernels::cmp;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{and_not, is_null, or};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::error::Result;

use super::common_type::widest_of;
use super::function::{Call, Nulls, Row, shape};

/// The name of the function that makes zeros and NaNs one.
pub(super) const NORMALIZED: &str = "spark_normalized";

/// The family's functions.
pub(super) const ROWS: &[Row] = &[
    Row::new(NORMALIZED, shape::any_one, shape::first, |call| normalized(&call.arrays[0])),
    Row::new("greatest", comparable, shape::first, |call| extreme(call, true)).nulls(Nulls::WhenAllAre),
    Row::new("least", comparable, shape::first, |call| extreme(call, false)).nulls(Nulls::WhenAllAre),
    Row::new("isnan", one_float, shape::boolean, is_nan).nulls(Nulls::Never),
    Row::new("nanvl", two_floats, shape::first, nanvl).nulls(Nulls::Possible),
    Row::new("isnull", shape::any_one, shape::boolean, |call| Ok(Arc::new(is_null(&call.arrays[0])?)))
        .nulls(Nulls::Never),
    Row::new("isnotnull", shape::any_one, shape::boolean, |call| {
        Ok(Arc::new(arrow::compute::is_not_null(&call.arrays[0])?))
    })
    .nulls(Nulls::Never),
];

/// Whether values of the type hold floating-point numbers.
pub(super) fn holds_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(item) => holds_floats(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_floats(field.data_type())),
        _ => false,
    }
}

/// The values with one zero and one NaN, also inside arrays and structs.
pub(super) fn normalized(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float32 => {
            let one = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(one))
        }
        DataType::Float64 => {
            let one = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(one))
        }
        DataType::List(item) if holds_floats(item.data_type()) => {
            let list = array.as_list::<i32>();
            let values = normalized(list.values())?;
            Arc::new(ListArray::try_new(Arc::clone(item), list.offsets().clone(), values, list.nulls().cloned())?)
        }
        DataType::Struct(fields) if holds_floats(array.data_type()) => {
            let columns = array.as_struct().columns().iter().map(normalized).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, array.nulls().cloned(), array.len())?)
        }
        _ => Arc::clone(array),
    })
}

fn comparable(types: &[DataType], ansi: bool) -> Option<Vec<DataType>> {
    if types.len() < 2 {
        return None;
    }
    let common = widest_of(types, ansi)?;
    Some(vec![common; types.len()])
}

/// The greatest or least value that is not NULL; of equal ones the first.
fn extreme(call: &Call<'_>, greatest: bool) -> Result<ArrayRef> {
    let mut best = Arc::clone(&call.arrays[0]);
    if best.data_type().is_null() {
        return Ok(best);
    }
    for next in &call.arrays[1..] {
        let better = better_than(next, &best, greatest)?;
        // Better, or known where the best so far is not.
        let filled = and_not(&is_known(next), &is_known(&best))?;
        let taken = or(&known_true(&better), &filled)?;
        best = zip(&taken, next, &best)?;
    }
    Ok(best)
}

fn better_than(next: &ArrayRef, best: &ArrayRef, greatest: bool) -> Result<BooleanArray> {
    if next.data_type().is_nested() {
        let comparator = arrow::array::make_comparator(
            &normalized(next)?,
            &normalized(best)?,
            arrow::compute::SortOptions::default(),
        )?;
        let wanted = if greatest { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Less };
        let known = arrow::buffer::NullBuffer::union(next.nulls(), best.nulls());
        let better = arrow::buffer::BooleanBuffer::collect_bool(next.len(), |row| comparator(row, row) == wanted);
        return Ok(BooleanArray::new(better, known));
    }
    let (next, best) = (normalized(next)?, normalized(best)?);
    Ok(if greatest { cmp::gt(&next, &best)? } else { cmp::lt(&next, &best)? })
}

fn is_known(array: &ArrayRef) -> BooleanArray {
    match array.nulls() {
        Some(nulls) => BooleanArray::new(nulls.inner().clone(), None),
        None => BooleanArray::new(arrow::buffer::BooleanBuffer::new_set(array.len()), None),
    }
}

fn known_true(array: &BooleanArray) -> BooleanArray {
    match array.nulls() {
        Some(nulls) => BooleanArray::new(array.values() & nulls.inner(), None),
        None => array.clone(),
    }
}

fn float_of(data_type: &DataType) -> Option<DataType> {
    shape::number_like(data_type)
        .then(|| if *data_type == DataType::Float32 { DataType::Float32 } else { DataType::Float64 })
}

fn one_float(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    let [one] = types else { return None };
    Some(vec![float_of(one)?])
}

fn two_floats(types: &[DataType], _ansi: bool) -> Option<Vec<DataType>> {
    let [left, right] = types else { return None };
    let both = if (float_of(left)?, float_of(right)?) == (DataType::Float32, DataType::Float32) {
        DataType::Float32
    } else {
        DataType::Float64
    };
    Some(vec![both.clone(), both])
}

/// NULL is not NaN.
fn is_nan(call: &Call<'_>) -> Result<ArrayRef> {
    Ok(Arc::new(known_true(&nans(&call.arrays[0]))))
}

fn nans(array: &ArrayRef) -> BooleanArray {
    match array.data_type() {
        DataType::Float32 => BooleanArray::from_unary(array.as_primitive::<Float32Type>(), f32::is_nan),
        _ => BooleanArray::from_unary(array.as_primitive::<Float64Type>(), f64::is_nan),
    }
}

fn nanvl(call: &Call<'_>) -> Result<ArrayRef> {
    let (value, instead) = (&call.arrays[0], &call.arrays[1]);
    Ok(zip(&known_true(&nans(value)), instead, value)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;

    use super::*;

    fn doubles(values: &[Option<f64>]) -> ArrayRef {
        Arc::new(Float64Array::from(values.to_vec()))
    }

    #[test]
    fn greatest_and_least_skip_nulls_and_put_nan_on_top() {
        let arrays = [
            doubles(&[Some(f64::NAN), Some(1.0), None, None, Some(-0.0)]),
            doubles(&[Some(f64::INFINITY), None, Some(2.0), None, Some(0.0)]),
        ];
        let call = Call { arrays: &arrays, ansi: true, result: &DataType::Float64 };
        let greatest = extreme(&call, true).unwrap();
        let greatest = greatest.as_primitive::<Float64Type>();
        assert!(greatest.value(0).is_nan());
        assert_eq!((greatest.value(1), greatest.value(2)), (1.0, 2.0));
        assert!(greatest.is_null(3));
        assert!(greatest.value(4).is_sign_negative());
        let least = extreme(&call, false).unwrap();
        let least = least.as_primitive::<Float64Type>();
        assert_eq!(least.value(0), f64::INFINITY);
        assert!(least.value(4).is_sign_negative());
    }

    #[test]
    fn zeros_and_nans_become_one() {
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63);
        let result = normalized(&doubles(&[Some(-0.0), Some(negative_nan), None])).unwrap();
        let result = result.as_primitive::<Float64Type>();
        assert!(result.value(0).is_sign_positive());
        assert_eq!(result.value(1).to_bits(), f64::NAN.to_bits());
        assert!(result.is_null(2));
    }
}
