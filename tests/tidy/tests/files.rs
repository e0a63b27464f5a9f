//! Rules about single files: size, name, module documentation.

use tidy::{TextFile, Violations, files};

const MOST_LINES: usize = 800;
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 4] = ["utils.rs", "helpers.rs", "types.rs", "manager.rs"];

fn is_test(file: &TextFile) -> bool {
    file.name() == "tests.rs" || file.name().ends_with("_tests.rs") || file.path.contains("/tests/")
}

#[test]
fn no_file_is_longer_than_one_can_read() {
    let mut violations = Violations::default();
    for file in files().iter().filter(|file| file.is_rust_below(&["host/", "guest-sdk/", "plugins/", "tests/"])) {
        let lines = file.text.lines().count();
        if lines > MOST_LINES {
            violations.add(&file.path, format!("has {lines} lines"));
        }
    }
    violations.expect_none(&format!("A file has at most {MOST_LINES} lines: split it by ideas, one folder for all."));
}

#[test]
fn every_module_says_what_it_is() {
    let mut violations = Violations::default();
    let of_house = |file: &&TextFile| file.is_rust_below(&["host/", "guest-sdk/", "plugins/"]) && !is_test(file);
    for file in files().iter().filter(of_house) {
        let first = file.text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
        if !first.is_some_and(|line| line.starts_with("//!")) {
            violations.add(&file.path, "begins without `//!`");
        }
    }
    violations.expect_none(
        "Begin the file with `//!`: what it is; where it stands in the flow; the rule of its life; what it does not do.",
    );
}

#[test]
fn file_names_say_what_is_inside() {
    let mut violations = Violations::default();
    for file in files().iter().filter(|file| EMPTY_NAMES.contains(&file.name())) {
        violations.add(&file.path, "says nothing about its content");
    }
    violations.expect_none("Name the file after its main type, or move each item to the file it belongs to.");
}
