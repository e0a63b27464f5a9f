//! `databases N [KILLS]`: N rows through a query into PostgreSQL and MariaDB, with process and server killed at random.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use anyhow::{Context, Result, bail};
use databases_tests::{Database, Product, proof};
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
    let (mut written, mut killed, mut restarts) = (0, 0, 0);
    for product in [Product::Postgres, Product::Mysql] {
        let server = Database::start(product);
        let proof = proof::into(&server, &program, rows, kills)?;
        println!(
            "{:<11} {} rows, {} kills, {} restarts of the server",
            server.name(),
            proof.rows,
            proof.kills,
            proof.restarts
        );
        (written, killed, restarts) = (written + proof.rows, killed + proof.kills, restarts + proof.restarts);
    }
    println!("databases: {written} rows, {killed} kills, {restarts} restarts, 0 lost, 0 doubled");
    Ok(())
}
