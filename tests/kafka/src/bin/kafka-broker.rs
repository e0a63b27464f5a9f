//! `kafka-broker`: one broker on loopback, for examples. Its first line is the address; then it does what the lines of its
//! input say, answers each with what was asked for and `ok`, and ends with its input:
//!
//! - `topic NAME PARTITIONS` makes a topic
//! - `send NAME FILE` sends the lines of a file
//! - `read NAME` gives the values of all records that are committed

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use anyhow::{Context, Result, bail};
use kafka_tests::{Isolation, Kafka, Record};
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
    let kafka = Kafka::start(1)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", kafka.bootstrap())?;
    for line in std::io::stdin().lines() {
        let line = line?;
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["topic", name, partitions] => kafka.create_topic(name, partitions.parse()?, &[])?,
            ["send", name, file] => {
                let lines = std::fs::read_to_string(file).with_context(|| format!("cannot read `{file}`"))?;
                kafka.produce(name, &lines.lines().map(Record::of).collect::<Vec<_>>())?;
            }
            ["read", name] => {
                for record in kafka.try_read(name, Isolation::Committed)? {
                    writeln!(out, "{}", record.text())?;
                }
            }
            _ => bail!("`{line}` is not known: topic NAME PARTITIONS, send NAME FILE, read NAME"),
        }
        writeln!(out, "ok")?;
        out.flush()?;
    }
    Ok(())
}
