//! `recovery-child INPUT OUTPUT CHECKPOINT [stay]`: runs a windowed count until its input is at its end, or for ever.

#![allow(clippy::print_stderr, reason = "a program")]

use recovery_tests::child::{Folders, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, checkpoint, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: recovery-child INPUT OUTPUT CHECKPOINT [stay]");
        return ExitCode::from(2);
    };
    let folders = Folders { input: input.into(), output: output.into(), checkpoint: checkpoint.into() };
    match run(&folders, rest.first().is_some_and(|word| word == "stay")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
