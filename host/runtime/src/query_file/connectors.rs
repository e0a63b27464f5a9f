//! Sources, tables and the sink of a query file.

use super::raw::{RawOptions, RawSink, RawSource, RawTable, RawWatermark};
use super::text::SourceText;
use super::{Origin, QueryFileError, Value};
use crate::{StreamSpec, TableSpec};
use arrow::datatypes::{Schema, SchemaRef};
use millstream_common::{Options, describe_chain, duration};
use millstream_plan::{DropDuplicates, EventTime, ddl};
use millstream_sink::SinkSpec;
use millstream_source::SourceSpec;
use std::sync::Arc;
use toml::Spanned;

/// Connectors whose paths are files.
const OF_FILES: [&str; 7] = ["file", "text", "json", "csv", "parquet", "avro", "orc"];
/// Their options that are paths.
const PATHS: [&str; 3] = ["path", "basePath", "sourceArchiveDir"];
/// The longest name of a stream or table.
const NAME: usize = 128;

/// A stream.
pub(super) fn stream(
    text: &SourceText,
    raw: &Spanned<RawSource>,
    values: &mut Vec<Value>,
) -> Result<StreamSpec, QueryFileError> {
    let source = raw.get_ref();
    let input =
        Input { text, kind: "source", raw_name: &source.name, format: &source.format, place: text.place_of(raw) };
    let spec = input.spec(&source.schema, &source.options, values)?;
    let event_time = match &source.watermark {
        None => None,
        Some(raw) => Some(watermark(text, &spec, raw, values)?),
    };
    let drop_duplicates = source.drop_duplicates.as_ref().map(|spanned| {
        let raw = spanned.get_ref();
        let columns: Vec<String> = raw.columns.iter().map(|column| column.get_ref().clone()).collect();
        let shown = if columns.is_empty() { "all columns".to_owned() } else { columns.join(", ") };
        let within = if raw.within_watermark { " within the watermark" } else { "" };
        let origin = Origin::QueryFile(text.place_of(spanned));
        values.push(Value::new(format!("source.{}.drop_duplicates", spec.name), format!("{shown}{within}"), origin));
        DropDuplicates { columns, within_watermark: raw.within_watermark }
    });
    Ok(StreamSpec { source: spec, event_time, drop_duplicates })
}

/// A static table.
pub(super) fn table(
    text: &SourceText,
    raw: &Spanned<RawTable>,
    values: &mut Vec<Value>,
) -> Result<TableSpec, QueryFileError> {
    let table = raw.get_ref();
    let input = Input { text, kind: "table", raw_name: &table.name, format: &table.format, place: text.place_of(raw) };
    Ok(TableSpec::Files(input.spec(&table.schema, &table.options, values)?))
}

/// The sink of late rows, if there is one.
pub(super) fn late_rows(
    text: &SourceText,
    raw: &Option<Spanned<RawSink>>,
    values: &mut Vec<Value>,
) -> Result<Option<SinkSpec>, QueryFileError> {
    let Some(raw) = raw else { return Ok(None) };
    let sink = raw.get_ref();
    let format = sink.format.as_ref().ok_or_else(|| QueryFileError::Missing {
        place: text.place_of(raw),
        key: "late_rows.format".into(),
        hint: "write `format = \"json\"` and `options = { path = \"late\" }`".into(),
    })?;
    values.push(Value::new("late_rows.format", format.get_ref(), Origin::QueryFile(text.place_of(format))));
    let options = options(text, "late_rows.options", format.get_ref(), &sink.options, values);
    Ok(Some(SinkSpec { format: format.get_ref().clone(), options }))
}

/// The sink, without the option that names the checkpoint.
pub(super) fn sink(
    text: &SourceText,
    raw: &Option<Spanned<RawSink>>,
    values: &mut Vec<Value>,
) -> Result<(SinkSpec, Option<(String, Origin)>), QueryFileError> {
    let missing = |place, key: &str| QueryFileError::Missing {
        place,
        key: key.into(),
        hint: "write `[sink]` and `format = \"console\"`, `parquet`, `json`, …".into(),
    };
    let raw = raw.as_ref().ok_or_else(|| missing(text.place(), "sink"))?;
    let sink = raw.get_ref();
    let format = sink.format.as_ref().ok_or_else(|| missing(text.place_of(raw), "sink.format"))?;
    values.push(Value::new("sink.format", format.get_ref(), Origin::QueryFile(text.place_of(format))));
    let options = options(text, "sink.options", format.get_ref(), &sink.options, values);
    let checkpoint = crate::query::checkpoint_option(&options).map(|place| {
        let origin = values.iter().rfind(|value| value.name.eq_ignore_ascii_case("sink.options.checkpointLocation"));
        (text.resolve(&place), origin.map_or(Origin::QueryFile(text.place()), |value| value.origin.clone()))
    });
    let options = crate::query::without_checkpoint(&options);
    Ok((SinkSpec { format: format.get_ref().clone(), options }, checkpoint))
}

