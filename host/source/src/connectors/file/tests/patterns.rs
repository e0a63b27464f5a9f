use super::*;
use crate::connectors::file::bucket::Bucket;

/// Writes the same files into a folder and into a store of this name, each with its name as its row.
fn both(store: &str, names: &[&str]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let bucket = Bucket::open(&format!("memory://{store}/"), &[]).unwrap();
    for name in names {
        put(folder.path(), name, name.as_bytes(), 1);
        bucket.put(name, name.as_bytes());
    }
    folder
}

/// The rows of all that fits a pattern, which are the same in both.
fn rows(folder: &TempDir, store: &str, pattern: &str, options: &Options) -> Vec<String> {
    let read =
        |path: String| drain(open(&spec("text", folder, options.clone().with("path", path))).0.as_mut()).concat();
    let local = read(format!("{}/{pattern}", folder.path().display()));
    assert_eq!(local, read(format!("memory://{store}/{pattern}")), "{pattern}");
    local
}

#[test]
fn a_wildcard_does_not_find_the_logs_of_sinks() {
    let names = [
        "out/_spark_metadata/0",
        "out/_millstream/0.manifest",
        "out/_delta_log/0.json",
        "out/.tmp/x",
        "out/_k=1/f",
        "out/plain/g",
        "out/part-0",
        "_old/plain/h",
    ];
    let folder = both("logs-of-sinks", &names);
    let rows = |pattern: &str| rows(&folder, "logs-of-sinks", pattern, &Options::new());
    assert_eq!(rows("out/*"), ["out/_k=1/f", "out/part-0", "out/plain/g"]);
    assert_eq!(rows("*/*/[a-z]"), ["out/_k=1/f", "out/plain/g"]);
    assert_eq!(rows("{out,_old}/plain"), ["_old/plain/h", "out/plain/g"]);
    // Whoever writes it means it.
    assert_eq!(rows("_*/plain"), ["_old/plain/h"]);
    assert_eq!(rows("out/_spark_metadata/?"), ["out/_spark_metadata/0"]);
}

#[test]
fn patterns_are_hadoops() {
    let names = ["in/a/1.csv", "in/a/1.json", "in/b/x/2.csv", "in/c/3.csv", "in/d{e}/4.csv", "in/5.csv"];
    let folder = both("hadoops", &names);
    let with = |pattern: &str, options: &Options| rows(&folder, "hadoops", pattern, options);
    let rows = |pattern: &str| with(pattern, &Options::new());
    assert_eq!(rows("in/{a,c}/*.{csv,txt}"), ["in/a/1.csv", "in/c/3.csv"]);
    assert_eq!(rows("in/[^a]/*.csv"), ["in/c/3.csv"]);
    assert_eq!(rows("in/**"), ["in/5.csv", "in/a/1.csv", "in/a/1.json", "in/c/3.csv", "in/d{e}/4.csv"]);
    assert_eq!(rows("in/d\\{e\\}"), ["in/d{e}/4.csv"]);
    let filter = Options::new().with("pathGlobFilter", "{1,3}.[^j]*");
    assert_eq!(with("in/*", &filter), ["in/a/1.csv", "in/c/3.csv"]);
    let deep = filter.with("pathGlobFilter", "{1,2}.csv").with("recursiveFileLookup", "true");
    assert_eq!(with("in/{a,b/x,nothing}", &deep), ["in/a/1.csv", "in/b/x/2.csv"]);
    let based = Options::new().with("basePath", "memory://hadoops/in").with("path", "memory://hadoops/in/{a,b/x}");
    assert_eq!(drain(open(&spec("text", &folder, based)).0.as_mut()).concat().len(), 3);
}

#[test]
fn a_pattern_that_is_none_is_refused_with_a_reason() {
    let folder = TempDir::new().unwrap();
    let message = |option: &str, text: &str| {
        let spec = spec("text", &folder, Options::new().with(option, text));
        SourceRegistry::with_builtins().factory(&spec).unwrap().schema(&spec).unwrap_err().to_string()
    };
    assert!(message("path", "/in/{a,b").contains("a `{` has no `}`"));
    assert!(message("path", "/in/[a").contains("a `[` has no `]`"));
    assert!(message("pathGlobFilter", "{a").contains("a `{` has no `}`"));
    assert!(message("path", "/in/{a,b/c}").contains("set basePath"));
    assert!(message("path", "file://in/a").contains("file:///path"));
}

#[test]
fn names_that_are_no_text_are_in_nobodys_way() {
    use std::os::unix::ffi::OsStrExt;
    let folder = TempDir::new().unwrap();
    put(folder.path(), "a", b"one", 1);
    fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"b\xff")), b"two").unwrap();
    let path = format!("{}/*", folder.path().display());
    assert_eq!(drain(open(&spec("text", &folder, Options::new().with("path", path))).0.as_mut()), [["one"]]);
}
