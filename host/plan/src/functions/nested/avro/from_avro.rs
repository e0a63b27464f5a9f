//! `from_avro(bytes, schema[, options])`: a value in Avro's binary form as a typed value.
//!
//! In mode FAILFAST, which is the default as in Spark, bytes that do not fit fail the query; in mode PERMISSIVE they are
//! null. The option `avroSchema` names the schema to read with, when the bytes were written with an older one. Bytes that
//! go on after the value are malformed too: framing, such as that of a schema registry, shows itself that way.
//!
//! Rows are decoded by the hundred into one builder; only where a row fails, those of its hundred are decoded one by one.

use super::super::coercion::mismatch;
use super::super::function::{Call, Definition};
use super::schema::{read, sql_type};
use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, UInt32Array, new_empty_array, new_null_array};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::DataType;
use arrow_avro::reader::{Decoder, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err, plan_datafusion_err, plan_err};

/// What the decoder wants to see before each value: it knows one schema, number zero.
const PREFIX: [u8; 5] = [0; 5];
/// How many rows share a builder.
const CHUNK: usize = 128;

/// The functions of this file.
pub(super) fn definitions() -> Vec<Definition> {
    vec![Definition {
        name: "from_avro",
        aliases: &[],
        arguments: (2, 3),
        coerce,
        result,
        may_be_null: true,
        never_null: false,
        run,
    }]
}

fn coerce(name: &str, types: &[DataType], _ansi: bool) -> Result<Vec<DataType>> {
    if !matches!(types[0], DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Null) {
        return mismatch(name, "BINARY", &types[0]);
    }
    let mut coerced = vec![DataType::Binary, DataType::Utf8];
    if let Some(options) = types.get(2) {
        if !matches!(options, DataType::Map(..)) {
            return mismatch(name, "a map of options", options);
        }
        coerced.push(options.clone());
    }
    Ok(coerced)
}

/// How a query wants its bytes read.
struct Reading {
    written: AvroSchema,
    wanted: Option<AvroSchema>,
    fail_fast: bool,
}

impl Reading {
    fn new(name: &str, schema: &str, options: &[(String, String)]) -> Result<Self> {
        let mut reading = Self { written: read(name, schema)?, wanted: None, fail_fast: true };
        for (key, value) in options {
            match (key.to_ascii_lowercase().as_str(), value.to_ascii_uppercase().as_str()) {
                ("mode", "FAILFAST") => reading.fail_fast = true,
                ("mode", "PERMISSIVE") => reading.fail_fast = false,
                ("avroschema", _) => reading.wanted = Some(read(name, value)?),
                _ => {
                    return plan_err!(
                        "[INVALID_OPTIONS] `{name}` does not know the option `{key}` = `{value}`; it knows mode = PERMISSIVE or FAILFAST, and avroSchema"
                    );
                }
            }
        }
        Ok(reading)
    }

    fn decoder(&self, rows: usize) -> Result<Decoder> {
        let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
        let only = store.set(Fingerprint::Id(0), self.written.clone())?;
        let mut builder = ReaderBuilder::new()
            .with_batch_size(rows)
            .with_writer_schema_store(store)
            .with_active_fingerprint(only);
        if let Some(wanted) = &self.wanted {
            builder = builder.with_reader_schema(wanted.clone());
        }
        Ok(builder.build_decoder()?)
    }
}

fn result(name: &str, types: &[DataType], constants: &[Option<&ScalarValue>]) -> Result<DataType> {
    let Some(schema) = constants.get(1).copied().flatten().and_then(|c| c.try_as_str().flatten()) else {
        return mismatch(name, "a constant schema", &types[1]);
    };
    let options = match constants.get(2) {
        None => Vec::new(),
        Some(Some(constant)) => options(&constant.to_array()?)?,
        Some(None) => return mismatch(name, "constant options", &types[2]),
    };
    let decoder = Reading::new(name, schema, &options)?
        .decoder(1)
        .map_err(|error| plan_datafusion_err!("[INVALID_AVRO_SCHEMA] `{name}`: {error}"))?;
    sql_type(name, decoder.schema().field(0).data_type())
}

