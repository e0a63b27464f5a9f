use super::*;
use crate::connectors::file::bucket::Bucket;
use millstream_client::file_log::{CommittedBatch, CommittedFile, MergedFile, ReplacedFile, seal};

#[test]
fn folders_whose_names_are_pairs_are_columns() {
    let folder = TempDir::new().unwrap();
    put(folder.path(), "day=2024-05-01/n=1/a.csv", b"1,one\n", 1);
    put(folder.path(), "day=2024-05-02/n=__HIVE_DEFAULT_PARTITION__/b.csv", b"2,two\n", 2);
    put(folder.path(), "plain/c.csv", b"3,three\n", 3);
    let csv = SourceSpec { schema: Some(words()), ..spec("csv", &folder, Options::new()) };
    let (mut source, _) = open(&csv);
    let names: Vec<String> =
        source.schema().fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    assert_eq!(names, ["id Int32", "word Utf8", "day Date32", "n Int32"]);
    assert_eq!(drain(source.as_mut()), [["1|one|2024-05-01|1", "2|two|2024-05-02|-"]]);
    let end = offset(0);
    assert_eq!(text(&source.read(None, &end, &[1, 3]).unwrap()), ["one|1", "two|-"]);
    assert_eq!(text(&source.read(None, &end, &[2]).unwrap()), ["2024-05-01", "2024-05-02"]);

    // A folder that comes later has the type of those that were there.
    put(folder.path(), "day=tomorrow/n=2/d.csv", b"4,four\n", 4);
    let later = next(source.as_mut(), Some(&end)).unwrap();
    let error = source.read(Some(&end), &later, &[0, 2]).unwrap_err();
    assert!(error.to_string().contains("its folder says `day=tomorrow`"), "{error}");

    // A declared type wins, and the column stands at the end.
    let declared = Schema::new(vec![
        Field::new("day", DataType::Utf8, true),
        Field::new("id", DataType::Int32, true),
        Field::new("word", DataType::Utf8, true),
    ]);
    let (mut source, _) = open(&SourceSpec { schema: Some(Arc::new(declared)), ..csv });
    assert_eq!(drain(source.as_mut()).concat()[2], "4|four|tomorrow|2");

    // Below one of the folders, and with a base.
    let below = folder.path().join("day=2024-05-01");
    let options = Options::new().with("path", below.to_str().unwrap());
    let one = SourceSpec { schema: Some(words()), ..spec("csv", &folder, options.clone()) };
    assert_eq!(drain(open(&one).0.as_mut()), [["1|one|1"]]);
    let options = options.with("basePath", folder.path().to_str().unwrap());
    let based = SourceSpec { schema: Some(words()), ..spec("csv", &folder, options) };
    assert_eq!(drain(open(&based).0.as_mut()), [["1|one|2024-05-01|1"]]);
}

#[test]
fn times_of_modification_are_a_filter() {
    let folder = TempDir::new().unwrap();
    for (name, seconds) in [("a", 0), ("b", 10), ("c", 20)] {
        put(folder.path(), name, name.as_bytes(), seconds);
    }
    // The fixed day is 2023-11-14T22:13:20Z.
    let rows = |options: Options| drain(open(&spec("text", &folder, options)).0.as_mut()).concat();
    assert_eq!(rows(Options::new().with("modifiedAfter", "2023-11-14T22:13:20")), ["b", "c"]);
    assert_eq!(rows(Options::new().with("modifiedBefore", "2023-11-14T22:13:40")), ["a", "b"]);
}

#[test]
fn a_share_of_a_batch_is_not_kept_for_the_next() {
    let folder = TempDir::new().unwrap();
    for n in 0..11 {
        put(folder.path(), &format!("f{n:02}"), format!("{n:02}").as_bytes(), n);
    }
    let (mut source, _) = open(&spec("text", &folder, Options::new().with("maxFilesPerTrigger", "10")));
    let first = next(source.as_mut(), None).unwrap();
    put(folder.path(), "f-late-but-old", b"99", 0);
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(all(source.as_mut(), Some(&first), &second), ["10", "99"], "the one that was left was listed again");
    let keeps = Options::new().with("maxFilesPerTrigger", "10").with("discardCachedInputRatio", "0");
    let (mut source, _) = open(&spec("text", &folder, keeps));
    let first = next(source.as_mut(), None).unwrap();
    put(folder.path(), "f-later-but-old", b"98", 0);
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(all(source.as_mut(), Some(&first), &second).len(), 2);
}

