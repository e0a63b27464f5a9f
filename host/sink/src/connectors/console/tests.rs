use super::*;
use crate::contract::{Subject, sink};
use crate::{SinkBatch, SinkContext, SinkFactory, SinkSpec};
use arrow::array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::Int32Type;
use arrow::datatypes::{DataType, Field};
use millstream_common::{BatchId, ManualClock, Options, OutputMode, QueryId, StopSignal};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn spec(options: Options) -> SinkSpec {
    SinkSpec { format: "console".into(), options }
}

fn context() -> SinkContext {
    let query = QueryId(uuid::Uuid::from_u128(1));
    SinkContext { query, query_name: None, clock: Arc::new(ManualClock::at(0)), stop: StopSignal::new() }
}

/// What a batch looks like on the screen.
fn shown(columns: Vec<(&str, ArrayRef)>, options: Options) -> String {
    let screen = Screen::default();
    let theirs = screen.clone();
    let factory = ConsoleSinkFactory::new(move || Box::new(theirs.clone()));
    let mut sink = factory.open(&spec(options), context()).unwrap();
    let rows = vec![RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap()];
    let batch = SinkBatch { id: BatchId(3), schema: &rows[0].schema(), rows: &rows, mode: OutputMode::Append };
    sink.add_batch(&batch).unwrap();
    let bytes = screen.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

/// The table without the headline and the blank line.
fn table(columns: Vec<(&str, ArrayRef)>, options: Options) -> String {
    let text = shown(columns, options);
    text.split_once("Batch: 3\n").unwrap().1.split_once('\n').unwrap().1.strip_suffix('\n').unwrap().to_owned()
}

fn strings(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn console_keeps_the_contract() {
    let query = QueryId(uuid::Uuid::from_u128(1));
    let factory = Arc::new(ConsoleSinkFactory::new(|| Box::new(io::sink())));
    sink(&mut Subject { factory, spec: spec(Options::new()), query, written: None, counts_once: false });
}

#[test]
fn a_batch_has_a_headline_a_table_and_a_blank_line() {
    let columns =
        vec![("value", strings(&["apache", "spark"])), ("count", Arc::new(Int64Array::from(vec![1, 22])) as ArrayRef)];
    assert_eq!(
        shown(columns.clone(), Options::new()),
        "-------------------------------------------\n\
         Batch: 3\n\
         -------------------------------------------\n\
         +------+-----+\n\
         | value|count|\n\
         +------+-----+\n\
         |apache|    1|\n\
         | spark|   22|\n\
         +------+-----+\n\n"
    );
    assert_eq!(
        table(columns, Options::new().with("truncate", "false")),
        "+------+-----+\n|value |count|\n+------+-----+\n|apache|1    |\n|spark |22   |\n+------+-----+\n"
    );
}

#[test]
fn no_rows_are_a_table_too_and_many_are_cut() {
    assert_eq!(table(vec![("a", strings(&[]))], Options::new()), "+---+\n|  a|\n+---+\n+---+\n");
    let three = vec![("a", strings(&["x", "y", "z"]))];
    assert_eq!(
        table(three.clone(), Options::new().with("numRows", "2")),
        "+---+\n|  a|\n+---+\n|  x|\n|  y|\n+---+\nonly showing top 2 rows\n"
    );
    assert!(table(three, Options::new().with("numRows", "1")).ends_with("only showing top 1 row\n"));
}

#[test]
fn long_cells_are_cut_and_control_characters_escaped() {
    let long = "abcdefghijklmnopqrstuvwxyz";
    let cut = table(vec![("v", strings(&[long, "a\nb"]))], Options::new());
    assert!(cut.contains("|abcdefghijklmnopq...|\n|                a\\nb|\n"), "{cut}");
    let three = table(vec![("v", strings(&[long]))], Options::new().with("truncate", "3"));
    assert!(three.contains("|abc|"), "{three}");
    let whole = table(vec![("v", strings(&[long, "a"]))], Options::new().with("truncate", "false"));
    assert!(whole.contains(&format!("|{long}|\n|a{}|", " ".repeat(25))), "{whole}");
}

#[test]
fn wide_characters_take_two_places() {
    assert_eq!(
        table(vec![("v", strings(&["中文", "ab"]))], Options::new()),
        "+----+\n|   v|\n+----+\n|中文|\n|  ab|\n+----+\n"
    );
}

#[test]
fn values_of_every_kind_have_sparks_form() {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    maps.keys().append_value("a");
    maps.values().append_value(1);
    maps.keys().append_value("b");
    maps.values().append_null();
    maps.append(true).unwrap();
    maps.append(false).unwrap();
    let structs = StructArray::from(vec![
        (Arc::new(Field::new("x", DataType::Int32, true)), Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef),
        (Arc::new(Field::new("y", DataType::Utf8, true)), strings(&["q", "r"])),
    ]);
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None, Some(3)]), None]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("d", Arc::new(Float64Array::from(vec![1e10, -0.5]))),
        ("c", Arc::new(Decimal128Array::from(vec![1250, -5]).with_precision_and_scale(7, 2).unwrap())),
        ("bin", Arc::new(BinaryArray::from(vec![&b"fo"[..], b""]))),
        ("day", Arc::new(Date32Array::from(vec![19_844, 0]))),
        ("ts", Arc::new(TimestampMicrosecondArray::from(vec![1_714_564_800_250_000, 0]).with_timezone("UTC"))),
        ("l", Arc::new(lists)),
        ("s", Arc::new(structs)),
        ("m", Arc::new(maps.finish())),
    ];
    let text = table(columns, Options::new().with("truncate", "100"));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(
        rows[1],
        [
            "true",
            "1.0E10",
            "12.50",
            "[66 6F]",
            "2024-05-01",
            "2024-05-01 12:00:00.25",
            "[1, NULL, 3]",
            "{1, q}",
            "{a -> 1, b -> NULL}"
        ]
    );
    assert_eq!(
        rows[2],
        ["NULL", "-0.5", "-0.05", "[]", "1970-01-01", "1970-01-01 00:00:00", "NULL", "{NULL, r}", "NULL"]
    );
}

#[test]
fn a_closed_screen_is_an_error_not_a_crash() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sink = ConsoleSinkFactory::new(|| Box::new(Closed)).open(&spec(Options::new()), context()).unwrap();
    let schema = crate::contract::schema();
    let batch = SinkBatch { id: BatchId(7), schema: &schema, rows: &[], mode: OutputMode::Append };
    assert_eq!(sink.add_batch(&batch).unwrap_err().to_string(), "sink `console` cannot write `the console` in batch 7");
}

#[test]
fn options_are_checked() {
    for (name, value) in [("numRows", "-1"), ("truncate", "maybe"), ("rows", "1")] {
        let error = ConsoleSinkFactory::stdout().check(&spec(Options::new().with(name, value))).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}
