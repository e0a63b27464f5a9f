//! Structs: `named_struct`, and the fields of structs behind `p.q.z`.
//!
//! Comparison of structs needs no function: DataFusion compares them field by field, nulls first, as Spark does.

use std::sync::Arc;

use super::coercion::{list_of, mismatch, pair_of};
use super::function::{Call, Definition};
use super::lists::{fit, list, record};
use arrow::array::{Array, ArrayData, ArrayRef, AsArray, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};

/// The functions of this folder.
///
/// `__field(value, 'name')` is `value.name`: of a struct its field, null where the struct is null; of an array of
/// structs the array of that field; of a map the value under that key.
pub(super) fn definitions() -> Vec<Definition> {
    let definition = |name, arguments, coerce, result, never_null: bool, run| Definition {
        name,
        aliases: &[],
        arguments,
        coerce,
        result,
        may_be_null: !never_null,
        never_null,
        run,
    };
    vec![
        definition("named_struct", (0, usize::MAX), coerce_named, named_type, true, build_named),
        definition("struct", (0, usize::MAX), coerce_any, plain_type, true, build_plain),
        definition("__field", (2, 2), coerce_field, field_type, false, field),
    ]
}

fn coerce_any(_name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    Ok(types.to_vec())
}

fn coerce_named(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    if !types.len().is_multiple_of(2) {
        return mismatch(name, "a value behind each name", types.last().unwrap_or(&DataType::Null));
    }
    Ok(types.iter().enumerate().map(|(i, t)| if i % 2 == 0 { DataType::Utf8 } else { t.clone() }).collect())
}

fn named_type(name: &str, types: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let mut fields = Vec::with_capacity(types.len() / 2);
    for (position, pair) in types.chunks(2).enumerate() {
        match (constants.get(position * 2).copied().flatten().and_then(|c| c.try_as_str().flatten()), pair) {
            (Some(field), [_, data_type]) => fields.push(Field::new(field, data_type.clone(), true)),
            _ => return plan_err!("[DATATYPE_MISMATCH.NON_FOLDABLE_INPUT] `{name}` needs constant strings as names"),
        }
    }
    Ok(DataType::Struct(fields.into()))
}

fn plain_type(_name: &str, types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let fields: Fields =
        types.iter().enumerate().map(|(i, t)| Field::new(format!("col{}", i + 1), t.clone(), true)).collect();
    Ok(DataType::Struct(fields))
}

fn build_named(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    build(call, args.iter().skip(1).step_by(2).cloned().collect())
}

fn build_plain(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    build(call, args.to_vec())
}

fn build(call: &Call<'_>, columns: Vec<ArrayRef>) -> Result<ArrayRef> {
    match call.output {
        DataType::Struct(fields) => record(fields, columns, None, call.rows),
        other => exec_err!("`{}` gives a struct, not {other}", call.name),
    }
}

fn coerce_field(_name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    Ok(vec![types[0].clone(), DataType::Utf8])
}

/// The place of a field; its exact name wins over another case.
pub(super) fn position_of(fields: &Fields, wanted: &str) -> Result<usize> {
    let exact = fields.iter().position(|field| field.name() == wanted);
    match exact.or_else(|| fields.iter().position(|field| field.name().eq_ignore_ascii_case(wanted))) {
        Some(position) => Ok(position),
        None => {
            let names: Vec<_> = fields.iter().map(|field| format!("`{}`", field.name())).collect();
            plan_err!("[FIELD_NOT_FOUND] there is no field `{wanted}` among {}", names.join(", "))
        }
    }
}

fn field_type(name: &str, types: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let Some(wanted) = constants.get(1).copied().flatten().and_then(|c| c.try_as_str().flatten()) else {
        return mismatch(name, "a constant field name", &types[1]);
    };
    match &types[0] {
        DataType::Struct(fields) => Ok(fields[position_of(fields, wanted)?].data_type().clone()),
        DataType::Map(..) => Ok(pair_of(name, &types[0])?.1),
        DataType::List(element) => match element.data_type() {
            DataType::Struct(fields) => Ok(list_of(fields[position_of(fields, wanted)?].data_type().clone())),
            other => mismatch("[]", "an array of structs", other),
        },
        other => plan_err!("[INVALID_EXTRACT_BASE_FIELD_TYPE] `{wanted}` is no field: its base is of type {other}"),
    }
}

fn field(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    if args[0].is_empty() {
        return Ok(arrow::array::new_empty_array(call.output));
    }
    let wanted = args[1].as_string::<i32>().value(0);
    match args[0].data_type() {
        DataType::Struct(fields) => {
            let records = args[0].as_struct();
            under(records.column(position_of(fields, wanted)?), records.nulls())
        }
        DataType::Map(..) => {
            let (key, _) = pair_of(call.name, args[0].data_type())?;
            super::arrays::find_key(&args[0], &fit(Arc::clone(&args[1]), &key)?)
        }
        DataType::List(_) => {
            let lists = args[0].as_list::<i32>();
            let DataType::Struct(fields) = lists.values().data_type() else {
                return exec_err!("`{wanted}` is no field of {}", lists.values().data_type());
            };
            let records = lists.values().as_struct();
            let values = under(records.column(position_of(fields, wanted)?), records.nulls())?;
            list(values, lists.offsets().clone(), lists.nulls().cloned(), call.output)
        }
        other => exec_err!("`{wanted}` is no field of {other}"),
    }
}

/// The column with nulls also where its parent is null.
fn under(column: &ArrayRef, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
    let Some(parent) = parent.filter(|nulls| nulls.null_count() > 0) else { return Ok(Arc::clone(column)) };
    if column.data_type().is_null() {
        return Ok(Arc::clone(column));
    }
    let nulls = NullBuffer::union(column.nulls(), Some(parent));
    let data: ArrayData = column.to_data().into_builder().nulls(nulls).build()?;
    Ok(make_array(data))
}
