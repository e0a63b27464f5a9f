//! Runs a case batch by batch, and writes down what came out.

use crate::case::Case;
use crate::render::{rows_as_json, write_lines};
use anyhow::Result;
use millstream_common::{Fault, Hint, Options, OutputMode, StopSignal, Trigger};
use millstream_plan::{DropDuplicates, EventTime};
use millstream_runtime::{
    Progress, QueryRun, QuerySpec, RuntimeError, Session, Settings, StateLimits, StreamSpec, TableSpec,
};
use millstream_sink::connectors::memory::MemorySinkTables;
use millstream_sink::{SinkRegistry, SinkSpec};
use millstream_source::connectors::memory::{MemoryStream, MemoryStreams};
use millstream_source::{SourceRegistry, SourceSpec};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

const TABLE: &str = "result";

/// Where a run was when it failed.
struct Failure {
    batch: Option<u64>,
    error: RuntimeError,
}

/// Runs `case` and writes `<batch>.jsonl`, `progress.jsonl` and, after a failure, `error.toml` to `out`.
pub(crate) fn run_case(case: &Case, out: &Path) -> Result<()> {
    std::fs::create_dir_all(out)?;
    let checkpoint = tempfile::tempdir()?;
    let (streams, tables) = (MemoryStreams::new(), MemorySinkTables::new());
    let mut sources = SourceRegistry::with_builtins();
    sources.register("memory", Arc::new(streams.clone()));
    let session = Session::builder().sources(sources).sinks(SinkRegistry::with_builtins_over(tables.clone())).build();
    let mut progress = Vec::new();
    let outcome = spec_of(case, checkpoint.path(), &streams)
        .and_then(|(spec, handles)| drive(case, &session, &spec, &handles, &mut progress));
    if let Some(table) = tables.get(TABLE) {
        for (batch, rows) in table.batches() {
            write_lines(&out.join(format!("{batch}.jsonl")), &rows_as_json(&rows)?)?;
        }
    }
    write_lines(&out.join("progress.jsonl"), &progress)?;
    match outcome {
        Ok(None) => Ok(()),
        Ok(Some(failure)) => write_failure(out, &failure),
        Err(error) => Err(error),
    }
}

fn spec_of(case: &Case, checkpoint: &Path, streams: &MemoryStreams) -> Result<(QuerySpec, Vec<MemoryStream>)> {
    let mut settings = Settings::default();
    for (name, value) in &case.file.conf {
        settings.set(name, value)?;
    }
    let mut handles = Vec::new();
    let mut stream_specs = Vec::new();
    for stream in &case.file.stream {
        let schema = Arc::new(arrow::datatypes::Schema::new(millstream_plan::ddl::parse_ddl(&stream.schema)?));
        handles.push(streams.create(&stream.name, schema));
        let event_time = match &stream.watermark {
            Some(watermark) => Some(EventTime {
                column: watermark.column.clone(),
                delay_us: millstream_common::duration::parse_micros(&watermark.delay)?,
            }),
            None => None,
        };
        let options = Options::new().with("maxBatchesPerTrigger", "1");
        let source = SourceSpec { name: stream.name.clone(), format: "memory".into(), schema: None, options };
        let drop_duplicates = stream
            .dedup
            .as_ref()
            .map(|dedup| DropDuplicates { columns: dedup.columns.clone(), within_watermark: dedup.within_watermark });
        stream_specs.push(StreamSpec { source, event_time, drop_duplicates });
    }
    let mut tables = Vec::new();
    for table in &case.file.table {
        let (schema, rows) = case.table(table)?;
        tables.push(TableSpec::Rows { name: table.name.clone(), schema, rows: vec![rows] });
    }
    let spec = QuerySpec {
        name: Some(TABLE.into()),
        streams: stream_specs,
        tables,
        plugins: Vec::new(),
        query: case.file.sql.clone().into(),
        mode: case.file.output_mode.parse::<OutputMode>()?,
        trigger: Trigger::Default,
        sink: SinkSpec { format: "memory".into(), options: Options::new() },
        checkpoint: Some(checkpoint.display().to_string()),
        checkpoint_options: Vec::new(),
        settings,
        uids: std::collections::BTreeMap::new(),
        state: StateLimits::default(),
        late_rows: None,
    };
    Ok((spec, handles))
}

