//! `databases N [KILLS]`: N rows through a query into PostgreSQL and MariaDB, with process and server killed at random.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use anyhow::{Context, Result, bail};
use databases_tests::proof;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (rows, kills) = match arguments.as_slice() {
        ["child", format, url, checkpoint, rows] => return proof::child(format, url, checkpoint, rows),
        [rows] => (rows.parse().context("how many rows?")?, 20),
        [rows, kills] => (rows.parse().context("how many rows?")?, kills.parse().context("how many kills?")?),
        _ => bail!("usage: databases N [KILLS]"),
    };
    let program = std::env::current_exe()?;
    let postgres = proof::into_postgres(&program, rows, kills)?;
    println!(
        "PostgreSQL  {} rows, {} kills, {} restarts of the server",
        postgres.rows, postgres.kills, postgres.restarts
    );
    let mariadb = proof::into_mariadb(&program, rows, kills)?;
    println!("MariaDB     {} rows, {} kills, {} restarts of the server", mariadb.rows, mariadb.kills, mariadb.restarts);
    let (kills, restarts) = (postgres.kills + mariadb.kills, postgres.restarts + mariadb.restarts);
    println!("databases: {} rows, {kills} kills, {restarts} restarts, 0 lost, 0 doubled", postgres.rows + mariadb.rows);
    Ok(())
}
