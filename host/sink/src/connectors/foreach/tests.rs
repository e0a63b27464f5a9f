use super::*;
use crate::contract::{Subject, schema, sink};
use crate::{SinkBatch, SinkContext, SinkFactory, SinkSpec};
use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use millstream_common::{BatchId, ManualClock, Options, OutputMode, QueryId, StopSignal};
use std::error::Error;
use std::sync::{Arc, Mutex};

type Failure = Box<dyn Error + Send + Sync>;

/// Writes down what is called; fails at the value `bad`, panics at `worse`.
#[derive(Clone, Default)]
struct Diary {
    calls: Arc<Mutex<Vec<String>>>,
    skips: bool,
    cannot_open: bool,
}

impl Diary {
    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

impl ForeachWriter for Diary {
    fn open(&mut self, partition: u32, batch: BatchId) -> Result<bool, Failure> {
        self.note(format!("open {partition} {batch}"));
        if self.cannot_open { Err("no way in".into()) } else { Ok(!self.skips) }
    }

    #[allow(clippy::panic, reason = "the test is about it")]
    fn process(&mut self, row: Row<'_>) -> Result<(), Failure> {
        match row.get_string("value")? {
            Some("bad") => Err("a bad row".into()),
            Some("worse") => panic!("a worse row"),
            other => {
                self.note(other.unwrap_or("null").to_owned());
                Ok(())
            }
        }
    }

    fn close(&mut self, error: Option<&(dyn Error + Send + Sync)>) -> Result<(), Failure> {
        self.note(format!("close {}", error.map_or("well".to_owned(), ToString::to_string)));
        Ok(())
    }
}

fn write(diary: &Diary, values: &[&str]) -> Result<u64, String> {
    let spec = SinkSpec { format: "foreach".into(), options: Options::new() };
    let query = QueryId(uuid::Uuid::from_u128(1));
    let context = SinkContext { query, query_name: None, clock: Arc::new(ManualClock::at(0)), stop: StopSignal::new() };
    let mut sink = ForeachFactory::new(diary.clone()).open(&spec, context).unwrap();
    let schema = schema();
    let rows = [RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(StringArray::from(values.to_vec()))]).unwrap()];
    let batch = SinkBatch { id: BatchId(3), schema: &schema, rows: &rows, mode: OutputMode::Append };
    sink.add_batch(&batch).map(|report| report.rows).map_err(|error| millstream_common::describe_chain(&error))
}

#[test]
fn foreach_keeps_the_contract() {
    let diary = Diary::default();
    let read = diary.clone();
    sink(&mut Subject {
        factory: Arc::new(ForeachFactory::new(diary)),
        spec: SinkSpec { format: "foreach".into(), options: Options::new() },
        query: QueryId(uuid::Uuid::from_u128(1)),
        written: Some(&mut || {
            let calls = read.calls.lock().unwrap();
            calls.iter().filter(|call| !call.starts_with("open") && !call.starts_with("close")).cloned().collect()
        }),
        counts_once: false,
    });
}

#[test]
fn a_writer_is_opened_given_each_row_and_closed() {
    let diary = Diary::default();
    assert_eq!(write(&diary, &["a", "b"]), Ok(2));
    assert_eq!(diary.take(), ["open 0 3", "a", "b", "close well"]);
    assert_eq!(write(&diary, &[]), Ok(0));
    assert_eq!(diary.take(), ["open 0 3", "close well"]);
}

#[test]
fn a_writer_that_skips_is_closed_without_rows() {
    let diary = Diary { skips: true, ..Diary::default() };
    assert_eq!(write(&diary, &["a"]), Ok(0));
    assert_eq!(diary.take(), ["open 0 3", "close well"]);
}

#[test]
fn a_failed_row_or_a_panic_closes_with_the_error_and_fails_the_batch() {
    let diary = Diary::default();
    assert!(write(&diary, &["a", "bad", "b"]).unwrap_err().contains("a bad row"));
    assert_eq!(diary.take(), ["open 0 3", "a", "close a bad row"]);
    assert!(write(&diary, &["worse"]).unwrap_err().contains("it panicked: a worse row"));
    assert_eq!(diary.take(), ["open 0 3", "close it panicked: a worse row"]);
}

#[test]
fn a_writer_that_cannot_open_is_not_closed() {
    let diary = Diary { cannot_open: true, ..Diary::default() };
    assert!(write(&diary, &["a"]).unwrap_err().contains("no way in"));
    assert_eq!(diary.take(), ["open 0 3"]);
}

#[test]
fn values_of_a_row_come_by_name_and_type() {
    let batch = RecordBatch::try_from_iter([
        ("n", Arc::new(Int32Array::from(vec![Some(4), None])) as ArrayRef),
        ("x", Arc::new(Float64Array::from(vec![0.5, 1.5])) as ArrayRef),
    ])
    .unwrap();
    let (first, second) = (Row::new(&batch, 0), Row::new(&batch, 1));
    assert_eq!((first.get_long("n"), second.get_long("n")), (Ok(Some(4)), Ok(None)));
    assert_eq!((second.get_double("x"), second.is_null_at("n")), (Ok(Some(1.5)), Ok(true)));
    assert!(matches!(first.get_string("n"), Err(RowError::Type { .. })));
    assert_eq!(first.get_long("m").unwrap_err().to_string(), "there is no column `m`; there are n, x");
}
