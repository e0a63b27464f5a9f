//! Times the path of a new user, for each language or for those that are named.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use test_examples::first_steps::{LANGUAGES, walk};

/// What a new user should wait at most, on a machine that has built a plugin of the language before.
const FIRST_RESULT: Duration = Duration::from_secs(120);
const EDIT_TO_SWAPPED: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for name in &wanted {
        ensure!(LANGUAGES.iter().any(|language| language.name == name), "there is no template in `{name}`");
    }
    let program = std::env::current_exe()?.with_file_name("millstream");
    println!(
        "{:<12}{:>7}{:>9}{:>7}{:>16}{:>11}{:>7}{:>19}",
        "seconds", "new", "build", "run", "= first result", "rebuild", "swap", "= edit to swapped"
    );
    let mut slow = Vec::new();
    let mut walked = 0;
    for language in LANGUAGES.iter().filter(|language| wanted.is_empty() || wanted.iter().any(|n| n == language.name)) {
        let folder = tempfile::tempdir()?;
        let steps = walk(&program, folder.path(), language).with_context(|| format!("with {}", language.name))?;
        let (first, edit) = (steps.first_result(), steps.edit_to_swapped());
        let [new, build, run, rebuild, swap] =
            [steps.new, steps.build, steps.run, steps.rebuild, steps.swap].map(|time| time.as_secs_f64());
        println!(
            "{:<12}{new:>7.1}{build:>9.1}{run:>7.1}{:>16.1}{rebuild:>11.1}{swap:>7.1}{:>19.1}",
            language.name,
            first.as_secs_f64(),
            edit.as_secs_f64()
        );
        if first > FIRST_RESULT || edit > EDIT_TO_SWAPPED {
            slow.push(language.name);
        }
        walked += 1;
    }
    ensure!(slow.is_empty(), "beyond 120 s to the first result or 60 s to the swap: {}", slow.join(", "));
    println!("first steps: {walked} languages, each within 120 s to the first result and 60 s from edit to swapped");
    Ok(())
}
