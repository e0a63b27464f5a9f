//! `files-at-scale N`: makes a folder of N small files, lists it, lists it again, and reads it with a query.
//!
//! The last line is `files: N files, …`; the exit code is 0 only when every row was read once.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use files_tests::scale::measure;
use std::process::ExitCode;

const MIB: u64 = 1 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [number] = arguments.as_slice() else {
        eprintln!("usage: files-at-scale N");
        return ExitCode::from(2);
    };
    let Ok(files) = number.parse() else {
        eprintln!("`{number}` is no number");
        return ExitCode::from(2);
    };
    let measured = tempfile::tempdir().map_err(Into::into).and_then(|folder| measure(folder.path(), files));
    match measured {
        Ok(figures) => {
            println!("first listing          {:8.3} s", figures.first_listing);
            println!("nothing new            {:8.6} s", figures.idle_listing);
            println!("one more file          {:8.3} s", figures.next_listing);
            println!("memory of the listing  {:8} MiB", figures.listing_memory.div_ceil(MIB));
            println!("query over all files   {:8.3} s, {} rows", figures.query, figures.rows);
            println!("log in the checkpoint  {:8} KiB", figures.log_bytes.div_ceil(1024));
            println!(
                "files: {} files, {} rows, first listing {:.3} s, later {:.6} s, with a new file {:.3} s, peak {} MiB",
                figures.files,
                figures.rows,
                figures.first_listing,
                figures.idle_listing,
                figures.next_listing,
                figures.peak_memory.div_ceil(MIB),
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
