//! `example-databases`: PostgreSQL and MariaDB on loopback, for examples. The first two lines are their URLs; then it does
//! what the lines of its input say, answers each with what was asked for and `ok`, and ends with its input:
//!
//! - `postgresql do FILE` or `mysql do FILE` runs the statements of a file, one per line
//! - `postgresql rows FILE` or `mysql rows FILE` gives the rows of the statement in a file, values joined by `|`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use anyhow::{Context, Result, bail};
use databases_tests::{MariaDb, Postgres, mariadb, postgres};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<()> {
    let servers = (Postgres::start(), MariaDb::start());
    let (postgresql, mysql) = (servers.0.database(), servers.1.database());
    let mut out = std::io::stdout().lock();
    writeln!(out, "{postgresql}\n{mysql}")?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[product, what, file] = words.as_slice() else { bail!("`{line}` is not PRODUCT WHAT FILE") };
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{file}`"))?;
        let statements: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let mut rows = Vec::new();
        match (product, what) {
            ("postgresql", "do") => statements.iter().for_each(|sql| postgres::execute(&postgresql, sql)),
            ("mysql", "do") => mariadb::execute(&mysql, &statements),
            ("postgresql", "rows") => rows = postgres::rows(&postgresql, &text),
            ("mysql", "rows") => rows = mariadb::rows(&mysql, &text),
            _ => bail!("`{line}` is not known: postgresql or mysql, do or rows, FILE"),
        }
        rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
        writeln!(out, "ok")?;
        out.flush()?;
    }
    Ok(())
}
