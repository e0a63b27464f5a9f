//! What people get wrong, and what they are told.

use crate::console::{COPY, COUNTS, Console};

#[test]
fn every_command_has_help_with_an_example() {
    let console = Console::with(COUNTS);
    for command in [
        &["run"][..],
        &["check"],
        &["explain"],
        &["swap"],
        &["status"],
        &["stop"],
        &["plugin", "new"],
        &["plugin", "build"],
        &["plugin", "inspect"],
        &["checkpoint", "show"],
        &["checkpoint", "verify"],
        &["checkpoint", "repartition"],
        &["state"],
    ] {
        let arguments = [command, &["--help"]].concat();
        let example = format!("  millstream {}", command.join(" "));
        let ended = console.run(&arguments).expect(0, &[]).prints(&["Usage: millstream", "Example", &example]);
        assert_eq!(ended.stderr, "");
    }
    console.run(&["--help"]).expect(0, &[]).prints(&["run", "check", "swap", "Exit codes: 0 fine"]);
    let version = console.run(&["--version"]).expect(0, &[]);
    assert_eq!(version.stdout, format!("millstream {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn unknown_options_and_missing_arguments_end_with_usage() {
    let console = Console::with(COUNTS);
    console.run(&["run", "query.toml", "--fast"]).expect(2, &["error: unexpected argument '--fast'", "Usage:"]);
    console.run(&["run"]).expect(2, &["error: the following required arguments", "QUERY.toml"]);
    console.run(&["fly"]).expect(2, &["error: unrecognized subcommand 'fly'"]);
    console.run(&["run", "query.toml", "--set", "x"]).expect(2, &["write a name, `=`, and a value"]);
}

#[test]
fn a_missing_query_file_is_the_askers_fault() {
    let console = Console::with(COUNTS);
    let ended = console
        .run(&["run", "other.toml"])
        .expect(1, &["error: cannot read a query file `other.toml`: No such file", "hint: check the path"]);
    assert_eq!(ended.stdout, "");
    console.run(&["check", "."]).expect(1, &["error: cannot read a query file `.`: it is not a plain file"]);
}

#[test]
fn what_is_wrong_with_a_query_is_told_before_anything_is_made() {
    for (query, wanted) in [
        (COUNTS.replace("GROUP BY", "GRUP BY"), "error: the query cannot be planned: "),
        (COUNTS.replace("FROM numbers", "FROM others"), "others"),
        (COUNTS.replace("complete", "append"), "error: "),
        (COUNTS.replace("noop", "nop"), "error: the sink has the unknown format `nop`; there are avro, console"),
        (
            COUNTS.replace("rowsPerBatch", "rowsPerBtch"),
            "option `rowsPerBtch` is unknown to source `numbers`; it takes rowsPerBatch",
        ),
        (
            COUNTS.replace("output_mode", "mode"),
            "error: query.toml:4: unknown field `mode`, expected one of `name`, `sql`",
        ),
        (
            COPY.replace("trigger =", "output_mode = \"complete\"\ntrigger ="),
            "cannot take output mode complete; it takes append",
        ),
        (
            COPY.replace("checkpoint = \"checkpoint\"", ""),
            "error: sink `json` writes exactly once, and for that the query needs a checkpoint",
        ),
        (
            format!("{COUNTS}[plugin.words]\ncomponent = \"query.toml\"\n"),
            "error: plugin `words` is not a WebAssembly component",
        ),
    ] {
        let console = Console::with(&query);
        for command in ["check", "run", "explain"] {
            let ended = console.run(&[command, "query.toml"]).expect(1, &["error: ", wanted]);
            assert_eq!(ended.stdout, "", "{query}");
        }
        assert_eq!(console.names(""), ["query.toml"], "{query}");
    }
}

#[test]
fn a_wrong_environment_is_named() {
    let console = Console::with(COUNTS);
    let run = |name: &str, value: &str| {
        crate::console::finish(console.command(&["check", "query.toml"]).env(name, value).spawn().unwrap())
    };
    run("MILLSTREAM_TRIGER", "once").expect(
        1,
        &[
            "error: environment variable `MILLSTREAM_TRIGER` is unknown",
            "hint: unset it; there are MILLSTREAM_CHECKPOINT",
        ],
    );
    run("MILLSTREAM_LOG", "=,=").expect(1, &["error: environment variable `MILLSTREAM_LOG` cannot be"]);
    run("MILLSTREAM_TRIGGER", "once").expect(0, &[]).prints(&["trigger     once"]);
}

#[test]
fn a_reader_that_goes_away_ends_the_program_without_noise() {
    let console = Console::with(COUNTS);
    for arguments in [&["explain", "query.toml"][..], &["check", "query.toml", "--show-settings"], &["run", "--help"]] {
        let mut child = console.command(arguments).spawn().unwrap();
        drop(child.stdout.take());
        let ended = crate::console::finish(child);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_query_that_no_longer_fits_its_checkpoint_is_refused_with_all_that_differs() {
    let console = Console::with(COUNTS);
    console.run(&["run", "query.toml", "--trigger", "once"]).expect(0, &[]);
    let commits = console.names("checkpoint/commits");
    let changed = COUNTS.replace("count(*) AS n", "count(*) AS n, max(value) AS m").replace("rate-micro-batch", "rate");
    console.write("query.toml", changed.replace("rowsPerBatch", "rowsPerSecond"));
    for command in ["check", "run"] {
        console.run(&[command, "query.toml"]).expect(
            1,
            &[
                "error: the query does not fit its checkpoint: ",
                "source `numbers` has the connector `rate`, its offsets are of `rate-micro-batch`; ",
                "the state of `query-aggregate` has changed: value column `max(numbers.value)[value]` Int64 is new",
                "hint: take the changes back, or start a new checkpoint",
            ],
        );
    }
    let named = COUNTS
        .replace("SELECT value % 3", "WITH totals AS (SELECT value % 3")
        .replace("GROUP BY value % 3", "GROUP BY value % 3) SELECT part, n FROM totals");
    console.write("query.toml", &named);
    console.run(&["run", "query.toml"]).expect(
        1,
        &[
            "`query-aggregate` is gone",
            "`totals-aggregate` is new",
            "`totals-aggregate = \"query-aggregate\"` below [uid]",
        ],
    );
    assert_eq!(console.names("checkpoint/commits"), commits);
    console.write("query.toml", named + "[uid]\ntotals-aggregate = \"query-aggregate\"\n");
    console.run(&["run", "query.toml", "--trigger", "once"]).expect(0, &["done        1 batch"]);
}
