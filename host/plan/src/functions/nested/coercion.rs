//! Which types meet: Spark's widening of elements, keys and values.
//!
//! Planning asks for the type that two or more values are cast to before a function sees them. Pure functions over
//! types; they cast nothing themselves.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, plan_err};

/// The type of `ARRAY<element>`.
pub(super) fn list_of(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(element, true)))
}

/// The type of `MAP<key,value>`.
pub(super) fn map_of(key: DataType, value: DataType) -> DataType {
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry_fields(key, value)), false)), false)
}

/// The fields of a map's entries.
pub(super) fn entry_fields(key: DataType, value: DataType) -> Fields {
    Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)])
}

/// The element type of an array; of an untyped null, null.
pub(super) fn element_of(name: &str, data_type: &DataType) -> Result<DataType> {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Ok(field.data_type().clone())
        }
        DataType::Null => Ok(DataType::Null),
        other => mismatch(name, "an ARRAY", other),
    }
}

/// The key and value types of a map.
pub(super) fn pair_of(name: &str, data_type: &DataType) -> Result<(DataType, DataType)> {
    match data_type {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                Ok((fields[0].data_type().clone(), fields[1].data_type().clone()))
            }
            other => mismatch(name, "a MAP", other),
        },
        DataType::Null => Ok((DataType::Null, DataType::Null)),
        other => mismatch(name, "a MAP", other),
    }
}

/// The type with other leaves, inside of arrays, maps and structs too.
pub(super) fn with_leaves(data_type: &DataType, leaf: fn(&DataType) -> DataType) -> DataType {
    let inner = |inner: &DataType| with_leaves(inner, leaf);
    match data_type {
        DataType::List(element) => list_of(inner(element.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => map_of(inner(pair[0].data_type()), inner(pair[1].data_type())),
            _ => data_type.clone(),
        },
        DataType::Struct(fields) => {
            let field = |field: &Arc<Field>| Field::new(field.name(), inner(field.data_type()), field.is_nullable());
            DataType::Struct(fields.iter().map(field).collect())
        }
        other => leaf(other),
    }
}

/// The refusal of another number of arguments than from the least to the most.
pub(super) fn check_count(name: &str, types: &[DataType], (least, most): (usize, usize)) -> Result<()> {
    if types.len() < least || types.len() > most {
        return plan_err!("[WRONG_NUM_ARGS] `{name}` does not take {} arguments", types.len());
    }
    Ok(())
}

/// The refusal of an argument.
pub(super) fn mismatch<T>(name: &str, wanted: &str, found: &DataType) -> Result<T> {
    plan_err!("[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] `{name}` needs {wanted}, not {found}")
}

/// The common type of all, or a refusal.
pub(super) fn common<'a>(name: &str, types: impl IntoIterator<Item = &'a DataType>, ansi: bool) -> Result<DataType> {
    let mut result = DataType::Null;
    for next in types {
        result = match widest(&result, next, ansi) {
            Some(wider) => wider,
            None => {
                return plan_err!(
                    "[DATATYPE_MISMATCH.DATA_DIFF_TYPES] `{name}` needs values of one type, not {result} and {next}"
                );
            }
        };
    }
    Ok(result)
}

