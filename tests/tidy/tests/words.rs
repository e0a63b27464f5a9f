//! Rules about words: one word per idea, and nothing about the machine it was written on.

use tidy::{Violations, files, root};

/// Documents and tests that quote other people's words.
const QUOTING: [&str; 2] = ["tests/tidy/", "Cargo.lock"];

fn is_quoting(path: &str) -> bool {
    QUOTING.iter().any(|quoting| path.starts_with(quoting))
}

#[test]
fn a_batch_is_called_batch() {
    // The start of Unix time has this name everywhere, and Wasmtime's deadlines are counted in it.
    const ALLOWED: [&str; 3] = ["UNIX_EPOCH", "Unix epoch", "epoch deadline"];
    let mut violations = Violations::default();
    for file in files() {
        if file.path.starts_with("host/wasm/") || is_quoting(&file.path) {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            let rest = ALLOWED.iter().fold(line.to_owned(), |line, allowed| line.replace(allowed, ""));
            if rest.to_ascii_lowercase().contains("epoch") {
                violations.add(format!("{}:{}", file.path, number + 1), line.trim());
            }
        }
    }
    violations.expect_none("Say batch for a batch, and write out `the start of 1970` for the other thing.");
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    const MACHINE: [&str; 6] = ["/work/", "/root/", "/farm/", "/home/", "/Users/", "C:\\"];
    const REGISTRIES: [&str; 6] =
        ["crates.io", "pypi.org", "registry.npmjs", "deb.debian.org", "proxy.golang.org", "repo1.maven"];
    let mut violations = Violations::default();
    for file in files().iter().filter(|file| !is_quoting(&file.path)) {
        for (number, line) in file.text.lines().enumerate() {
            let found = MACHINE.iter().chain(&REGISTRIES).find(|word| line.contains(**word));
            if let Some(word) = found {
                violations.add(format!("{}:{}", file.path, number + 1), format!("`{word}`"));
            }
        }
    }
    violations
        .expect_none("Make paths relative to the repository, or ask the environment; clients know their registries.");
}

#[test]
fn every_document_has_one_title() {
    let mut violations = Violations::default();
    for file in files().iter().filter(|file| file.path.ends_with(".md")) {
        let mut is_code = false;
        let mut titles = 0;
        for line in file.text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            titles += usize::from(!is_code && line.starts_with("# "));
        }
        if titles != 1 {
            violations.add(&file.path, format!("has {titles} titles"));
        }
    }
    violations.expect_none("A document has exactly one line that begins with `# `; parts of it begin with `## `.");
}

#[test]
fn commands_in_documents_exist() {
    let script = std::fs::read_to_string(root().join("x")).expect("the script `x` can be read");
    let known = |command: &str| script.lines().any(|line| line.trim_start().starts_with(&format!("{command})")));
    let mut violations = Violations::default();
    for file in files().iter().filter(|file| file.path.ends_with(".md")) {
        for (number, line) in file.text.lines().enumerate() {
            for (at, _) in line.match_indices("./x ") {
                let rest = &line[at + 4..];
                let command: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
                if !known(&command) {
                    violations.add(format!("{}:{}", file.path, number + 1), format!("`./x {command}`"));
                }
            }
        }
    }
    violations.expect_none("`x` has no such command: correct the document, or add the command to `x`.");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut violations = Violations::default();
    for file in files().iter().filter(|file| file.path.ends_with(".md")) {
        let folder = root().join(&file.path).parent().expect("a file lies in a folder").to_owned();
        let mut is_code = false;
        for (number, line) in file.text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            for (at, _) in line.match_indices("](").filter(|(at, _)| !is_code && !is_in_inline_code(line, *at)) {
                let target = line[at + 2..].split([')', '#', ' ']).next().unwrap_or_default();
                if target.is_empty() || target.contains("://") {
                    continue;
                }
                if !folder.join(target).exists() {
                    violations.add(format!("{}:{}", file.path, number + 1), format!("`{target}` is not there"));
                }
            }
        }
    }
    violations.expect_none("Correct the link; it is relative to the document's folder.");
}

/// Whether byte `at` of a line of Markdown lies between backticks.
fn is_in_inline_code(line: &str, at: usize) -> bool {
    line[..at].matches('`').count() % 2 == 1
}