/// What streams and tables have in common.
struct Input<'a> {
    text: &'a SourceText,
    kind: &'static str,
    raw_name: &'a Option<Spanned<String>>,
    format: &'a Option<Spanned<String>>,
    place: super::Place,
}

impl Input<'_> {
    fn spec(
        &self,
        schema: &Option<Spanned<String>>,
        raw_options: &RawOptions,
        values: &mut Vec<Value>,
    ) -> Result<SourceSpec, QueryFileError> {
        let text = self.text;
        let raw_name = self.required("name", self.raw_name, "give it the name that the SQL uses")?;
        let name = raw_name.get_ref().clone();
        if name.is_empty() || name.len() > NAME || name.chars().any(char::is_control) {
            let reason = format!("a name has 1 to {NAME} printable characters");
            return Err(text.invalid(raw_name, format!("{}.name", self.kind), &name, reason));
        }
        let format = self.required("format", self.format, "name the connector: json, csv, socket, rate, …")?;
        let key = |of: &str| format!("{}.{name}.{of}", self.kind);
        let origin = |of: &Spanned<String>| Origin::QueryFile(text.place_of(of));
        values.push(Value::new(key("format"), format.get_ref(), origin(format)));
        if let Some(schema) = schema {
            values.push(Value::new(key("schema"), schema.get_ref(), origin(schema)));
        }
        let schema = schema.as_ref().map(|raw| columns(text, &key("schema"), raw)).transpose()?;
        let options = options(text, &key("options"), format.get_ref(), raw_options, values);
        Ok(SourceSpec { name, format: format.get_ref().clone(), schema, options })
    }

    fn required<'a, T>(&self, key: &str, raw: &'a Option<T>, hint: &str) -> Result<&'a T, QueryFileError> {
        raw.as_ref().ok_or_else(|| QueryFileError::Missing {
            place: self.place.clone(),
            key: format!("{}.{key}", self.kind),
            hint: hint.into(),
        })
    }
}

fn columns(text: &SourceText, key: &str, raw: &Spanned<String>) -> Result<SchemaRef, QueryFileError> {
    let fields =
        ddl::parse_ddl(raw.get_ref()).map_err(|error| text.invalid(raw, key, raw.get_ref(), describe_chain(&error)))?;
    if fields.is_empty() {
        return Err(text.invalid(
            raw,
            key,
            raw.get_ref(),
            "it has no columns; write for example `id INT, word STRING`",
        ));
    }
    Ok(Arc::new(Schema::new(fields)))
}

fn watermark(
    text: &SourceText,
    spec: &SourceSpec,
    raw: &Spanned<RawWatermark>,
    values: &mut Vec<Value>,
) -> Result<EventTime, QueryFileError> {
    let missing = |key: &str| QueryFileError::Missing {
        place: text.place_of(raw),
        key: format!("source.{}.watermark.{key}", spec.name),
        hint: "write `watermark = { column = \"ts\", delay = \"10 minutes\" }`".into(),
    };
    let watermark = raw.get_ref();
    let column = watermark.column.as_ref().ok_or_else(|| missing("column"))?;
    let delay = watermark.delay.as_ref().ok_or_else(|| missing("delay"))?;
    let key = format!("source.{}.watermark", spec.name);
    let delay_us = duration::parse_micros(delay.get_ref())
        .map_err(|error| error.to_string())
        .and_then(|micros| if micros < 0 { Err("a delay cannot be negative".into()) } else { Ok(micros) })
        .map_err(|reason| text.invalid(delay, format!("{key}.delay"), delay.get_ref(), reason))?;
    values.push(Value::new(
        key,
        format!("{}, {} late", column.get_ref(), delay.get_ref()),
        Origin::QueryFile(text.place_of(raw)),
    ));
    Ok(EventTime { column: column.get_ref().clone(), delay_us })
}

/// Options of a connector; paths of files become absolute.
fn options(text: &SourceText, key: &str, format: &str, raw: &RawOptions, values: &mut Vec<Value>) -> Options {
    let is_of_files = OF_FILES.iter().any(|known| known.eq_ignore_ascii_case(format));
    let mut options = Options::new();
    for (name, value) in &raw.0 {
        let is_path = is_of_files && PATHS.iter().any(|path| path.eq_ignore_ascii_case(name));
        let written = &value.get_ref().0;
        let resolved = if is_path { text.resolve(written) } else { written.clone() };
        values.push(Value::new(format!("{key}.{name}"), &*resolved, Origin::QueryFile(text.place_of(value))));
        options.set(name, resolved);
    }
    options
}
