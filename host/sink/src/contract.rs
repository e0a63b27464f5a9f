//! What every sink must do, as one test to run on each connector.
//!
//! [`sink`] opens the connector, writes batches, writes some of them again with and without a restart, and
//! panics with a sentence when a promise of [`Sink`] is broken.

use crate::{Sink, SinkBatch, SinkContext, SinkError, SinkFactory, SinkSpec};
use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use millstream_common::{BatchId, ManualClock, OutputMode, QueryId, StopSignal};
use std::sync::Arc;

/// A connector under test.
pub struct Subject<'a> {
    /// What opens it.
    pub factory: Arc<dyn SinkFactory>,
    /// What a user would say.
    pub spec: SinkSpec,
    /// The query that writes.
    pub query: QueryId,
    /// The values that a reader of the output sees now; `None` when nobody can read it.
    pub written: Option<&'a mut dyn FnMut() -> Vec<String>>,
    /// Whether a batch that is handed over twice counts once.
    pub counts_once: bool,
}

/// The schema of the rows that the suite writes: `value string`.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("value", DataType::Utf8, true)]))
}

/// Runs the suite.
///
/// # Panics
/// When the connector breaks a promise.
pub fn sink(subject: &mut Subject<'_>) {
    subject.factory.check(&subject.spec).expect("good options pass the check");
    let mut sink = open(subject);
    assert!(!sink.description().is_empty(), "the description says something");

    for mode in [OutputMode::Append, OutputMode::Update, OutputMode::Complete] {
        if !sink.supports(mode) {
            let refused = write_in(sink.as_mut(), 0, &["refused"], mode);
            assert!(matches!(refused, Err(SinkError::Mode { .. })), "mode {mode} is refused: {refused:?}");
        }
    }
    expect(subject, &[]);

    assert_eq!(write(sink.as_mut(), 0, &["a", "b"]), 2, "the report counts the rows");
    expect(subject, &["a", "b"]);
    assert_eq!(write(sink.as_mut(), 1, &[]), 0, "an empty batch is fine");
    assert_eq!(write(sink.as_mut(), 2, &["c"]), 1);
    expect(subject, &["a", "b", "c"]);
    if subject.counts_once {
        assert_eq!(write(sink.as_mut(), 2, &["c"]), 0, "a batch that is there is not written again");
        assert_eq!(write(sink.as_mut(), 1, &["stray"]), 0, "nor is an earlier one, even an empty one");
        expect(subject, &["a", "b", "c"]);
    }
    sink.stop();
    sink.stop();
    drop(sink);

    let mut sink = open(subject);
    if subject.counts_once {
        assert_eq!(write(sink.as_mut(), 2, &["c"]), 0, "nor after a restart");
    }
    assert_eq!(write(sink.as_mut(), 3, &["d"]), 1, "a restarted sink goes on");
    expect(subject, &["a", "b", "c", "d"]);
    sink.stop();
}

fn open(subject: &Subject<'_>) -> Box<dyn Sink> {
    let context = SinkContext {
        query: subject.query,
        query_name: Some("contract".into()),
        clock: Arc::new(ManualClock::at(0)),
        stop: StopSignal::new(),
    };
    subject.factory.open(&subject.spec, context).expect("a sink that passed the check opens")
}

fn write(sink: &mut dyn Sink, batch: u64, values: &[&str]) -> u64 {
    write_in(sink, batch, values, OutputMode::Append).expect("a batch can be written")
}

fn write_in(sink: &mut dyn Sink, batch: u64, values: &[&str], mode: OutputMode) -> Result<u64, SinkError> {
    let schema = schema();
    let column = Arc::new(StringArray::from(values.to_vec()));
    let rows = RecordBatch::try_new(Arc::clone(&schema), vec![column]).expect("the column fits the schema");
    let rows = if values.is_empty() { vec![] } else { vec![rows] };
    let batch = SinkBatch { id: BatchId(batch), schema: &schema, rows: &rows, mode };
    sink.add_batch(&batch).map(|report| report.rows)
}

fn expect(subject: &mut Subject<'_>, values: &[&str]) {
    if let Some(written) = &mut subject.written {
        let mut found = written();
        found.sort();
        assert_eq!(found, values, "a reader sees each row once");
    }
}
