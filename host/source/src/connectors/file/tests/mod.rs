use crate::contract::{Subject, source, text};
use crate::{Offset, Source, SourceContext, SourceError, SourceRegistry, SourceSpec};
use arrow::array::{Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use millstream_common::{DurableFiles, ManualClock, MemoryFiles, Options, ReadLimit, StopSignal};
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Writes a file whose modification time is `seconds` after a fixed day.
fn put(folder: &Path, name: &str, content: &[u8], seconds: u64) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
    File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
}

fn spec(format: &str, folder: &TempDir, options: Options) -> SourceSpec {
    let options =
        if options.get("path").is_some() { options } else { options.with("path", folder.path().to_str().unwrap()) };
    SourceSpec { name: "in".into(), format: format.into(), schema: None, options }
}

fn words() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int32, true), Field::new("word", DataType::Utf8, true)]))
}

fn context(files: &Arc<MemoryFiles>) -> SourceContext {
    SourceContext {
        files: Arc::clone(files) as _,
        clock: Arc::new(ManualClock::at(0)),
        stop: StopSignal::new(),
        default_parallelism: 2,
    }
}

fn try_open(spec: &SourceSpec, files: &Arc<MemoryFiles>) -> Result<Box<dyn Source>, SourceError> {
    let registry = SourceRegistry::with_builtins();
    registry.factory(spec).unwrap().open(spec, context(files))
}

fn open(spec: &SourceSpec) -> (Box<dyn Source>, Arc<MemoryFiles>) {
    let files = Arc::new(MemoryFiles::default());
    (try_open(spec, &files).unwrap(), files)
}

fn next(source: &mut dyn Source, start: Option<&Offset>) -> Option<Offset> {
    let limit = source.read_limit();
    source.latest_offset(start, limit).unwrap()
}

fn all(source: &mut dyn Source, start: Option<&Offset>, end: &Offset) -> Vec<String> {
    let columns: Vec<usize> = (0..source.schema().fields().len()).collect();
    text(&source.read(start, end, &columns).unwrap())
}

/// Takes batches until nothing is new; the rows of each.
fn drain(source: &mut dyn Source) -> Vec<Vec<String>> {
    let (mut start, mut batches) = (None, Vec::new());
    loop {
        let end = next(source, start.as_ref());
        let Some(end) = end.filter(|end| Some(end) != start.as_ref()) else { return batches };
        batches.push(all(source, start.as_ref(), &end));
        start = Some(end);
    }
}

fn contract(format: &str, schema: Option<SchemaRef>, content: impl Fn(u64) -> Vec<u8>) {
    let folder = TempDir::new().unwrap();
    let spec = SourceSpec { schema, ..spec(format, &folder, Options::new()) };
    let registry = SourceRegistry::with_builtins();
    let mut round = 0;
    let mut feed = || {
        round += 1;
        put(folder.path(), &format!("a{round}"), &content(round * 2), round);
        put(folder.path(), &format!("b{round}"), &content(round * 2 + 1), round);
    };
    source(&mut Subject {
        factory: Arc::clone(registry.factory(&spec).unwrap()),
        spec,
        feed: &mut feed,
        clock: Arc::new(ManualClock::at(0)),
        replays_after_restart: true,
    });
}

#[test]
fn text_files_keep_the_contract() {
    contract("text", None, |n| format!("line {n}\nmore {n}").into_bytes());
}

#[test]
fn json_files_keep_the_contract() {
    contract("json", Some(words()), |n| {
        format!("{{\"id\":{n},\"word\":\"w{n}\"}}\n[{{}},{{\"id\":1}}]\nbad\n").into_bytes()
    });
}

#[test]
fn csv_files_keep_the_contract() {
    contract("csv", Some(words()), |n| format!("{n},w{n}\nx,\"a,b\"\n").into_bytes());
}

#[test]
fn parquet_files_keep_the_contract() {
    contract("parquet", Some(words()), |n| parquet_bytes(n as i64));
}

