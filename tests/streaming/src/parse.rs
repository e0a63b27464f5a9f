//! From the text of a `.stream` file to a story.

use crate::story::{Action, PluginDeclaration, SourceDeclaration, Step, Story};
use anyhow::{Context, Result, anyhow, bail, ensure};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use millstream_common::OutputMode;
use millstream_common::duration::parse_micros;
use millstream_plan::{DropDuplicates, EventTime};
use millstream_wasm::FaultPolicy;
use std::sync::Arc;
use std::time::Duration;

const COUNTERS: [&str; 6] = ["watermark", "late_rows", "state_rows", "input_rows", "faults", "dead_letters"];

/// Reads a story.
///
/// # Errors
/// When a line is not understood; the line's number is in the message.
pub fn parse(name: &str, text: &str) -> Result<Story> {
    let mut story = Story {
        name: name.to_owned(),
        sources: Vec::new(),
        plugins: Vec::new(),
        settings: Vec::new(),
        sql: String::new(),
        mode: OutputMode::Append,
        ordered: false,
        straight_only: None,
        steps: Vec::new(),
    };
    ensure!(text.starts_with("# Goal: "), "story `{name}` does not begin with its goal");
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line)).peekable();
    while let Some((number, raw)) = lines.next() {
        let line = raw.split(" #").next().unwrap_or_default().trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut whole = line.to_owned();
        while let Some((_, next)) = lines.next_if(|(_, next)| next.starts_with(' ') && !next.trim().is_empty()) {
            whole.push('\n');
            whole.push_str(next.trim());
        }
        let mut action = match declare(&mut story, &whole) {
            Ok(true) => continue,
            Ok(false) => step(&whole),
            Err(error) => Err(error),
        }
        .with_context(|| format!("story `{name}`, line {number}: `{line}`"))?;
        if let Action::Batch { rows, .. } = &mut action {
            let begins = lines.next_if(|(_, next)| *next == "----").is_some();
            ensure!(begins, "story `{name}`, line {number}: a batch needs `----` and its rows, then an empty line");
            while let Some((_, row)) = lines.next_if(|(_, row)| !row.trim().is_empty()) {
                rows.push(row.trim().to_owned());
            }
        }
        story.steps.push(Step { line: number, text: whole, action });
    }
    ensure!(!story.sql.is_empty(), "story `{name}` has no query");
    Ok(story)
}

/// Takes a line of the head; answers whether it was one.
fn declare(story: &mut Story, line: &str) -> Result<bool> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match word {
        "source" => story.sources.push(source(rest)?),
        "plugin" => story.plugins.push(plugin(rest)?),
        "query" => story.sql = rest.to_owned(),
        "mode" => story.mode = rest.parse::<OutputMode>().map_err(|error| anyhow!("{error}"))?,
        "ordered" => story.ordered = true,
        "straight-only:" => story.straight_only = Some(rest.to_owned()),
        "set" => {
            let (name, value) = rest.split_once(' ').context("a name and a value are expected")?;
            story.settings.push((name.to_owned(), value.trim().to_owned()));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn source(text: &str) -> Result<SourceDeclaration> {
    let (name, rest) = text.split_once('(').context("columns in parentheses are expected")?;
    let (columns, rest) = rest.split_once(')').context("the parenthesis is not closed")?;
    let fields = columns.split(',').map(|column| {
        let (name, kind) = column.trim().split_once(' ').with_context(|| format!("`{column}` has no type"))?;
        Ok(Field::new(name, data_type(kind.trim())?, true))
    });
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let (rest, drop_duplicates) = match rest.split_once("drop-duplicates") {
        None => (rest, None),
        Some((rest, key)) => {
            let (key, within_watermark) = match key.trim().strip_prefix("within-watermark") {
                Some(key) => (key, true),
                None => (key, false),
            };
            let columns = key.split(',').map(|column| column.trim().to_owned()).filter(|column| !column.is_empty());
            (rest, Some(DropDuplicates { columns: columns.collect(), within_watermark }))
        }
    };
    let event_time = match rest.trim().strip_prefix("watermark ") {
        None if rest.trim().is_empty() => None,
        None => bail!("`{}` is not understood", rest.trim()),
        Some(rest) => {
            let (column, delay) = rest.split_once(" delay ").context("`watermark COLUMN delay TIME` is expected")?;
            let delay_us = parse_micros(delay).map_err(|error| anyhow!("{error}"))?;
            Some(EventTime { column: column.trim().to_owned(), delay_us })
        }
    };
    let schema = Arc::new(Schema::new(fields));
    Ok(SourceDeclaration { name: name.trim().to_owned(), schema, event_time, drop_duplicates })
}

fn data_type(name: &str) -> Result<DataType> {
    Ok(match name {
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "string" => DataType::Utf8,
        "int" => DataType::Int32,
        "bigint" => DataType::Int64,
        "double" => DataType::Float64,
        "boolean" => DataType::Boolean,
        _ => bail!("`{name}` is no type of a story"),
    })
}

fn plugin(text: &str) -> Result<PluginDeclaration> {
    let mut words = text.split_whitespace();
    let component = words.next().context("a component is expected")?.to_owned();
    let on_fault = match words.next().unwrap_or("fail") {
        "fail" => FaultPolicy::Fail,
        "skip" => FaultPolicy::Skip,
        "dead-letter" => FaultPolicy::DeadLetter,
        other => bail!("`{other}` is no policy"),
    };
    let deadline = match (words.next(), words.next()) {
        (None, _) => None,
        (Some("deadline-ms"), Some(ms)) => Some(Duration::from_millis(ms.parse()?)),
        _ => bail!("`deadline-ms N` is expected"),
    };
    Ok(PluginDeclaration { component, on_fault, deadline })
}

fn step(line: &str) -> Result<Action> {
    if let Some(text) = line.strip_prefix("batch fails: ") {
        return Ok(Action::Failure(text.trim().to_owned()));
    }
    if let Some(rest) = line.strip_prefix("add ") {
        let (stream, rows) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
        let row = |row: &str| {
            row.split(',').map(|value| (value.trim() != "null").then(|| value.trim().to_owned())).collect::<Vec<_>>()
        };
        let rows = rows.split(';').filter(|text| !text.trim().is_empty()).map(row).collect();
        return Ok(Action::Add { stream: stream.to_owned(), rows });
    }
    Ok(match line {
        "batch" => Action::Batch { with_data: true, rows: Vec::new() },
        "no-data batch" => Action::Batch { with_data: false, rows: Vec::new() },
        "idle" => Action::Idle,
        "restart" => Action::Restart,
        _ => {
            let (name, value) = line.split_once(' ').context("it is no step")?;
            ensure!(COUNTERS.contains(&name), "it is no step and no counter");
            Action::Counter { name: name.to_owned(), value: value.trim().to_owned() }
        }
    })
}
