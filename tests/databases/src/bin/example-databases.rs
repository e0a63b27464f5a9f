//! `example-databases`: PostgreSQL and MariaDB on loopback, for examples. The first two lines are their URLs; then it does
//! what the lines of its input say, answers each with what was asked for and `ok`, and ends with its input:
//!
//! - `postgresql do FILE` or `mysql do FILE` runs the statements of a file, one per line
//! - `postgresql rows FILE` or `mysql rows FILE` gives the rows of the statement in a file, values joined by `|`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use anyhow::{Context, Result, bail};
use databases_tests::{Database, Product, execute, rows};
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
    let servers = (Database::start(Product::Postgres), Database::start(Product::Mysql));
    let (postgresql, mysql) = (servers.0.database(), servers.1.database());
    let mut out = std::io::stdout().lock();
    writeln!(out, "{postgresql}\n{mysql}")?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[product, what, file] = words.as_slice() else { bail!("`{line}` is not PRODUCT WHAT FILE") };
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{file}`"))?;
        let statements: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let url = match product {
            "postgresql" => &postgresql,
            "mysql" => &mysql,
            _ => bail!("`{product}` is not known: postgresql or mysql"),
        };
        match what {
            "do" => execute(url, &statements),
            "rows" => rows(url, &text).iter().try_for_each(|row| writeln!(out, "{row}"))?,
            _ => bail!("`{what}` is not known: do or rows"),
        }
        writeln!(out, "ok")?;
        out.flush()?;
    }
    Ok(())
}