/// A file whose columns have another order, another case and other types than declared.
fn parquet_bytes(n: i64) -> Vec<u8> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("other", DataType::Int32, true),
        Field::new("WORD", DataType::Utf8, true),
        Field::new("id", DataType::Int64, false),
    ]));
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![
            Arc::new(Int32Array::from(vec![7, 8])),
            Arc::new(StringArray::from(vec![Some(format!("w{n}")), None])),
            Arc::new(Int64Array::from(vec![n, -n])),
        ],
    )
    .unwrap();
    let mut bytes = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn parquet_columns_are_found_by_name_and_cast_and_missing_ones_are_null() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "p.parquet", &parquet_bytes(5), 1);
    let schema = Schema::new(vec![
        Field::new("word", DataType::Utf8, true),
        Field::new("absent", DataType::Float64, true),
        Field::new("id", DataType::Int32, true),
    ]);
    let spec = SourceSpec { schema: Some(Arc::new(schema)), ..spec("parquet", &folder, Options::new()) };
    let (mut source, _) = open(&spec);
    assert_eq!(drain(source.as_mut()), [["-|-|-5", "w5|-|5"]]);
    put(folder.path(), "q.parquet", b"no parquet", 2);
    let end = source.latest_offset(Some(&offset(0)), ReadLimit::AllAvailable).unwrap().unwrap();
    let error = source.read(Some(&offset(0)), &end, &[0]).unwrap_err();
    assert!(error.to_string().contains("q.parquet"), "{error}");
}

fn offset(number: i64) -> Offset {
    Offset(serde_json::json!({ "logOffset": number }))
}

#[test]
fn files_come_by_modification_time_then_path_and_limits_cut_them() {
    let folder = TempDir::new().unwrap();
    for (name, seconds) in [("z", 1), ("b", 2), ("a", 2), ("c", 3)] {
        put(folder.path(), name, name.as_bytes(), seconds);
    }
    let batches = |options: Options| drain(open(&spec("text", &folder, options)).0.as_mut());
    assert_eq!(batches(Options::new().with("maxFilesPerTrigger", "1")), [["z"], ["a"], ["b"], ["c"]]);
    assert_eq!(batches(Options::new().with("maxFilesPerTrigger", "3")), [vec!["a", "b", "z"], vec!["c"]]);
    assert_eq!(batches(Options::new().with("maxBytesPerTrigger", "2")), [["a", "z"], ["b", "c"]]);
    assert_eq!(
        batches(Options::new().with("maxFilesPerTrigger", "1").with("latestFirst", "true")),
        [["c"], ["b"], ["a"], ["z"]]
    );
    let uncached = Options::new().with("maxFilesPerTrigger", "1").with("maxCachedFiles", "0");
    assert_eq!(batches(uncached).len(), 4);
    put(folder.path(), "big", b"far too big", 0);
    assert_eq!(batches(Options::new().with("maxBytesPerTrigger", "2"))[0], ["far too big"], "one file is always taken");
}

#[test]
fn hidden_files_filters_folders_and_globs() {
    let folder = TempDir::new().unwrap();
    for name in
        ["a.txt", "b.log", "_tmp", ".hidden", "sub/c.txt", "sub/deep/d.txt", "_sub/e.txt", "x1/f.txt", "x2/g.txt"]
    {
        put(folder.path(), name, name.as_bytes(), 1);
    }
    let rows = |options: Options| drain(open(&spec("text", &folder, options)).0.as_mut()).concat();
    assert_eq!(rows(Options::new()), ["a.txt", "b.log"]);
    assert_eq!(rows(Options::new().with("pathGlobFilter", "*.txt")), ["a.txt"]);
    let deep = Options::new().with("recursiveFileLookup", "true").with("pathGlobFilter", "*.txt");
    assert_eq!(rows(deep), ["a.txt", "sub/c.txt", "sub/deep/d.txt", "x1/f.txt", "x2/g.txt"]);
    let root = folder.path().to_str().unwrap();
    assert_eq!(rows(Options::new().with("path", format!("file://{root}/x*"))), ["x1/f.txt", "x2/g.txt"]);
    assert_eq!(rows(Options::new().with("path", format!("{root}/*.txt"))), ["a.txt"]);
    assert!(rows(Options::new().with("path", format!("{root}/nothing*"))).is_empty());
}

