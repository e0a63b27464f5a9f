//! Entries to Arrow: only the columns that are asked for.

use super::pages::Entry;
use arrow::array::{
    ArrayRef, BinaryBuilder, MapBuilder, MapFieldNames, RecordBatch, RecordBatchOptions, StringBuilder,
    TimestampMicrosecondArray,
};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use std::collections::HashSet;
use std::sync::Arc;

/// How many rows a batch has at most.
const BATCH_ROWS: usize = 8192;
/// After so many bytes a batch is full, too: its columns have 32-bit offsets.
const BATCH_BYTES: usize = 16 << 20;
/// Among so few names one is found by looking at them all.
const FEW: usize = 16;

/// Why an entry did not become a row.
#[derive(Debug)]
pub(super) enum BadEntry {
    /// It holds what no row can.
    Malformed(String),
    /// It does not fit what rows are made of.
    Arrow(ArrowError),
}

impl From<ArrowError> for BadEntry {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

/// The fields of entries.
enum Fields {
    Text(MapBuilder<StringBuilder, StringBuilder>),
    Binary(MapBuilder<StringBuilder, BinaryBuilder>),
}

impl Fields {
    fn new(has_binary_values: bool) -> Self {
        let names = || Some(MapFieldNames { entry: "entries".into(), key: "key".into(), value: "value".into() });
        match has_binary_values {
            true => Self::Binary(MapBuilder::new(names(), StringBuilder::new(), BinaryBuilder::new())),
            false => Self::Text(MapBuilder::new(names(), StringBuilder::new(), StringBuilder::new())),
        }
    }

    fn append(&mut self, entry: &Entry) -> Result<usize, BadEntry> {
        let mut bytes = 0;
        for (name, value) in last_of_each(&entry.fields) {
            bytes += name.len() + value.len();
            let key = std::str::from_utf8(name).map_err(|_| {
                BadEntry::Malformed(format!("the name of field `{}` is not UTF-8", String::from_utf8_lossy(name)))
            })?;
            match self {
                Self::Binary(map) => {
                    map.keys().append_value(key);
                    map.values().append_value(value);
                }
                Self::Text(map) => {
                    let value = std::str::from_utf8(value).map_err(|_| {
                        let way_out = "set `fieldValues` to binary, and cast in the query what is text";
                        BadEntry::Malformed(format!("the value of field `{key}` is not UTF-8; {way_out}"))
                    })?;
                    map.keys().append_value(key);
                    map.values().append_value(value);
                }
            }
        }
        match self {
            Self::Text(map) => map.append(true)?,
            Self::Binary(map) => map.append(true)?,
        }
        Ok(bytes)
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(map) => Arc::new(map.finish()),
            Self::Binary(map) => Arc::new(map.finish()),
        }
    }
}

/// Names and values of fields; of a name that comes more than once, the last.
fn last_of_each(fields: &[Vec<u8>]) -> Vec<(&[u8], &[u8])> {
    let pairs = fields.chunks_exact(2).map(|pair| (pair[0].as_slice(), pair[1].as_slice()));
    let mut found: Vec<(&[u8], &[u8])> = Vec::with_capacity(fields.len() / 2);
    let mut seen = HashSet::new();
    for (name, value) in pairs.rev() {
        let is_new = match fields.len() / 2 {
            ..=FEW => found.iter().all(|(other, _)| *other != name),
            _ => seen.insert(name),
        };
        if is_new {
            found.push((name, value));
        }
    }
    found.reverse();
    found
}

/// Builders of the projected columns for the entries of one stream.
pub(super) struct Columns {
    schema: SchemaRef,
    projection: Vec<usize>,
    stream: String,
    rows: usize,
    bytes: usize,
    ids: Option<StringBuilder>,
    times: Option<Vec<Option<i64>>>,
    fields: Option<Fields>,
    batches: Vec<RecordBatch>,
}

impl Columns {
    /// `schema` has the columns of `projection`, which are indexes into the columns of the source.
    pub(super) fn new(schema: &SchemaRef, projection: &[usize], stream: &str, has_binary_values: bool) -> Self {
        let has = |column: usize| projection.contains(&column);
        Self {
            schema: Arc::clone(schema),
            projection: projection.to_vec(),
            stream: stream.to_owned(),
            rows: 0,
            bytes: 0,
            ids: has(1).then(StringBuilder::new),
            times: has(2).then(Vec::new),
            fields: has(3).then(|| Fields::new(has_binary_values)),
            batches: Vec::new(),
        }
    }

