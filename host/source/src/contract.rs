//! What every source must do, as one test to run on each connector.
//!
//! [`source`] opens the connector, feeds it, reads ranges in every way the runtime may, restarts it over the
//! same checkpoint folder, and panics with a sentence when a promise of [`Source`] is broken.

use crate::{Offset, Source, SourceContext, SourceError, SourceFactory, SourceSpec};
use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use millstream_common::{DurableFiles, ManualClock, MemoryFiles, ReadLimit, StopSignal};
use std::sync::Arc;
use std::time::Duration;

/// A connector under test.
pub struct Subject<'a> {
    /// What opens it.
    pub factory: Arc<dyn SourceFactory>,
    /// What a user would say.
    pub spec: SourceSpec,
    /// Makes new rows available, a few each time, and moves the clock if that is what it takes.
    pub feed: &'a mut dyn FnMut(),
    /// The clock that the connector sees.
    pub clock: Arc<ManualClock>,
    /// Whether a range can be read again after a restart.
    pub replays_after_restart: bool,
}

/// Runs the suite.
///
/// # Panics
/// When the connector breaks a promise.
pub fn source(subject: &mut Subject<'_>) {
    let files = Arc::new(MemoryFiles::default());
    let mut source = open(subject, &files);
    let schema = subject.factory.schema(&subject.spec).expect("the factory told the schema before");
    assert_eq!(source.schema(), schema, "the source has the schema that its factory announced");
    assert!(schema.fields().iter().all(|field| field.is_nullable()), "all columns are nullable");
    assert!(!source.description().is_empty(), "the description says something");

    let first = advance(subject, source.as_mut(), None);
    let second = advance(subject, source.as_mut(), Some(&first));
    let head = rows(source.as_mut(), None, &first);
    let tail = rows(source.as_mut(), Some(&first), &second);
    assert!(!head.is_empty() && !tail.is_empty(), "new offsets bring rows");
    assert_eq!(head, rows(source.as_mut(), None, &first), "a range gives the same rows again");
    assert_eq!(tail, rows(source.as_mut(), Some(&first), &second), "a later range gives the same rows again");
    let mut both = [head, tail.clone()].concat();
    both.sort();
    assert_eq!(both, rows(source.as_mut(), None, &second), "ranges add up to the whole");
    assert!(rows(source.as_mut(), Some(&second), &second).is_empty(), "an empty range is empty");

    projections(source.as_mut(), Some(&first), &second);
    foreign_offsets(source.as_mut());

    source.release(&first).expect("releasing a committed range works");
    assert_eq!(tail, rows(source.as_mut(), Some(&first), &second), "what comes after a release is still there");
    source.stop();
    source.stop();
    drop(source);

    let mut source = open(subject, &files);
    if subject.replays_after_restart {
        assert_eq!(tail, rows(source.as_mut(), Some(&first), &second), "a restart reads a logged range again");
    } else {
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        let lost = source.read(Some(&first), &second, &all);
        assert!(matches!(lost, Err(SourceError::Lost { .. })), "a range that is gone is reported as lost");
    }
    let third = advance(subject, source.as_mut(), Some(&second));
    assert!(!rows(source.as_mut(), Some(&second), &third).is_empty(), "a restarted source goes on");
    source.stop();
    drop(source);

    available_now(subject, &files, &third);
}

fn open(subject: &Subject<'_>, files: &Arc<MemoryFiles>) -> Box<dyn Source> {
    let context = SourceContext {
        files: Arc::clone(files) as Arc<dyn DurableFiles>,
        clock: Arc::clone(&subject.clock) as _,
        stop: StopSignal::new(),
        default_parallelism: 2,
    };
    subject.factory.open(&subject.spec, context).expect("a source that could be checked opens")
}