#[test]
fn a_seen_file_is_never_read_again_not_even_after_a_restart() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "a", b"one", 1);
    let spec = spec("text", &folder, Options::new());
    let (mut source, files) = open(&spec);
    assert_eq!(drain(source.as_mut()), [["one"]]);
    put(folder.path(), "a", b"changed", 5);
    assert_eq!(next(source.as_mut(), Some(&offset(0))), Some(offset(0)));
    drop(source);
    let mut source = try_open(&spec, &files).unwrap();
    assert_eq!(next(source.as_mut(), Some(&offset(0))), Some(offset(0)));
    put(folder.path(), "b", b"two", 6);
    assert_eq!(next(source.as_mut(), Some(&offset(0))), Some(offset(1)));
    assert_eq!(all(source.as_mut(), Some(&offset(0)), &offset(1)), ["two"]);
}

#[test]
fn what_was_logged_but_not_made_a_batch_comes_first_after_a_restart() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "a", b"one", 1);
    let spec = spec("text", &folder, Options::new());
    let (mut source, files) = open(&spec);
    next(source.as_mut(), None);
    drop(source);
    put(folder.path(), "b", b"two", 2);
    let mut source = try_open(&spec, &files).unwrap();
    assert_eq!(drain(source.as_mut()), [["one"], ["two"]]);
}

#[test]
fn the_log_is_compacted_and_every_range_stays_readable() {
    let folder = TempDir::new().unwrap();
    for n in 0..25 {
        put(folder.path(), &format!("f{n:02}"), format!("row {n:02}").as_bytes(), n);
    }
    let spec = spec("text", &folder, Options::new().with("maxFilesPerTrigger", "1"));
    let (mut source, files) = open(&spec);
    assert_eq!(drain(source.as_mut()).len(), 25);
    assert_eq!(files.list("").unwrap(), ["19.compact", "20", "21", "22", "23", "24"]);
    drop(source);
    let mut source = try_open(&spec, &files).unwrap();
    assert_eq!(all(source.as_mut(), Some(&offset(3)), &offset(5)), ["row 04", "row 05"]);
    assert_eq!(all(source.as_mut(), Some(&offset(19)), &offset(20)), ["row 20"]);
    assert_eq!(next(source.as_mut(), Some(&offset(24))), Some(offset(24)));
    drop(source);
    files.delete("22").unwrap();
    let error = try_open(&spec, &files).err().unwrap();
    assert_eq!(error.to_string(), "source `in` cannot trust `memory:/23`: entry 22 before it is missing");
}

#[test]
fn a_damaged_log_is_refused_and_a_second_query_is_noticed() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "a", b"one", 1);
    let spec = spec("text", &folder, Options::new());
    let (mut source, files) = open(&spec);
    let mut other = try_open(&spec, &files).unwrap();
    next(source.as_mut(), None);
    let error = other.latest_offset(None, ReadLimit::AllAvailable).unwrap_err();
    assert_eq!(error.to_string(), "source `in` cannot use its log in the checkpoint");
    let error = other.latest_offset(None, ReadLimit::AllAvailable).unwrap_err();
    assert!(matches!(error, SourceError::Log { .. }), "the files are tried again, not lost: {error}");
    let whole = files.get("0").unwrap();
    files.put_over("0", whole.slice(..whole.len() - 5)).unwrap();
    assert!(matches!(try_open(&spec, &files), Err(SourceError::Damaged { .. })));
}

