use super::*;
use crate::connectors::file::bucket::Bucket;
use crate::connectors::file::config::{FileConfig, FileFormat};
use crate::connectors::file::listing::Lister;
use crate::connectors::file::seen::SeenFiles;

/// The columns of a file, and before or after them those of folders.
fn with_day(place: usize) -> SchemaRef {
    let mut fields: Vec<Field> = words().fields().iter().map(|field| field.as_ref().clone()).collect();
    fields.insert(place, Field::new("day", DataType::Date32, true));
    Arc::new(Schema::new(fields))
}

#[test]
fn a_folder_that_comes_later_has_a_declared_column_instead_of_the_file() {
    let folder = TempDir::new().unwrap();
    let csv = SourceSpec { schema: Some(with_day(0)), ..spec("csv", &folder, Options::new()) };
    let (mut source, _) = open(&csv);
    assert_eq!(next(source.as_mut(), None), None);
    put(folder.path(), "DAY=2024-05-01/a.csv", b"1,one\n2,two\n", 1);
    put(folder.path(), "b.csv", b"2024-05-02,3,three\n", 1);
    put(folder.path(), "id=4/day=2024-05-03/c.csv", b"four\n", 1);
    put(folder.path(), "other=1/d.csv", b"never\n", 1);
    let end = next(source.as_mut(), None).unwrap();
    let rows = ["2024-05-01|1|one", "2024-05-01|2|two", "2024-05-02|3|three", "2024-05-03|4|four"];
    assert_eq!(all(source.as_mut(), None, &end), rows);
    assert_eq!(text(&source.read(None, &end, &[1]).unwrap()), ["1", "2", "3", "4"]);
    assert_eq!(text(&source.read(None, &end, &[0, 2]).unwrap())[3], "2024-05-03|four");

    put(folder.path(), "day=tomorrow/e.csv", b"5,five\n", 2);
    let later = next(source.as_mut(), Some(&end)).unwrap();
    let error = source.read(Some(&end), &later, &[2]).unwrap_err();
    assert!(error.to_string().contains("its folder says `day=tomorrow`"), "{error}");
}

#[test]
fn a_column_of_a_later_folder_is_not_looked_for_in_the_file() {
    let folder = TempDir::new().unwrap();
    let (mut source, _) = open(&SourceSpec { schema: Some(with_day(2)), ..spec("parquet", &folder, Options::new()) });
    assert_eq!(next(source.as_mut(), None), None);
    put(folder.path(), "day=2024-05-01/ID=9/p", &parquet_bytes(5), 1);
    let end = next(source.as_mut(), None).unwrap();
    assert_eq!(all(source.as_mut(), None, &end), ["9|-|2024-05-01", "9|w5|2024-05-01"]);
}

#[test]
fn objects_of_new_folders_are_read_when_the_earlier_ones_were_cleaned_away() {
    let bucket = Bucket::open("memory://cleaned/", &[]).unwrap();
    let folder = TempDir::new().unwrap();
    let options = Options::new().with("path", "memory://cleaned/in").with("cleanSource", "delete");
    let csv = SourceSpec { schema: Some(with_day(2)), ..spec("csv", &folder, options) };
    bucket.put("in/day=2024-05-01/a", b"1,one");
    let (mut source, files) = open(&csv);
    let first = next(source.as_mut(), None).unwrap();
    assert_eq!(all(source.as_mut(), None, &first), ["1|one|2024-05-01"]);
    source.release(&first).unwrap();
    drop(source);
    let mut source = try_open(&csv, &files).unwrap();
    bucket.put("in/day=2024-05-02/b", b"2,two");
    let second = next(source.as_mut(), Some(&first)).unwrap();
    assert_eq!(all(source.as_mut(), Some(&first), &second), ["2|two|2024-05-02"]);
}

