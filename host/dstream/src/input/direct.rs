//! What the rows of sources become, and how inputs are named.

use super::Record;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use millstream_common::Options;
use millstream_source::SourceError;

/// What a direct stream is told beside its format.
#[derive(Debug, Clone, Default)]
pub struct DirectOptions {
    /// The name of the input; by default `FORMAT`, with a number from the second on.
    pub name: Option<String>,
    /// The columns, for sources that want them declared.
    pub schema: Option<SchemaRef>,
    /// The options of the source.
    pub options: Options,
}

impl DirectOptions {
    /// Of options alone.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }
}

/// The first column, which is text; a line that is missing is left out.
pub(crate) fn value_lines(name: &str, part: Vec<RecordBatch>) -> Result<Vec<String>, SourceError> {
    let mut lines = Vec::new();
    for batch in part {
        let column = batch.columns().first().and_then(|column| column.as_string_opt::<i32>());
        let Some(column) = column else {
            let reason = "its first column is no text".to_owned();
            return Err(SourceError::Schema { name: name.to_owned(), reason });
        };
        lines.extend((0..column.len()).filter(|at| column.is_valid(*at)).map(|at| column.value(at).to_owned()));
    }
    Ok(lines)
}

/// Rows as they are.
pub(crate) fn record_rows(_name: &str, part: Vec<RecordBatch>) -> Result<Vec<Record>, SourceError> {
    Ok(part.into_iter().flat_map(Record::all).collect())
}