#[test]
fn a_vanished_file_is_named_or_passed_over() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "a", b"one", 1);
    put(folder.path(), "b", b"two", 2);
    let (mut source, _) = open(&spec("text", &folder, Options::new()));
    let end = next(source.as_mut(), None).unwrap();
    fs::remove_file(folder.path().join("a")).unwrap();
    let error = source.read(None, &end, &[0]).unwrap_err();
    assert!(error.to_string().contains("/a` vanished before it was read"), "{error}");

    put(folder.path(), "a", b"one", 1);
    let (mut source, _) = open(&spec("text", &folder, Options::new().with("ignoreMissingFiles", "true")));
    let end = next(source.as_mut(), None).unwrap();
    fs::remove_file(folder.path().join("a")).unwrap();
    assert_eq!(all(source.as_mut(), None, &end), ["two"]);
    put(folder.path(), "a", b"one", 1);
    assert_eq!(all(source.as_mut(), None, &end), ["two"], "what was decided holds when the file is back");
}

#[test]
fn old_files_are_ignored_by_the_age_of_the_newest() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "first", b"first", 0);
    put(folder.path(), "new", b"new", 100_000);
    let (mut source, _) = open(&spec("text", &folder, Options::new().with("maxFileAge", "1h")));
    assert_eq!(drain(source.as_mut()), [["first", "new"]], "the first batch takes files of any age");
    put(folder.path(), "late", b"late", 90_000);
    put(folder.path(), "fine", b"fine", 99_000);
    let end = next(source.as_mut(), Some(&offset(0))).unwrap();
    assert_eq!(all(source.as_mut(), Some(&offset(0)), &end), ["fine"]);
}

#[test]
fn what_a_listing_has_found_is_not_too_old_when_its_turn_comes() {
    let folder = TempDir::new().unwrap();
    for (name, seconds) in [("a", 0), ("b", 100_000), ("c", 0), ("d", 0)] {
        put(folder.path(), name, name.as_bytes(), seconds);
    }
    let options = Options::new().with("incrementalListing", "true").with("maxFileAge", "1h");
    let spec = spec("text", &folder, options.with("maxFilesPerTrigger", "1"));
    let (mut source, files) = open(&spec);
    assert_eq!(drain(source.as_mut()), [["a"], ["b"], ["c"], ["d"]]);
    let mut source = try_open(&spec, &files).unwrap();
    assert_eq!(next(source.as_mut(), Some(&offset(3))), Some(offset(3)), "they are taken once");
}

#[test]
fn equal_names_in_other_folders_are_one_file_when_only_names_count() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "x/a", b"1", 1);
    put(folder.path(), "y/a", b"2", 2);
    let options = Options::new().with("recursiveFileLookup", "true");
    assert_eq!(drain(open(&spec("text", &folder, options.clone())).0.as_mut()).concat().len(), 2);
    let (mut source, _) = open(&spec("text", &folder, options.with("fileNameOnly", "true")));
    assert_eq!(drain(source.as_mut()), [["1"]]);
}

#[test]
fn committed_files_are_archived_or_deleted() {
    let (folder, archive) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for (name, seconds) in [("a", 1), ("b", 2)] {
        put(folder.path(), name, name.as_bytes(), seconds);
    }
    let options = Options::new().with("maxFilesPerTrigger", "1").with("cleanSource", "archive");
    let options = options.with("sourceArchiveDir", archive.path().to_str().unwrap());
    let (mut source, _) = open(&spec("text", &folder, options));
    assert_eq!(drain(source.as_mut()).len(), 2);
    source.release(&offset(0)).unwrap();
    assert!(!folder.path().join("a").exists() && folder.path().join("b").exists());
    let kept = archive.path().join(folder.path().strip_prefix("/").unwrap()).join("a");
    assert_eq!(fs::read(kept).unwrap(), b"a");
    let (mut source, _) = open(&spec("text", &folder, Options::new().with("cleanSource", "delete")));
    assert_eq!(drain(source.as_mut()), [["b"]]);
    source.release(&offset(0)).unwrap();
    source.release(&offset(0)).unwrap();
    assert!(!folder.path().join("b").exists());
}

