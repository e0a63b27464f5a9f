use super::*;
use std::io::Write;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A good file, one that is `bad`, and a good one after it.
fn folder_with(bad_name: &str, bad: &[u8], good: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    put(folder.path(), &format!("a-{bad_name}"), good, 1);
    put(folder.path(), &format!("b-{bad_name}"), bad, 2);
    put(folder.path(), &format!("c-{bad_name}"), good, 3);
    folder
}

fn of(format: &str, folder: &TempDir, options: Options) -> SourceSpec {
    let schema = (format != "text").then(words);
    SourceSpec { schema, ..spec(format, folder, options) }
}

/// Runs one folder under every policy: the error, the rows that are kept, skipped, and with a dead letter.
fn policies(format: &str, folder: &TempDir, options: &Options, reason: &str, good: &[&str], kept: &[&str]) {
    let mut paths = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let bad = paths.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("b-")).unwrap();
    let bad = bad.to_str().unwrap();
    let (mut source, _) = open(&of(format, folder, options.clone()));
    let end = next(source.as_mut(), None).unwrap();
    let columns: Vec<usize> = (0..source.schema().fields().len()).collect();
    let error = source.read(None, &end, &columns).unwrap_err();
    assert!(matches!(error, SourceError::Malformed { .. }), "{error:?}");
    assert!(error.to_string().contains(bad) && error.to_string().contains(reason), "{error}");

    let twice: Vec<&str> = good.iter().flat_map(|row| [*row, *row]).collect();
    let mut with_kept: Vec<&str> = twice.iter().chain(kept).copied().collect();
    with_kept.sort_unstable();
    for (option, value, expected, letters) in [
        ("ignoreCorruptFiles", "true", &with_kept, 0),
        ("badFiles", "skip", &twice, 0),
        ("badFiles", "dead-letter", &twice, 1),
    ] {
        let spec = of(format, folder, options.clone().with(option, value));
        let (mut source, files) = open(&spec);
        let end = next(source.as_mut(), None).unwrap();
        assert_eq!(all(source.as_mut(), None, &end), *expected, "{option}={value}");
        let told = source.take_dead_letters();
        assert_eq!(told.len(), letters, "{option}={value}");
        assert!(told.iter().all(|letter| letter.place == bad && letter.reason.contains(reason)), "{told:?}");
        // After a restart the same, although somebody has repaired the file.
        let damaged = fs::read(bad).unwrap();
        if kept.is_empty() {
            fs::write(bad, fs::read(bad.replace("/b-", "/a-")).unwrap()).unwrap();
        }
        let mut source = try_open(&spec, &files).unwrap();
        assert_eq!(all(source.as_mut(), None, &end), *expected, "{option}={value} again");
        assert_eq!(source.take_dead_letters(), told);
        put(folder.path(), bad.rsplit('/').next().unwrap(), &damaged, 2);
    }
}

#[test]
fn a_cut_gzip_file_is_named_and_costs_nothing_else() {
    let rows: String = (0..200_000).map(|n| format!("line {n} {}\n", n * 7919 % 104_729)).collect();
    let mut whole = gzip(rows.as_bytes());
    whole.truncate(whole.len() - 200);
    let folder = folder_with("x.gz", b"no gzip at all", &gzip(b"good\n"));
    policies("text", &folder, &Options::new(), "gzip stream is damaged after 0 bytes", &["good"], &[]);
    let folder = folder_with("x.gz", &whole, &gzip(b"good\n"));
    let (mut source, _) = open(&of("text", &folder, Options::new().with("ignoreCorruptFiles", "true")));
    let end = next(source.as_mut(), None).unwrap();
    let read = all(source.as_mut(), None, &end).len();
    assert!(read > 100_000 && read < 200_002, "the lines before the cut count: {read}");
    assert_eq!(all(source.as_mut(), None, &end).len(), read);
}

#[test]
fn a_bomb_is_a_bad_file() {
    let folder = folder_with("x.gz", &gzip(&vec![b'x'; 1 << 20]), &gzip(b"good\n"));
    let options = Options::new().with("maxDecompressedBytes", "65536");
    policies("text", &folder, &options, "larger than maxDecompressedBytes (65536)", &["good"], &[]);
}

#[test]
fn a_truncated_parquet_file_is_named_and_costs_nothing_else() {
    let good = parquet_bytes(1);
    let folder = folder_with("x.parquet", &good[..good.len() / 2], &good);
    policies("parquet", &folder, &Options::new(), "", &["-1|-", "1|w1"], &[]);
    let folder = folder_with("x.parquet", b"PAR1", &good);
    policies("parquet", &folder, &Options::new(), "", &["-1|-", "1|w1"], &[]);
}

#[test]
fn a_line_with_other_columns_is_named_by_its_number_when_the_mode_minds() {
    let folder = folder_with("x.csv", b"id,word\n1,one\n\n2,two,more\n3,three\n", b"id,word\n7,good\n");
    let options = Options::new().with("header", "true").with("mode", "FAILFAST");
    policies("csv", &folder, &options, "line 4 is malformed: `2,two,more`", &["7|good"], &[]);
    let folder = folder_with("x.csv", b"word,id\none,1\n", b"id,word\n7,good\n");
    let options = Options::new().with("header", "true").with("enforceSchema", "false");
    policies(
        "csv",
        &folder,
        &options,
        "its header has the columns word, id, and the schema id, word",
        &["7|good"],
        &[],
    );
    let folder = folder_with("x.json", b"{\"id\":1}\n{\"id\":\n", b"{\"id\":7,\"word\":\"good\"}\n");
    let options = Options::new().with("mode", "FAILFAST");
    policies("json", &folder, &options, "line 2 is malformed: `{\"id\":`", &["7|good"], &[]);
}

#[test]
fn a_bad_file_is_not_cleaned_away() {
    let folder = folder_with("x.gz", b"no gzip at all", &gzip(b"good\n"));
    let options = Options::new().with("badFiles", "dead-letter").with("cleanSource", "delete");
    let (mut source, _) = open(&of("text", &folder, options));
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(all(source.as_mut(), None, &end), ["good", "good"]);
    source.release(&end).unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["b-x.gz"]);
}

#[test]
fn policies_that_contradict_each_other_are_refused() {
    let folder = TempDir::new().unwrap();
    let options = Options::new().with("badFiles", "skip").with("ignoreCorruptFiles", "true");
    let error = try_open(&spec("text", &folder, options), &Arc::default()).err().unwrap();
    assert!(error.to_string().contains("keep one of the two"), "{error}");
    let error =
        try_open(&spec("text", &folder, Options::new().with("badFiles", "ignore")), &Arc::default()).err().unwrap();
    assert!(error.to_string().contains("write fail, skip or dead-letter"), "{error}");
}
