//! Buffers of a guest → Arrow arrays, or the reason why not.
//!
//! Lengths are checked here, contents (offsets, UTF-8, bitmaps) by arrow's own full validation. Buffers are taken
//! over as they are; only misaligned ones are copied once more.

use arrow::array::{ArrayData, ArrayDataBuilder, ArrayRef, AsArray, UInt32Array, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{DataType, Decimal128Type, FieldRef};

use super::format;

/// The buffers of one batch, handed out one after the other.
pub(crate) struct Buffers {
    buffers: std::vec::IntoIter<Vec<u8>>,
    taken: usize,
}

impl Buffers {
    pub(crate) fn new(buffers: Vec<Vec<u8>>) -> Self {
        Self { buffers: buffers.into_iter(), taken: 0 }
    }

    fn next(&mut self, field: &str, part: &str) -> Result<Vec<u8>, String> {
        let buffer = self.buffers.next().ok_or_else(|| format!("{} buffers, no {part} of `{field}`", self.taken))?;
        self.taken += 1;
        Ok(buffer)
    }

    /// All buffers must have been used.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.buffers.len() {
            0 => Ok(()),
            more => Err(format!("{more} buffers more than the schema has")),
        }
    }
}

/// Reads one column of `rows` rows. Nulls in it are allowed when the field says so.
pub(crate) fn column(field: &FieldRef, rows: usize, buffers: &mut Buffers) -> Result<ArrayRef, String> {
    let data = read(field, rows, buffers)?;
    let nulls = data.nulls().map_or(0, NullBuffer::null_count);
    if nulls > 0 && !field.is_nullable() {
        return Err(format!("{nulls} nulls in `{}`, which has none by its description", field.name()));
    }
    Ok(make_array(data))
}

fn read(field: &FieldRef, rows: usize, buffers: &mut Buffers) -> Result<ArrayData, String> {
    let name = field.name();
    let nulls = validity(name, rows, buffers.next(name, "validity bitmap")?)?;
    let data_type = field.data_type();
    let builder = ArrayDataBuilder::new(data_type.clone()).len(rows).nulls(nulls).align_buffers(true);
    let builder = match data_type {
        DataType::Boolean => {
            let values = buffers.next(name, "values")?;
            expect_len(name, "values", values.len(), rows.div_ceil(8))?;
            builder.add_buffer(Buffer::from_vec(values))
        }
        DataType::Utf8 | DataType::Binary => {
            let (offsets, last) = offsets(name, rows, buffers)?;
            let values = buffers.next(name, "values")?;
            expect_len(name, "values", values.len(), last)?;
            builder.add_buffer(offsets).add_buffer(Buffer::from_vec(values))
        }
        DataType::List(child) => {
            let (offsets, last) = offsets(name, rows, buffers)?;
            let child = read(child, last, buffers)?;
            builder.add_buffer(offsets).add_child_data(child)
        }
        DataType::Struct(children) => {
            let children = children.iter().map(|child| read(child, rows, buffers)).collect::<Result<Vec<_>, _>>()?;
            builder.child_data(children)
        }
        other => {
            let width = format::width(other).ok_or_else(|| format!("{other} cannot cross the boundary"))?;
            let values = buffers.next(name, "values")?;
            let bytes = rows.checked_mul(width).ok_or_else(|| format!("{rows} rows in `{name}`"))?;
            expect_len(name, "values", values.len(), bytes)?;
            builder.add_buffer(Buffer::from_vec(values))
        }
    };
    let data = builder.build().map_err(|e| format!("column `{name}`: {e}"))?;
    if let DataType::Decimal128(precision, _) = data_type {
        let array = make_array(data.clone());
        let decimals = array.as_primitive::<Decimal128Type>();
        decimals.validate_decimal_precision(*precision).map_err(|e| format!("column `{name}`: {e}"))?;
    }
    Ok(data)
}

fn validity(name: &str, rows: usize, bytes: Vec<u8>) -> Result<Option<NullBuffer>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    expect_len(name, "validity bitmap", bytes.len(), rows.div_ceil(8))?;
    let nulls = NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bytes), 0, rows));
    Ok((nulls.null_count() > 0).then_some(nulls))
}

/// The offsets, and where they end. They must start at 0 and never fall.
fn offsets(name: &str, rows: usize, buffers: &mut Buffers) -> Result<(Buffer, usize), String> {
    let bytes = buffers.next(name, "offsets")?;
    if rows == 0 && bytes.is_empty() {
        return Ok((Buffer::from_vec(vec![0i32]), 0));
    }
    let expected =
        rows.checked_add(1).and_then(|n| n.checked_mul(4)).ok_or_else(|| format!("{rows} rows in `{name}`"))?;
    expect_len(name, "offsets", bytes.len(), expected)?;
    let (chunks, _) = bytes.as_chunks::<4>();
    let mut before = 0;
    for (row, chunk) in chunks.iter().enumerate() {
        let offset = i32::from_le_bytes(*chunk);
        if offset < before || (row == 0 && offset != 0) {
            return Err(format!("offset {offset} after {before} at row {row} of `{name}`"));
        }
        before = offset;
    }
    let last = usize::try_from(before).map_err(|_| format!("offset {before} in `{name}`"))?;
    Ok((Buffer::from_vec(bytes), last))
}

fn expect_len(name: &str, part: &str, is: usize, expected: usize) -> Result<(), String> {
    if is == expected {
        return Ok(());
    }
    Err(format!("{part} of `{name}` has {is} bytes, not {expected}"))
}

/// Reads the input rows of a table function: `rows` ascending numbers below `inputs`.
pub(crate) fn input_rows(bytes: &[u8], rows: usize, inputs: usize) -> Result<UInt32Array, String> {
    expect_len("input-rows", "values", bytes.len(), rows.checked_mul(4).ok_or("too many rows")?)?;
    let (chunks, _) = bytes.as_chunks::<4>();
    let numbers: Vec<u32> = chunks.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect();
    if let Some(place) = numbers.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(format!("input row {} after {} at row {}", numbers[place + 1], numbers[place], place + 1));
    }
    match numbers.last() {
        Some(last) if *last as usize >= inputs => Err(format!("input row {last} of {inputs} argument rows")),
        _ => Ok(UInt32Array::from(numbers)),
    }
}