fn options(map: &ArrayRef) -> Result<Vec<(String, String)>> {
    let Some(map) = map.as_map_opt() else { return exec_err!("options are a map") };
    if map.is_empty() || map.is_null(0) {
        return Ok(Vec::new());
    }
    let entries = map.value(0);
    let (keys, values) = (cast(entries.column(0), &DataType::Utf8)?, cast(entries.column(1), &DataType::Utf8)?);
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    Ok(keys.as_string::<i32>().iter().map(text).zip(values.as_string::<i32>().iter().map(text)).collect())
}

fn run(call: &Call<'_>, args: &[ArrayRef]) -> Result<ArrayRef> {
    if call.rows == 0 {
        return Ok(new_empty_array(call.output));
    }
    let options = args.get(2).map(options).transpose()?.unwrap_or_default();
    let reading = Reading::new(call.name, args[1].as_string::<i32>().value(0), &options)?;
    let bytes = args[0].as_binary::<i32>();
    let mut decoder = reading.decoder(CHUNK)?;
    let mut parts: Vec<ArrayRef> = Vec::new();
    // For each row the place of its value among those that were decoded.
    let mut places: Vec<Option<u32>> = vec![None; call.rows];
    let mut decoded = 0_u32;
    let present: Vec<usize> = (0..call.rows).filter(|&row| bytes.is_valid(row)).collect();
    for rows in present.chunks(CHUNK) {
        match decode(&mut decoder, bytes, rows) {
            Ok(values) => {
                rows.iter().zip(decoded..).for_each(|(&row, place)| places[row] = Some(place));
                decoded += rows.len() as u32;
                parts.push(values);
            }
            Err(_) => {
                for row in rows {
                    // What has failed is not used again.
                    let mut alone = reading.decoder(1)?;
                    match decode(&mut alone, bytes, &[*row]) {
                        Ok(value) => {
                            places[*row] = Some(decoded);
                            decoded += 1;
                            parts.push(value);
                        }
                        Err(_) if !reading.fail_fast => {}
                        Err(error) => {
                            return exec_err!(
                                "[MALFORMED_AVRO_MESSAGE] `{}` cannot read {} bytes in mode FAILFAST: {error}; with the option mode = PERMISSIVE they are null",
                                call.name,
                                bytes.value(*row).len()
                            );
                        }
                    }
                }
                decoder = reading.decoder(CHUNK)?;
            }
        }
    }
    if parts.is_empty() {
        return Ok(new_null_array(call.output, call.rows));
    }
    let parts = parts.iter().map(|part| cast(part, call.output)).collect::<Result<Vec<_>, _>>()?;
    let values = concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
    if decoded as usize == call.rows {
        return Ok(values);
    }
    Ok(take(&values, &UInt32Array::from(places), None)?)
}

/// The values of some rows.
fn decode(decoder: &mut Decoder, bytes: &BinaryArray, rows: &[usize]) -> Result<ArrayRef> {
    for &row in rows {
        let value = bytes.value(row);
        // A value may take no byte, but the decoder begins one only when there is something to read.
        let held: Vec<u8>;
        let fed = if value.is_empty() {
            held = vec![0];
            held.as_slice()
        } else {
            value
        };
        let malformed = |error: String| exec_datafusion_err!("{error}");
        decoder.decode(&PREFIX).map_err(|error| malformed(error.to_string()))?;
        let before = decoder.capacity();
        match decoder.decode(fed) {
            Ok(read) if read == value.len() && decoder.capacity() + 1 == before => {}
            Ok(_) => return exec_err!("the value ends before the bytes do, or after them"),
            Err(error) => return exec_err!("{error}"),
        }
    }
    match decoder.flush().map_err(|error| exec_datafusion_err!("{error}"))? {
        Some(batch) if batch.num_rows() == rows.len() => Ok(ArrayRef::clone(batch.column(0))),
        _ => exec_err!("the decoder gave other rows than it was given"),
    }
}