#[test]
fn the_log_leaves_out_what_nobody_can_ask_for() {
    let folder = TempDir::new().unwrap();
    let options = Options::new().with("maxFilesPerTrigger", "1").with("maxFileAge", "100s");
    let spec = spec("text", &folder, options);
    let settings = crate::SourceSettings { batches_retained: 5, ..Default::default() };
    let registry = SourceRegistry::with_builtins().with_settings(&settings);
    let files = Arc::new(MemoryFiles::default());
    let open = || registry.factory(&spec).unwrap().open(&spec, context(&files)).unwrap();
    let mut source = open();
    let mut start = None;
    for n in 0..40 {
        put(folder.path(), &format!("f{n:02}"), format!("row {n:02}").as_bytes(), n * 60);
        start = next(source.as_mut(), start.as_ref());
    }
    let size = files.get("39.compact").unwrap().len();
    assert!(size < 1_500, "the log is bounded: {size} bytes");
    drop(source);
    let mut source = open();
    assert_eq!(next(source.as_mut(), Some(&offset(39))), Some(offset(39)), "what was left out is not new");
    assert_eq!(all(source.as_mut(), Some(&offset(34)), &offset(36)), ["row 35", "row 36"]);
    assert!(matches!(source.read(Some(&offset(3)), &offset(4), &[0]), Err(SourceError::Lost { .. })));
}

#[test]
fn the_log_of_a_spark_sink_decides_which_files_there_are() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().to_str().unwrap().to_owned();
    let line = |name: &str, action: &str| {
        format!(
            "{{\"path\":\"file://{root}/{name}\",\"size\":3,\"isDir\":false,\"modificationTime\":1700000000000,\
             \"blockReplication\":1,\"blockSize\":33554432,\"action\":\"{action}\"}}\n"
        )
    };
    for name in ["part-0", "part-1", "part 2", "orphan"] {
        put(folder.path(), name, name.as_bytes(), 1);
    }
    let log = |n: &str, lines: String| put(folder.path(), &format!("_spark_metadata/{n}"), lines.as_bytes(), 1);
    log("8", format!("v1\n{}", line("nothing", "add")));
    log("9.compact", format!("v1\n{}{}", line("part-0", "add"), line("part-1", "add")));
    log("10", format!("v1\n{}{}", line("part%202", "add"), line("part-1", "delete")));
    let (mut source, _) = open(&spec("text", &folder, Options::new()));
    assert_eq!(drain(source.as_mut()), [["part 2", "part-0"]]);
    let clean = Options::new().with("cleanSource", "delete");
    let error = try_open(&spec("text", &folder, clean), &Arc::default()).err().unwrap();
    assert!(error.to_string().contains("output of a file sink"), "{error}");
    log("11", "v2\n".into());
    let (mut source, _) = open(&spec("text", &folder, Options::new()));
    assert!(matches!(source.latest_offset(None, ReadLimit::AllAvailable), Err(SourceError::Damaged { .. })));
}

/// A file, and those that it stands for.
type Merged<'a> = (&'a str, &'a [&'a str]);