#[test]
fn what_a_text_file_cannot_have_stands_in_folders() {
    let folder = TempDir::new().unwrap();
    let schema = Schema::new(vec![Field::new("line", DataType::Utf8, true), Field::new("n", DataType::Int32, true)]);
    let text = SourceSpec { schema: Some(Arc::new(schema)), ..spec("text", &folder, Options::new()) };
    let (mut source, _) = open(&text);
    put(folder.path(), "n=1/a", b"one", 1);
    put(folder.path(), "b", b"two", 2);
    assert_eq!(drain(source.as_mut()), [["one|1", "two|-"]]);
    let deep = text.options.clone().with("recursiveFileLookup", "true");
    let error = try_open(&SourceSpec { options: deep, ..text }, &Arc::default()).err().unwrap();
    assert!(error.to_string().contains("exactly one column"), "{error}");
}

#[test]
fn folders_behind_many_objects_are_entered() {
    let bucket = Bucket::open("memory://many/", &[]).unwrap();
    let folder = TempDir::new().unwrap();
    (0..10_001).for_each(|n| bucket.put(&format!("in/a{n:05}"), b"x"));
    bucket.put("in/day=2024-05-01/b", b"1,one");
    let options = Options::new().with("path", "memory://many/in").with("pathGlobFilter", "b");
    let (mut source, _) = open(&SourceSpec { schema: Some(with_day(2)), ..spec("csv", &folder, options) });
    assert_eq!(drain(source.as_mut()), [["1|one|2024-05-01"]]);
}

#[test]
fn a_folder_that_is_passed_over_is_named_once_for_its_column() {
    let folder = TempDir::new().unwrap();
    let bucket = Bucket::open("memory://passed-over/", &[]).unwrap();
    for name in ["in/day=1/a", "in/day=2/b", "in/plain/c", "in/.x=1/d", "in/e"] {
        put(folder.path(), name, b"x", 1);
        bucket.put(name, b"x");
    }
    let local = folder.path().join("in").to_str().unwrap().to_owned();
    for (path, bucket) in [(local, None), ("memory://passed-over/in".to_owned(), Some(Arc::new(bucket)))] {
        let spec = spec("text", &folder, Options::new().with("path", path));
        let config = FileConfig::new(&spec, Some(FileFormat::Text)).unwrap();
        let listing = Lister::new("in", bucket.clone()).list(&config, &SeenFiles::new(&config, i64::MIN), 0).unwrap();
        let passed_over: Vec<&str> = listing.passed_over.keys().map(String::as_str).collect();
        assert_eq!((listing.new.len(), passed_over), (1, vec!["day"]), "{}", config.path);
        assert!(listing.passed_over["day"].starts_with("day="));
        let deep = FileConfig { recursive: true, ..config };
        let listing = Lister::new("in", bucket).list(&deep, &SeenFiles::new(&deep, i64::MIN), 0).unwrap();
        assert_eq!((listing.new.len(), listing.passed_over.len()), (4, 0));
    }
}

#[test]
fn what_was_found_of_folders_holds_for_the_same_question_only() {
    let bucket = Bucket::open("memory://questions/", &[]).unwrap();
    bucket.put("in/k=1/n=2/a", b"x");
    let folder = TempDir::new().unwrap();
    let ask = |options: Options| spec("text", &folder, options.with("path", "memory://questions/in/k=1"));
    let factory = Arc::clone(SourceRegistry::with_builtins().factory(&ask(Options::new())).unwrap());
    let columns = |options: Options| {
        let schema = factory.schema(&ask(options)).unwrap();
        schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join(",")
    };
    assert_eq!(columns(Options::new().with("recursiveFileLookup", "true")), "value");
    assert_eq!(columns(Options::new()), "value,n");
    assert_eq!(columns(Options::new().with("basePath", "memory://questions/in")), "value,k,n");
    bucket.put("in/k=1/n=2/m=3/b", b"x");
    assert_eq!(columns(Options::new()), "value,n");
}