/// The narrowest type that both can be cast to without loss, as Spark finds it; `None` when they do not meet.
pub(super) fn widest(left: &DataType, right: &DataType, ansi: bool) -> Option<DataType> {
    use DataType::{Boolean, Date32, Decimal128, Float32, Float64, Int64, List, Map, Null, Struct, Timestamp};
    if left == right {
        return Some(left.clone());
    }
    let text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match (left, right) {
        (Null, other) | (other, Null) => Some(other.clone()),
        (l, r) if text(l) && text(r) => Some(DataType::Utf8),
        (l, r) if text(l) || text(r) => {
            let other = if text(l) { r } else { l };
            match other {
                _ if other.is_nested() || matches!(other, DataType::Binary) => None,
                _ if !ansi => (*other != Boolean).then_some(DataType::Utf8),
                _ if other.is_integer() => Some(Int64),
                _ if other.is_numeric() => Some(Float64),
                _ => Some(other.clone()),
            }
        }
        (l, r) if integer_rank(l).is_some() && integer_rank(r).is_some() => {
            Some(if integer_rank(l) >= integer_rank(r) { l.clone() } else { r.clone() })
        }
        (Decimal128(..), r) if r.is_floating() => Some(Float64),
        (l, Decimal128(..)) if l.is_floating() => Some(Float64),
        (l, r) if l.is_floating() && r.is_floating() => Some(Float64),
        (Float32, r) if r.is_integer() => Some(if ansi { Float64 } else { Float32 }),
        (l, Float32) if l.is_integer() => Some(if ansi { Float64 } else { Float32 }),
        (l, r) if l.is_floating() && r.is_integer() || l.is_integer() && r.is_floating() => Some(Float64),
        (l, r) if l.is_numeric() && r.is_numeric() => {
            let ((p1, s1), (p2, s2)) = (digits(l)?, digits(r)?);
            let scale = s1.max(s2);
            let whole = (p1 - s1).max(p2 - s2);
            let precision = (whole + scale).min(38);
            Some(Decimal128(u8::try_from(precision).ok()?, i8::try_from(scale.min(38 - whole.min(38)).max(0)).ok()?))
        }
        (Date32, Timestamp(..)) => Some(right.clone()),
        (Timestamp(..), Date32) => Some(left.clone()),
        (Timestamp(_, zone), Timestamp(_, other)) => {
            let zone = zone.as_ref().or(other.as_ref()).cloned();
            Some(Timestamp(arrow::datatypes::TimeUnit::Microsecond, zone))
        }
        (List(l), List(r)) => Some(list_of(widest(l.data_type(), r.data_type(), ansi)?)),
        (Struct(l), Struct(r)) if l.len() == r.len() => {
            let fields = l.iter().zip(r).map(|(l, r)| {
                if !l.name().eq_ignore_ascii_case(r.name()) {
                    return None;
                }
                Some(Field::new(
                    l.name(),
                    widest(l.data_type(), r.data_type(), ansi)?,
                    l.is_nullable() || r.is_nullable(),
                ))
            });
            Some(Struct(fields.collect::<Option<Vec<_>>>()?.into()))
        }
        (Map(..), Map(..)) => {
            let ((k1, v1), (k2, v2)) = (pair_of("", left).ok()?, pair_of("", right).ok()?);
            Some(map_of(widest(&k1, &k2, ansi)?, widest(&v1, &v2, ansi)?))
        }
        _ => None,
    }
}

fn integer_rank(data_type: &DataType) -> Option<u8> {
    Some(match data_type {
        DataType::Int8 => 1,
        DataType::Int16 => 2,
        DataType::Int32 => 3,
        DataType::Int64 => 4,
        _ => return None,
    })
}

fn digits(data_type: &DataType) -> Option<(i16, i16)> {
    Some(match data_type {
        DataType::Int8 => (3, 0),
        DataType::Int16 => (5, 0),
        DataType::Int32 => (10, 0),
        DataType::Int64 => (20, 0),
        DataType::Decimal128(precision, scale) => (i16::from(*precision), i16::from(*scale)),
        _ => return None,
    })
}

/// For `coerce`: one array.
pub(super) fn one_list(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    let mut result = types.to_vec();
    result[0] = list_of(element_of(name, &types[0])?);
    Ok(result)
}

/// For `coerce`: an array and something of its element type.
pub(super) fn list_and_element(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    let element = common(name, [&element_of(name, &types[0])?, &types[1]], ansi)?;
    Ok(vec![list_of(element.clone()), element])
}

/// For `coerce`: arrays of one element type.
pub(super) fn same_lists(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    let elements = types.iter().map(|t| element_of(name, t)).collect::<Result<Vec<_>>>()?;
    let list = list_of(common(name, &elements, ansi)?);
    Ok(vec![list; types.len()])
}

/// For `coerce`: values of one type.
pub(super) fn same_values(name: &str, types: &[DataType], ansi: bool) -> Result<Vec<DataType>> {
    Ok(vec![common(name, types, ansi)?; types.len()])
}

/// For `coerce`: one map.
pub(super) fn one_map(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    let (key, value) = pair_of(name, &types[0])?;
    let mut result = types.to_vec();
    result[0] = map_of(key, value);
    Ok(result)
}

/// For `result`: the type of the first argument.
pub(super) fn first(
    _name: &str,
    types: &[DataType],
    _constants: &[Option<&datafusion::common::ScalarValue>],
) -> Result<DataType> {
    Ok(types.first().cloned().unwrap_or(DataType::Null))
}

/// For `result`: the element type of the first argument.
pub(super) fn element(
    name: &str,
    types: &[DataType],
    _constants: &[Option<&datafusion::common::ScalarValue>],
) -> Result<DataType> {
    element_of(name, &types[0])
}

/// For `result`: BOOLEAN.
pub(super) fn boolean(
    _name: &str,
    _types: &[DataType],
    _constants: &[Option<&datafusion::common::ScalarValue>],
) -> Result<DataType> {
    Ok(DataType::Boolean)
}

/// For `result`: INT.
pub(super) fn int(
    _name: &str,
    _types: &[DataType],
    _constants: &[Option<&datafusion::common::ScalarValue>],
) -> Result<DataType> {
    Ok(DataType::Int32)
}

/// For `result`: STRING.
pub(super) fn string(
    _name: &str,
    _types: &[DataType],
    _constants: &[Option<&datafusion::common::ScalarValue>],
) -> Result<DataType> {
    Ok(DataType::Utf8)
}