/// Writes files `a` to `d`, each with its name as its row, and a log of ours in which `abc` stands for the first three.
fn output(folder: &Path) -> impl Fn(u64, &[&str], &[Merged<'_>]) {
    for name in ["a", "b", "c", "d", "orphan"] {
        put(folder, name, name.as_bytes(), 1);
    }
    put(folder, "abc", b"a\nb\nc\n", 1);
    let folder = folder.to_owned();
    move |number: u64, files: &[&str], merged: &[Merged<'_>]| {
        let file = |name: &str| CommittedFile { name: name.to_owned(), rows: 1, bytes: 1 };
        let replaced = |name: &&str| ReplacedFile {
            name: (*name).to_owned(),
            bytes: 1,
            committed_ms: i64::from(name.as_bytes()[0]),
        };
        let batch = CommittedBatch {
            query: serde_json::from_str("\"00000000-0000-0000-0000-000000000001\"").unwrap(),
            batch: millstream_common::BatchId(number),
            rows: files.len() as u64,
            files: files.iter().map(|name| file(name)).collect(),
            merged: merged
                .iter()
                .map(|(name, of)| MergedFile { file: file(name), replaced: of.iter().map(replaced).collect() })
                .collect(),
            committed_ms: files.first().map_or(1_000, |name| i64::from(name.as_bytes()[0])),
        };
        put(&folder, &format!("_millstream/{number}.manifest"), &seal(&batch), 1);
    }
}

#[test]
fn the_log_of_our_own_sink_decides_and_files_that_were_put_together_bring_no_row_twice() {
    let folder = TempDir::new().unwrap();
    let spec = spec("text", &folder, Options::new().with("maxFilesPerTrigger", "2"));
    let commit = output(folder.path());
    put(folder.path(), "_millstream/owner", b"somebody", 1);
    let (mut behind, _) = open(&spec);
    assert_eq!(next(behind.as_mut(), None), None, "nothing is committed yet");
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        commit(number as u64, &[name], &[]);
    }
    let (mut whole, _) = open(&spec);
    let first = next(behind.as_mut(), None).unwrap();
    assert_eq!(all(behind.as_mut(), None, &first), ["a", "b"]);
    assert_eq!(drain(whole.as_mut()), [vec!["a", "b"], vec!["c"]]);

    commit(3, &["d"], &[("abc", &["a", "b", "c"])]);
    let end = Some(offset(1));
    let rest = next(whole.as_mut(), end.as_ref()).unwrap();
    assert_eq!(all(whole.as_mut(), end.as_ref(), &rest), ["d"], "what was put together was read before");
    let (mut fresh, _) = open(&spec);
    assert_eq!(drain(fresh.as_mut()).concat(), ["a", "b", "c", "d"]);
    // It has had two of the three, and starts again.
    let files = Arc::new(MemoryFiles::default());
    let mut partly = try_open(&spec, &files).unwrap();
    fs::rename(folder.path().join("_millstream/3.manifest"), folder.path().join("later")).unwrap();
    let first = next(partly.as_mut(), None).unwrap();
    drop(partly);
    fs::rename(folder.path().join("later"), folder.path().join("_millstream/3.manifest")).unwrap();
    let mut partly = try_open(&spec, &files).unwrap();
    let rest = next(partly.as_mut(), Some(&first)).unwrap();
    assert_eq!(all(partly.as_mut(), Some(&first), &rest), ["c", "d"]);

    fs::remove_file(folder.path().join("a")).unwrap();
    fs::remove_file(folder.path().join("b")).unwrap();
    fs::remove_file(folder.path().join("c")).unwrap();
    let (mut late, _) = open(&spec);
    assert_eq!(drain(late.as_mut()).concat(), ["a", "b", "c", "d"], "the small ones are not needed");
    put(folder.path(), "_millstream/4.manifest", b"millstream-sink 1 crc32 00000000\n{}\n", 1);
    let (mut damaged, _) = open(&spec);
    let error = damaged.latest_offset(None, ReadLimit::AllAvailable).unwrap_err();
    assert!(matches!(error, SourceError::Damaged { .. }), "{error}");
}

#[test]
fn a_line_of_sparks_log_can_stand_for_others() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().to_str().unwrap().to_owned();
    for name in ["a", "b"] {
        put(folder.path(), name, name.as_bytes(), 1);
    }
    put(folder.path(), "ab", b"a\nb\n", 1);
    let line = |name: &str, time: u64, more: &str| {
        format!(
            "{{\"path\":\"file://{root}/{name}\",\"size\":3,\"isDir\":false,\"modificationTime\":{time},\
             \"blockReplication\":1,\"blockSize\":33554432,\"action\":\"add\"{more}}}\n"
        )
    };
    put(folder.path(), "_spark_metadata/0", format!("v1\n{}", line("a", 1, "")).as_bytes(), 1);
    let (mut source, _) = open(&spec("text", &folder, Options::new()));
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(all(source.as_mut(), None, &first), ["a"]);
    let of = |name: &str, time: u64| format!("{{\"name\":\"{name}\",\"bytes\":1,\"committedMs\":{time}}}");
    let more = format!(",\"replaced\":[{},{}],\"replacedAt\":3", of("a", 1), of("b", 2));
    put(folder.path(), "_spark_metadata/1.compact", format!("v1\n{}", line("ab", 2, &more)).as_bytes(), 1);
    fs::remove_file(folder.path().join("_spark_metadata/0")).unwrap();
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(all(source.as_mut(), Some(&first), &second), ["b"]);
    let (mut fresh, _) = open(&spec("text", &folder, Options::new()));
    assert_eq!(drain(fresh.as_mut()), [["a", "b"]]);
}

