//! Plugins: from nothing to a component, and what is in one.

use crate::console::{COUNTS, Console, repository};
use std::process::Command;

/// The least component: it is one, and it offers nothing.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";
/// The least core module.
const CORE: &[u8] = b"\0asm\x01\0\0\0";

#[test]
fn the_template_passes_its_tests_builds_and_describes_itself() {
    let console = Console::with(COUNTS);
    let sdk = repository("guest-sdk/rust").display().to_string();
    let made = console.run(&["plugin", "new", "my-words", "--lang", "rust", "--sdk", &sdk]).expect(0, &[]);
    made.prints(&["made my-words"]);
    let mut tests = Command::new("cargo");
    tests.args(["test", "--quiet"]).current_dir(console.path("my-words"));
    // One folder for the tests of all runs: the SDK is compiled once.
    tests.env("CARGO_TARGET_DIR", repository("target").join("template"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map(std::path::PathBuf::from);
    if let Some(target) = target {
        tests.env("CARGO_TARGET_DIR", target.join("template"));
    }
    let tested = tests.output().unwrap();
    let said = String::from_utf8_lossy(&tested.stdout);
    assert!(tested.status.success() && said.contains("2 passed"), "{said}{}", String::from_utf8_lossy(&tested.stderr));

    let built = console.run(&["plugin", "build", "my-words"]).expect(0, &["compiling my-words"]);
    built.prints(&["my-words/my_words.wasm\n", "function   table words(line Utf8"]);
    let file = "my-words/my_words.wasm";
    console.run(&["plugin", "inspect", file]).expect(0, &[]).prints(&[
        "digest     ",
        "world      millstream:plugin@",
        "function   scalar loudness(text Utf8",
        "may use    ",
    ]);
    let json = console.run(&["plugin", "inspect", file, "--json"]).expect(0, &[]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["functions"][1]["name"], "loudness");
    assert_eq!(json["functions"][1]["results"][0]["data_type"], "Float64");

    let query = "sql = \"SELECT word, loudness(word) AS loud FROM lines LATERAL VIEW words(value) w AS word\"\n\
                 trigger = \"available now\"\ncheckpoint = \"checkpoint\"\n\
                 [[source]]\nname = \"lines\"\nformat = \"text\"\noptions = { path = \"in\" }\n\
                 [plugin.words]\ncomponent = \"my-words/my_words.wasm\"\n\
                 [sink]\nformat = \"csv\"\noptions = { path = \"out\" }\n";
    console.write("query.toml", query);
    console.write("in/a.txt", "HELP me\n");
    console.run(&["run", "query.toml"]).expect(0, &["1 rows in, 2 rows out"]);
    let file = console.names("out").into_iter().find(|name| name.ends_with(".csv")).unwrap();
    assert_eq!(console.read(&format!("out/{file}")), "HELP,1.0\nme,0.0\n");
}

/// The template of another language passes its own tests, becomes a component, and answers what that of Rust answers.
fn template_works(language: &str, tests_say: &str) {
    template_finds(language, tests_say, "0.16666666666666666");
}

/// The same, with what it answers for a word whose one capital is no letter of ASCII.
fn template_finds(language: &str, tests_say: &str, loud: &str) {
    let console = Console::with(COUNTS);
    let sdk = repository("guest-sdk").display().to_string();
    console.run(&["plugin", "new", "my-words", "--lang", language, "--sdk", &sdk]).expect(0, &[]);
    let tested = console.run(&["plugin", "test", "my-words"]);
    assert!(tested.code == Some(0) && format!("{}{}", tested.stdout, tested.stderr).contains(tests_say), "{tested:#?}");
    let built = console.run(&["plugin", "build", "my-words"]).expect(0, &["compiling my-words"]);
    built.prints(&[
        "my-words/my_words.wasm\n",
        "function   table words(line Utf8",
        "function   scalar loudness(text Utf8",
    ]);
    console.run(&["plugin", "build", "my-words"]).expect(0, &["nothing changed in my-words"]);
    let query = "sql = \"SELECT word, loudness(word) AS loud FROM lines LATERAL VIEW words(value) w AS word\"\n\
                 trigger = \"available now\"\ncheckpoint = \"checkpoint\"\n\
                 [[source]]\nname = \"lines\"\nformat = \"text\"\noptions = { path = \"in\" }\n\
                 [plugin.words]\ncomponent = \"my-words/my_words.wasm\"\n\
                 [sink]\nformat = \"csv\"\noptions = { path = \"out\" }\n";
    console.write("query.toml", query);
    console.write("in/a.txt", "HELP me Ölberg\n");
    console.run(&["run", "query.toml"]).expect(0, &["1 rows in, 3 rows out"]);
    let file = console.names("out").into_iter().find(|name| name.ends_with(".csv")).unwrap();
    assert_eq!(console.read(&format!("out/{file}")), format!("HELP,1.0\nme,0.0\nÖlberg,{loud}\n"));
}

#[test]
fn the_template_of_go_works() {
    template_works("go", "ok  \tmy-words");
}

#[test]
fn the_template_of_c_works() {
    template_finds("c", "2 tests passed", "0.0");
}

#[test]
fn the_template_of_cpp_works() {
    template_finds("cpp", "2 tests passed", "0.0");
}

#[test]
fn the_template_of_zig_works() {
    template_finds("zig", "All 2 tests passed", "0.0");
}

#[test]
fn the_template_of_python_works() {
    template_works("python", "Ran 2 tests");
}

#[test]
fn the_template_of_javascript_works() {
    template_works("javascript", "# pass 2");
}

#[test]
fn the_template_of_typescript_works() {
    template_works("typescript", "# pass 2");
}

#[test]
fn what_a_language_needs_and_has_not_is_told_with_the_way_to_get_it() {
    let console = Console::with(COUNTS);
    let sdk = repository("guest-sdk").display().to_string();
    console.run(&["plugin", "new", "p", "--lang", "python", "--sdk", &sdk]).expect(0, &[]);
    let nowhere = console.path("nowhere").display().to_string();
    let mut build = console.command(&["plugin", "build", "p"]);
    let ended = build.env("MILLSTREAM_TOOLCHAINS", &nowhere).env("PATH", &nowhere).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("error: cannot find `componentize-py`, which builds plugins in python"), "{said}");
    assert!(
        said.contains("hint: run `./x toolchain` in a checkout, or `pip install componentize-py==0.25.1`"),
        "{said}"
    );
    console.write("p/plugin.toml", "langauge = \"python\"");
    console
        .run(&["plugin", "build", "p"])
        .expect(1, &["cannot understand `p/plugin.toml`", "unknown field `langauge`"]);
}

#[test]
fn a_plugin_is_not_made_over_what_is_there_nor_under_a_bad_name() {
    let console = Console::with(COUNTS);
    console.write("words/keep.txt", "mine");
    console
        .run(&["plugin", "new", "words"])
        .expect(1, &["error: cannot make a plugin in `words`: it is there already"]);
    assert_eq!(console.names("words"), ["keep.txt"]);
    console.run(&["plugin", "new", "../evil"]).expect(2, &["use a lower-case letter"]);
    console.run(&["plugin", "new", "a", "--lang", "cobol"]).expect(2, &["possible values: rust, python"]);
    console.run(&["plugin", "new", "a", "--sdk", "."]).expect(1, &["there is no millstream-sdk in `.`", "hint: "]);
    assert!(!console.path("a").exists());
}

#[test]
fn a_folder_without_a_plugin_and_source_that_does_not_compile_are_told() {
    let console = Console::with(COUNTS);
    console.run(&["plugin", "build", "."]).expect(1, &["error: there is no plugin in `.`", "hint: make one with"]);
    let sdk = repository("guest-sdk/rust").display().to_string();
    console.run(&["plugin", "new", "broken", "--sdk", &sdk]).expect(0, &[]);
    console.write("broken/src/lib.rs", "fn broken() -> u32 { \"text\" }\n");
    let ended = console
        .run(&["plugin", "build", "broken"])
        .expect(1, &["error: cannot compile the plugin in `broken`:", "mismatched types"]);
    assert_eq!(ended.stdout, "");
    assert!(!console.path("broken/broken.wasm").exists());
}

#[test]
fn files_that_are_no_components_of_ours_are_refused_with_what_they_are() {
    let console = Console::with(COUNTS);
    console.write("text.wasm", "hello");
    console.write("core.wasm", CORE);
    console.write("empty.wasm", EMPTY);
    let inspect = |file| console.run(&["plugin", "inspect", file]);
    inspect("text.wasm").expect(1, &["is not a WebAssembly component: it does not start like WebAssembly", "hint: "]);
    inspect("core.wasm").expect(1, &["it is a core module, not yet wrapped as a component"]);
    let empty = inspect("empty.wasm").expect(1, &["is a component of a foreign world: it exports nothing"]);
    empty.prints(&["size       8 bytes", "imports    nothing", "exports    nothing"]);
    inspect("none.wasm").expect(1, &["cannot read a component `none.wasm`"]);
}
