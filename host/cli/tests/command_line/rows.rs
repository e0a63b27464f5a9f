//! A row, and everything that made it.

use crate::console::{Console, repository};

const SHIFTS: &str = r#"
name = "words"
sql = "SELECT word, count(*) AS n, max(shift(length(word))) AS top FROM lines LATERAL VIEW explode(split(value, ' ')) w AS word GROUP BY word"
output_mode = "update"
trigger = "available now"
checkpoint = "checkpoint"
[[source]]
name = "lines"
format = "text"
options = { path = "in", maxFilesPerTrigger = 1 }
[plugin.shifts]
component = "shifts.wasm"
[sink]
format = "noop"
"#;

/// A plugin of one function.
fn shifts(console: &Console) {
    let sdk = repository("guest-sdk/rust").display().to_string();
    console.run(&["plugin", "new", "shifts", "--dir", "source", "--sdk", &sdk]).expect(0, &[]);
    let source = "//! A test.\nuse millstream_sdk::prelude::*;\n/// A number.\n#[scalar_function]\nfn shift(value: i32) -> i64 { i64::from(value) + 100 }\nplugin!(shift);\n";
    console.write("source/src/lib.rs", source);
    console.run(&["plugin", "build", "source", "--out", "shifts.wasm"]).expect(0, &[]);
}

#[test]
fn a_row_comes_out_again_from_its_folder_alone() {
    let console = Console::with(SHIFTS);
    shifts(&console);
    for (number, line) in ["to be or not", "to be that is", "the question to be", "or be it so"].iter().enumerate() {
        console.write(&format!("in/{number}.txt"), line);
        // Files are read in the order of their times.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    console.run(&["run", "query.toml"]).expect(0, &[]);
    let explain = ["explain-row", "query.toml", "--batch", "2", "--where", "word=be", "--out", "row"];
    let explained = console.run(&explain).expect(0, &[]).prints(&[
        "row        {\"word\":\"be\",\"n\":3,\"top\":102}",
        "batch      2 of ",
        "plugin     shifts ",
        "input      1 of 1 rows of the batch: without any of them it does not come out",
        "           1 rows of lines (value)",
        "folder     row",
    ]);
    let row = explained.stdout.lines().next().unwrap().trim_start_matches("row        ").to_owned();
    console.run(&explain).expect(1, &["`row` cannot be used: it is not empty"]);
    let missing = ["explain-row", "query.toml", "--batch", "2", "--where", "word=nobody", "--out", "none"];
    console.run(&missing).expect(1, &["batch 2 gave no such row", "hint: "]);
    let wrong = ["explain-row", "query.toml", "--batch", "2", "--where", "wort=be", "--out", "none2"];
    console.run(&wrong).expect(1, &["the result has no column `wort`, but word, n, top"]);
    let numbered = ["explain-row", "query.toml", "--batch", "0", "--row", "0", "--out", "first", "--json"];
    let numbered = console.run(&numbered).expect(0, &[]);
    let document: serde_json::Value = serde_json::from_str(&numbered.stdout).unwrap();
    assert_eq!((document["batch"].as_u64(), document["narrowed"]["is_least"].as_bool()), (Some(0), Some(true)));

    // On another machine there is nothing but the folder.
    let elsewhere = Console::with("");
    std::fs::rename(console.path("row"), elsewhere.path("moved")).unwrap();
    drop(console);
    let again = elsewhere.run(&["replay", "moved"]).expect(0, &[]);
    again.prints(&[&format!("row        {row}\n"), "the same"]);
    let json = elsewhere.run(&["replay", "moved", "--json"]).expect(0, &[]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json["row"].as_str(), json["isSame"].as_bool()), (Some(&*row), Some(true)));
    // It can be made again as often as one likes, and what is damaged is told.
    elsewhere.run(&["replay", "moved", "--rows"]).expect(0, &[]).prints(&["{\"word\":\"be\",\"n\":3,\"top\":102}\n"]);
    elsewhere.write("moved/row.json", "{}");
    elsewhere.run(&["replay", "moved"]).expect(1, &["the folder `moved` cannot be used: `row.json`: "]);
    elsewhere.run(&["replay", "query.toml"]).expect(1, &["the batch is missing"]);
}