/// One batch per input file; drains and restarts where the case says so; drains at the end.
fn drive(
    case: &Case,
    session: &Session,
    spec: &QuerySpec,
    streams: &[MemoryStream],
    progress: &mut Vec<Value>,
) -> Result<Option<Failure>> {
    let mut inputs = Vec::new();
    let mut files = 0;
    for (stream, handle) in case.file.stream.iter().zip(streams) {
        let input = case.input(stream)?;
        files = files.max(input.len());
        inputs.push((handle, input.into_iter()));
    }
    let open = || QueryRun::open(session, spec.clone(), StopSignal::new());
    let mut run = match open() {
        Ok(run) => run,
        Err(error) => return Ok(Some(Failure { batch: None, error })),
    };
    let mut next = 0;
    for file in 0..files {
        for (handle, input) in &mut inputs {
            if let Some(rows) = input.next() {
                handle.add_data(rows)?;
            }
        }
        if let Some(failure) = step(&mut run, Some(file), &mut next, progress)? {
            return Ok(Some(failure));
        }
        let drains = case.file.drain_after.contains(&file);
        if drains && let Some(failure) = drain(&mut run, &mut next, progress)? {
            return Ok(Some(failure));
        }
        if drains || case.file.restart_after.contains(&file) {
            run.close();
            run = open().map_err(|error| anyhow::anyhow!(millstream_common::describe_chain(&error)))?;
        }
    }
    let failure = drain(&mut run, &mut next, progress)?;
    run.close();
    Ok(failure)
}

fn drain(run: &mut QueryRun, next: &mut u64, progress: &mut Vec<Value>) -> Result<Option<Failure>> {
    const NO_DATA_BATCHES_MAX: usize = 10;
    for _ in 0..NO_DATA_BATCHES_MAX {
        let before = progress.len();
        if let Some(failure) = step(run, None, next, progress)? {
            return Ok(Some(failure));
        }
        if progress.len() == before {
            return Ok(None);
        }
    }
    anyhow::bail!("the query runs batches without data for ever")
}

fn step(run: &mut QueryRun, file: Option<usize>, next: &mut u64, progress: &mut Vec<Value>) -> Result<Option<Failure>> {
    match run.run_next() {
        Ok(Some(made)) => {
            *next = made.batch_id + 1;
            progress.push(progress_line(&made, file));
            Ok(None)
        }
        Ok(None) if file.is_some() => anyhow::bail!("the query ran no batch for file {file:?}"),
        Ok(None) => Ok(None),
        Err(error) => Ok(Some(Failure { batch: Some(*next), error })),
    }
}

fn progress_line(progress: &Progress, file: Option<usize>) -> Value {
    let operators: Vec<Value> = progress
        .state_operators
        .iter()
        .map(|operator| {
            let mut line = json!({
                "operatorName": operator.operator_name,
                "numRowsTotal": operator.num_rows_total,
                "numRowsUpdated": operator.num_rows_updated,
                "numRowsRemoved": operator.num_rows_removed,
                "numRowsDroppedByWatermark": operator.num_rows_dropped_by_watermark,
            });
            for (name, value) in &operator.custom_metrics {
                line[name] = (*value).into();
            }
            line
        })
        .collect();
    json!({
        "batchId": progress.batch_id,
        "file": file,
        "watermark": progress.event_time.get("watermark"),
        "numInputRows": progress.num_input_rows,
        "stateOperators": operators,
    })
}

fn write_failure(out: &Path, failure: &Failure) -> Result<()> {
    let message = millstream_common::describe_chain(&failure.error);
    let class = message.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(class, _)| class);
    let phase = match failure.batch {
        Some(_) => "run",
        None if failure.error.fault() == Fault::Query => "analysis",
        None => "start",
    };
    let mut table = toml::Table::new();
    table.insert("phase".into(), phase.into());
    if let Some(batch) = failure.batch {
        table.insert("batch".into(), i64::try_from(batch)?.into());
    }
    table.insert("error_class".into(), class.into());
    table.insert("message".into(), message.into());
    Ok(std::fs::write(out.join("error.toml"), toml::to_string(&table)?)?)
}