    /// Adds an entry.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), BadEntry> {
        if let Some(fields) = &mut self.fields {
            self.bytes += fields.append(entry)?;
        }
        if let Some(ids) = &mut self.ids {
            ids.append_value(entry.id.to_string());
        }
        if let Some(times) = &mut self.times {
            times.push(entry.id.micros());
        }
        self.rows += 1;
        if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.cut()?;
        }
        Ok(())
    }

    /// Makes a batch of what was added since the last one.
    fn cut(&mut self) -> Result<(), ArrowError> {
        if self.rows == 0 {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let projection = std::mem::take(&mut self.projection);
        let columns = projection.iter().map(|column| self.column(*column, rows)).collect::<Result<_, ArrowError>>();
        self.projection = projection;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        self.batches.push(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns?, &options)?);
        Ok(())
    }

    /// All batches.
    pub(super) fn finish(mut self) -> Result<Vec<RecordBatch>, ArrowError> {
        self.cut()?;
        Ok(self.batches)
    }

    fn column(&mut self, column: usize, rows: usize) -> Result<ArrayRef, ArrowError> {
        let missing = || ArrowError::InvalidArgumentError(format!("column {column} is not one of a stream"));
        Ok(match column {
            0 => {
                let mut streams = StringBuilder::with_capacity(rows, rows * self.stream.len());
                (0..rows).for_each(|_| streams.append_value(&self.stream));
                Arc::new(streams.finish())
            }
            1 => Arc::new(self.ids.as_mut().ok_or_else(missing)?.finish()),
            2 => {
                let times = std::mem::take(self.times.as_mut().ok_or_else(missing)?);
                Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"))
            }
            3 => self.fields.as_mut().ok_or_else(missing)?.finish(),
            _ => return Err(missing()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Schema;
    use millstream_common::Options;

    fn schema(is_binary: bool) -> SchemaRef {
        let options = Options::new().with("url", "redis://x").with("stream", "s");
        let options = options.with("fieldValues", if is_binary { "binary" } else { "string" });
        let spec = crate::SourceSpec { name: "t".into(), format: "redis".into(), schema: None, options };
        super::super::config::RedisConfig::new(&spec, false).unwrap().schema()
    }

    fn entry(id: &str, fields: &[&[u8]]) -> Entry {
        Entry { id: id.parse().unwrap(), fields: fields.iter().map(|part| part.to_vec()).collect() }
    }

    fn build(projection: &[usize], is_binary: bool, entries: &[Entry]) -> Result<Vec<RecordBatch>, BadEntry> {
        let schema: SchemaRef = Arc::new(Schema::project(&schema(is_binary), projection).unwrap());
        let mut columns = Columns::new(&schema, projection, "s", is_binary);
        for entry in entries {
            columns.append(entry)?;
        }
        Ok(columns.finish()?)
    }

    #[test]
    fn an_entry_has_its_stream_id_time_and_fields() {
        let entries = [entry("7-1", &[b"a", b"1", b"b", b"", b"a", b"2"]), entry("18446744073709551615-0", &[])];
        let batches = build(&[0, 1, 2, 3], false, &entries).unwrap();
        let lines = crate::contract::lines(&batches[0]);
        assert_eq!(lines, ["s|7-1|1970-01-01T00:00:00.007|{b: , a: 2}", "s|18446744073709551615-0|-|{}"]);
        let batches = build(&[3], true, &[entry("7-1", &[b"a", b"\xff"])]).unwrap();
        assert_eq!(crate::contract::lines(&batches[0]), ["{a: ff}"]);
    }

    #[test]
    fn what_is_not_utf_8_is_named_unless_nobody_asks_for_it() {
        let bad = [entry("7-1", &[b"good", b"1", b"bad", b"\xff"])];
        let Err(BadEntry::Malformed(reason)) = build(&[3], false, &bad) else { unreachable!() };
        assert!(reason.contains("field `bad`") && reason.contains("fieldValues"), "{reason}");
        assert_eq!(build(&[1], false, &bad).unwrap()[0].num_rows(), 1);
        let Err(BadEntry::Malformed(reason)) = build(&[3], true, &[entry("1-0", &[b"\xff", b""])]) else {
            unreachable!()
        };
        assert!(reason.contains("name of field"), "{reason}");
    }

    #[test]
    fn rows_are_counted_without_columns_and_large_entries_end_a_batch_early() {
        let small: Vec<Entry> = (1..20_000).map(|ms| entry(&ms.to_string(), &[b"a", b"1"])).collect();
        let sizes = |batches: Vec<RecordBatch>| batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>();
        assert_eq!(sizes(build(&[], false, &small).unwrap()), [8192, 8192, 3615]);
        let large = vec![b'x'; 9 << 20];
        let large: Vec<Entry> = (1..4).map(|ms| entry(&ms.to_string(), &[b"a", &large])).collect();
        assert_eq!(sizes(build(&[3], false, &large).unwrap()), [2, 1]);
        assert!(build(&[0], false, &[]).unwrap().is_empty());
    }

    #[test]
    fn of_many_fields_of_a_name_the_last_counts() {
        let names: Vec<Vec<u8>> = (0..100_000).flat_map(|n| [b"same".to_vec(), n.to_string().into_bytes()]).collect();
        assert_eq!(last_of_each(&names), [(b"same".as_slice(), b"99999".as_slice())]);
    }
}
