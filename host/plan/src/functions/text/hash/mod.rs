//! Hashes and checksums: `hash`, `xxhash64`, `crc32`, `md5`, `sha1`, `sha2`.
//!
//! Where it stands: beside the functions of strings. The digests are the engine's own under Spark's names and types.
//!
//! Rule of its life: equal to Spark to the last bit, since stored values are compared with them.

mod murmur3;
mod running;
mod xxhash;

use std::sync::{Arc, LazyLock};

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};

use super::column::values;
use super::function::{Call, Function, Nulls, some};
use super::kind::Kind;
use murmur3::Murmur3;
use running::fold_column;
use xxhash::Xxh64;

/// Spark's seed of both hashes.
const SEED: u8 = 42;

fn hash(call: &Call<'_>) -> Result<ArrayRef> {
    let mut hashes = vec![Murmur3(u32::from(SEED)); call.rows];
    for index in 0..call.len() {
        let (array, stride) = call.raw(index);
        fold_column(array, stride, &mut hashes)?;
    }
    values::<Int32Type>(call.rows, |row| Ok(hashes.get(row).map(|hash| hash.0.cast_signed())))
}

fn xxhash64(call: &Call<'_>) -> Result<ArrayRef> {
    let mut hashes = vec![Xxh64(u64::from(SEED)); call.rows];
    for index in 0..call.len() {
        let (array, stride) = call.raw(index);
        fold_column(array, stride, &mut hashes)?;
    }
    values::<Int64Type>(call.rows, |row| Ok(hashes.get(row).map(|hash| hash.0.cast_signed())))
}

static CRC: LazyLock<[u32; 256]> = LazyLock::new(|| {
    let mut table = [0; 256];
    for (entry, mut value) in table.iter_mut().zip(0_u32..) {
        for _ in 0..8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xEDB8_8320 } else { value >> 1 };
        }
        *entry = value;
    }
    table
});

fn crc32(call: &Call<'_>) -> Result<ArrayRef> {
    let source = call.bytes(0)?;
    values::<Int64Type>(call.rows, |row| {
        let bytes = some!(source.get(row));
        let crc = bytes.iter().fold(u32::MAX, |crc, byte| CRC[usize::from((crc as u8) ^ byte)] ^ crc >> 8);
        Ok(Some(i64::from(!crc)))
    })
}

static OPTIONS: LazyLock<Arc<ConfigOptions>> = LazyLock::new(Arc::default);

/// The engine's own function over this call's arguments, as STRING.
fn digest(call: &Call<'_>, function: &ScalarUDF) -> Result<ArrayRef> {
    let mut arguments = Vec::with_capacity(call.len());
    let mut fields = Vec::with_capacity(call.len());
    for index in 0..call.len() {
        let (array, stride) = call.raw(index);
        fields.push(Arc::new(Field::new("argument", array.data_type().clone(), true)));
        arguments.push(if stride == 0 && index > 0 {
            ColumnarValue::Scalar(ScalarValue::try_from_array(array, 0)?)
        } else {
            ColumnarValue::Array(Arc::clone(array))
        });
    }
    let scalars = vec![None; fields.len()];
    let return_field =
        function.return_field_from_args(ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &scalars })?;
    let result = function.invoke_with_args(ScalarFunctionArgs {
        args: arguments,
        arg_fields: fields,
        number_rows: call.rows,
        return_field,
        config_options: Arc::clone(&OPTIONS),
    })?;
    Ok(cast(&result.into_array(call.rows)?, &DataType::Utf8)?)
}

/// All functions of this group.
pub(super) fn functions() -> Vec<Function> {
    vec![
        Function::new("hash", &[Kind::Any], DataType::Int32, hash).rest(Kind::Any).nulls(Nulls::Never),
        Function::new("xxhash64", &[Kind::Any], DataType::Int64, xxhash64).rest(Kind::Any).nulls(Nulls::Never),
        Function::new("crc32", &[Kind::Bytes], DataType::Int64, crc32),
        Function::new("md5", &[Kind::Bytes], DataType::Utf8, |c| digest(c, &datafusion::functions::crypto::md5())),
        Function::new("sha1", &[Kind::Bytes], DataType::Utf8, |c| digest(c, &datafusion_spark::function::hash::sha1()))
            .aliases(&["sha"]),
        Function::new("sha2", &[Kind::Bytes, Kind::Int], DataType::Utf8, |c| {
            digest(c, &datafusion_spark::function::hash::sha2())
        })
        .nulls(Nulls::Possible),
    ]
}