/// Feeds, and waits for an offset beyond `start`.
fn advance(subject: &mut Subject<'_>, source: &mut dyn Source, start: Option<&Offset>) -> Offset {
    // The answer before feeding fixes where a source without memory begins.
    source.latest_offset(start, ReadLimit::AllAvailable).expect("asking for news works");
    (subject.feed)();
    for _ in 0..500 {
        let latest = source.latest_offset(start, ReadLimit::AllAvailable).expect("asking for news works");
        assert!(start.is_none() || latest.is_some(), "an offset is never taken back");
        if let Some(latest) = latest.filter(|latest| Some(latest) != start) {
            return latest;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    unreachable!("fed rows become available within five seconds");
}

fn available_now(subject: &mut Subject<'_>, files: &Arc<MemoryFiles>, start: &Offset) {
    let mut source = open(subject, files);
    source.prepare_available_now().expect("what is available can be fixed");
    let mut end = start.clone();
    for _ in 0..100 {
        let next = source.latest_offset(Some(&end), source.read_limit()).expect("asking for news works");
        let next = next.expect("an offset is never taken back");
        if next == end {
            break;
        }
        end = next;
    }
    (subject.feed)();
    subject.clock.advance(Duration::from_secs(60));
    std::thread::sleep(Duration::from_millis(50));
    let later = source.latest_offset(Some(&end), ReadLimit::AllAvailable).expect("asking for news works");
    assert_eq!(later, Some(end), "what came after everything available was fixed waits for the next run");
    source.stop();
}

fn projections(source: &mut dyn Source, start: Option<&Offset>, end: &Offset) {
    let schema = source.schema();
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    let whole = source.read(start, end, &all).expect("a range can be read");
    let count = |lists: &[Vec<RecordBatch>]| -> usize { lists.iter().flatten().map(RecordBatch::num_rows).sum() };
    let none = source.read(start, end, &[]).expect("a range can be read without columns");
    assert_eq!(count(&none), count(&whole), "rows are counted without columns");
    for column in all {
        let one = source.read(start, end, &[column]).expect("a range can be read by one column");
        for batch in one.iter().flatten() {
            assert_eq!(batch.schema().fields().as_ref(), &[Arc::clone(&schema.fields()[column])][..]);
        }
        let cut: Vec<Vec<RecordBatch>> = whole
            .iter()
            .map(|list| list.iter().map(|batch| batch.project(&[column]).expect("the column is there")).collect())
            .collect();
        assert_eq!(text(&one), text(&cut), "a projection changes no value");
    }
}

fn foreign_offsets(source: &mut dyn Source) {
    let foreign = Offset(serde_json::json!({ "somebody": "else" }));
    let asked = source.latest_offset(Some(&foreign), ReadLimit::AllAvailable);
    assert!(matches!(asked, Err(SourceError::ForeignOffset { .. })), "a foreign offset is refused: {asked:?}");
    let read = source.read(None, &foreign, &[]);
    assert!(matches!(read, Err(SourceError::ForeignOffset { .. })), "a foreign offset is refused in a range");
}

/// The rows of a range as sorted text.
fn rows(source: &mut dyn Source, start: Option<&Offset>, end: &Offset) -> Vec<String> {
    let all: Vec<usize> = (0..source.schema().fields().len()).collect();
    text(&source.read(start, end, &all).expect("a range can be read"))
}

/// All rows as text, sorted.
pub fn text(lists: &[Vec<RecordBatch>]) -> Vec<String> {
    let mut rows: Vec<String> = lists.iter().flatten().flat_map(lines).collect();
    rows.sort();
    rows
}

/// The rows of a batch as text: cells joined by `|`, null as `-`, times in UTC without a zone.
pub fn lines(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("-");
    let columns: Vec<ArrayRef> = batch
        .columns()
        .iter()
        .map(|column| match column.as_primitive_opt::<TimestampMicrosecondType>() {
            Some(times) => Arc::new(times.clone().with_timezone_opt(None::<Arc<str>>)),
            None => Arc::clone(column),
        })
        .collect();
    let columns: Vec<_> = columns
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).expect("every type has a text form"))
        .collect();
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|"))
        .collect()
}