#[test]
fn headers_whole_texts_and_long_lines() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "a.csv", b"\xef\xbb\xbfid,word\n1,one\n", 1);
    put(folder.path(), "b.csv", b"id,word\n2,two", 2);
    let csv = spec("csv", &folder, Options::new().with("header", "true"));
    let (mut source, _) = open(&SourceSpec { schema: Some(words()), ..csv });
    assert_eq!(drain(source.as_mut()), [["1|one", "2|two"]]);

    let folder = TempDir::new().unwrap();
    put(folder.path(), "a", b"x\ny\n", 1);
    let (mut source, _) = open(&spec("text", &folder, Options::new().with("wholetext", "true")));
    assert_eq!(drain(source.as_mut()), [["x\ny\n"]]);

    let line = Arc::new(Schema::new(vec![Field::new("line", DataType::Utf8, true)]));
    let (mut source, _) = open(&SourceSpec { schema: Some(line), ..spec("text", &folder, Options::new()) });
    assert_eq!(drain(source.as_mut()), [["x", "y"]]);

    let long = "x".repeat(3 << 20);
    put(folder.path(), "a", format!("{long}\r\nshort\r\n{}", "line\n".repeat(400_000)).as_bytes(), 1);
    let (mut source, _) = open(&spec("text", &folder, Options::new()));
    let end = next(source.as_mut(), None).unwrap();
    let lists = source.read(None, &end, &[0]).unwrap();
    let rows: usize = lists.iter().flatten().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 400_002);
    assert!(lists.iter().flatten().all(|batch| batch.num_rows() <= 8192));
}

#[test]
fn options_and_schemas_that_do_not_fit_are_refused_with_a_reason() {
    let folder = TempDir::new().unwrap();
    let registry = SourceRegistry::with_builtins();
    let message = |format: &str, schema: Option<SchemaRef>, options: Options| {
        let spec = SourceSpec { schema, ..spec(format, &folder, options) };
        registry.factory(&spec).unwrap().schema(&spec).unwrap_err().to_string()
    };
    let none = Options::new;
    assert!(message("json", None, none()).contains("format `json` needs a schema"));
    assert!(message("text", Some(words()), none()).contains("exactly one column"));
    assert!(message("csv", Some(words()), none().with("headr", "true")).contains("`headr` is unknown"));
    assert!(message("json", Some(words()), none().with("multiLine", "true")).contains("one line"));
    assert!(message("text", None, none().with("path", "ftp://host/x")).contains("folders of this machine"));
    assert!(message("file", None, none()).contains("`format` of source `in` is missing"));
    let both = none().with("maxFilesPerTrigger", "1").with("maxBytesPerTrigger", "1");
    assert!(message("text", None, both).contains("keep one of the two"));
    assert!(message("text", None, none().with("maxFilesPerTrigger", "0")).contains("greater than 0"));
    let archive = none().with("cleanSource", "archive");
    assert!(message("text", None, archive.clone()).contains("`sourceArchiveDir` of source `in` is missing"));
    let inside = archive.with("sourceArchiveDir", folder.path().join("old").to_str().unwrap());
    assert!(message("text", None, inside).contains("must not lie inside"));
    let unsigned = Schema::new(vec![Field::new("u", DataType::UInt8, true)]);
    assert!(message("json", Some(Arc::new(unsigned)), none()).contains("`u` cannot be decoded as UInt8"));

    let missing = spec("text", &folder, none().with("path", "/no/such/folder"));
    let error = try_open(&missing, &Arc::new(MemoryFiles::default())).err().unwrap();
    assert_eq!(error.to_string(), "source `in` cannot list `/no/such/folder`");
}

mod bad_files;
mod formats;
mod late_folders;
mod nested;
mod patterns;
mod places;
mod stores;
mod traffic;