#[test]
fn objects_keep_the_contract() {
    let bucket = Bucket::open("memory://contract/", &[]).unwrap();
    let folder = TempDir::new().unwrap();
    let spec = spec("text", &folder, Options::new().with("path", "memory://contract/in"));
    let mut round = 0;
    let mut feed = || {
        round += 1;
        bucket.put(&format!("in/a{round}"), format!("line {round}\nmore").as_bytes());
        bucket.put(&format!("in/b{round}"), format!("line {round}").as_bytes());
        bucket.put("input/not-below", b"never");
    };
    source(&mut Subject {
        factory: Arc::clone(SourceRegistry::with_builtins().factory(&spec).unwrap()),
        spec,
        feed: &mut feed,
        clock: Arc::new(ManualClock::at(0)),
        replays_after_restart: true,
    });
}

#[test]
fn objects_are_found_as_files_are() {
    let bucket = Bucket::open("memory://found/", &[]).unwrap();
    for key in ["a.txt", "b.log", "_tmp/x", ".hidden", "sub/c.txt", "x1/f.txt", "x2/g.txt", "k=1/p.txt", "k=2/q.txt"] {
        bucket.put(&format!("in/{key}"), key.as_bytes());
    }
    let folder = TempDir::new().unwrap();
    let rows = |path: &str, options: Options| {
        drain(open(&spec("text", &folder, options.with("path", path))).0.as_mut()).concat()
    };
    assert_eq!(rows("memory://found/in", Options::new()), ["a.txt|-", "b.log|-", "k=1/p.txt|1", "k=2/q.txt|2"]);
    assert_eq!(rows("memory://found/in/k=1", Options::new()), ["k=1/p.txt"]);
    assert_eq!(rows("memory://found/in/x*", Options::new()), ["x1/f.txt", "x2/g.txt"]);
    assert_eq!(rows("memory://found/in/*.txt", Options::new()), ["a.txt"]);
    assert_eq!(rows("memory://found/in/a.txt", Options::new()), ["a.txt"]);
    let deep = Options::new().with("recursiveFileLookup", "true").with("pathGlobFilter", "*.txt");
    assert_eq!(rows("memory://found/in", deep).len(), 6);
    assert!(rows("memory://found/nothing", Options::new()).is_empty());
}

#[test]
fn objects_are_listed_behind_the_last_name_on_request() {
    let bucket = Bucket::open("memory://by-name/", &[]).unwrap();
    let folder = TempDir::new().unwrap();
    bucket.put("in/2024-02", b"two");
    bucket.put("in/2024-01", b"one");
    let options = Options::new().with("path", "memory://by-name/in").with("incrementalListing", "true");
    let (mut source, files) = open(&spec("text", &folder, options.clone().with("maxFilesPerTrigger", "1")));
    assert_eq!(drain(source.as_mut()), [["one"], ["two"]], "in the order of names");
    bucket.put("in/2024-00", b"never");
    bucket.put("in/2024-03", b"three");
    let end = next(source.as_mut(), Some(&offset(1))).unwrap();
    assert_eq!(all(source.as_mut(), Some(&offset(1)), &end), ["three"]);
    drop(source);
    let mut source = try_open(&spec("text", &folder, options), &files).unwrap();
    assert_eq!(next(source.as_mut(), Some(&end)), Some(end));
}

#[test]
fn committed_objects_are_archived_or_deleted() {
    let bucket = Bucket::open("memory://clean/", &[]).unwrap();
    let folder = TempDir::new().unwrap();
    let path = |options: Options| spec("text", &folder, options.with("path", "memory://clean/in"));
    bucket.put("in/a", b"a");
    let archive = Options::new().with("cleanSource", "archive");
    let options = archive.clone().with("sourceArchiveDir", "memory://clean/old");
    let (mut source, _) = open(&path(options));
    assert_eq!(drain(source.as_mut()), [["a"]]);
    source.release(&offset(0)).unwrap();
    let is_there = |key: &str| bucket.head(&bucket.key(key).unwrap()).unwrap().is_some();
    assert!(!is_there("in/a") && is_there("old/in/a"));
    for elsewhere in ["/tmp/old", "memory://other/old", "memory://clean/in/old"] {
        let options = archive.clone().with("sourceArchiveDir", elsewhere);
        assert!(try_open(&path(options), &Arc::default()).is_err(), "{elsewhere}");
    }
    bucket.put("in/b", b"b");
    let (mut source, _) = open(&path(Options::new().with("cleanSource", "delete")));
    assert_eq!(drain(source.as_mut()), [["b"]]);
    source.release(&offset(0)).unwrap();
    assert!(!is_there("in/b"));
}
