//! Runs a folder of conformance cases: `conformance DIR [--only WORD] [--without TAG,TAG] [--state] [--out DIR]`.
//!
//! Each case is run batch by batch and compared by the suite's own `check.py`, which stands beside the folder; this
//! program decides nothing about right and wrong.

#![allow(clippy::print_stdout, reason = "the report is the purpose of this program")]

mod case;
mod render;
mod run;

use anyhow::{Context, Result, bail};
use case::{Case, cases_in};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

struct Arguments {
    folder: PathBuf,
    only: Option<String>,
    without: Vec<String>,
    with_state: bool,
    out: Option<PathBuf>,
}

fn arguments() -> Result<Arguments> {
    let mut parsed =
        Arguments { folder: PathBuf::new(), only: None, without: Vec::new(), with_state: false, out: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = |name: &str| words.next().with_context(|| format!("{name} needs a value"));
        match word.as_str() {
            "--only" => parsed.only = Some(value("--only")?),
            "--without" => parsed.without = value("--without")?.split(',').map(str::to_owned).collect(),
            "--out" => parsed.out = Some(value("--out")?.into()),
            "--state" => parsed.with_state = true,
            option if option.starts_with("--") => bail!("unknown option {option}"),
            folder => parsed.folder = folder.into(),
        }
    }
    if parsed.folder.as_os_str().is_empty() {
        bail!("usage: conformance DIR [--only WORD] [--without TAG,TAG] [--state] [--out DIR]");
    }
    Ok(parsed)
}

fn main() -> Result<ExitCode> {
    let arguments = arguments()?;
    let checker = arguments.folder.join("../check.py");
    if !checker.exists() {
        bail!("{} is not there: it compares the results", checker.display());
    }
    let scratch = tempfile::tempdir()?;
    let root = arguments.out.clone().unwrap_or_else(|| scratch.path().to_owned());
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let mut tags: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for case in cases_in(&arguments.folder)? {
        let unwanted = case.file.tags.iter().any(|tag| arguments.without.contains(tag));
        if unwanted || arguments.only.as_ref().is_some_and(|word| !case.name.contains(word.as_str())) {
            skipped += 1;
            continue;
        }
        let problems = problems_of(&case, &root.join(&case.name), &checker, arguments.with_state);
        let ok = problems.is_empty();
        println!("{} {}", if ok { "PASS" } else { "FAIL" }, case.name);
        problems.iter().for_each(|line| println!("    {line}"));
        for tag in &case.file.tags {
            let entry = tags.entry(tag.clone()).or_default();
            entry.0 += usize::from(ok);
            entry.1 += 1;
        }
        if ok { passed += 1 } else { failed += 1 }
    }
    for (tag, (ok, all)) in &tags {
        println!("tag {tag}: {ok} of {all}");
    }
    println!("conformance: {passed} passed, {failed} failed, {skipped} skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is wrong with a case, in the checker's words; nothing when it passes.
fn problems_of(case: &Case, out: &Path, checker: &Path, with_state: bool) -> Vec<String> {
    let attempt = || -> Result<Vec<String>> {
        if out.exists() {
            std::fs::remove_dir_all(out)?;
        }
        run::run_case(case, out)?;
        let mut command = Command::new("python3");
        command.arg(checker).arg(&case.folder).arg(out).arg("--progress");
        if with_state {
            command.arg("--state");
        }
        let checked = command.output().context("python3 cannot be started; it runs the suite's check.py")?;
        if checked.status.success() {
            return Ok(Vec::new());
        }
        let text = String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
        Ok(text.lines().skip(1).map(|line| line.trim().to_owned()).collect())
    };
    attempt().unwrap_or_else(|error| vec![format!("{error:#}")])
}
