//! A sink whose token tells everything that it was told: what was opened, the rows, what was asked of it.

use millstream_sdk::sink::prelude::*;

/// Any columns, as lines of JSON.
#[derive(Default)]
struct Diary {
    lines: Vec<String>,
    calls: usize,
}

impl Sink for Diary {
    const NAME: &'static str = "diary";
    const OPTIONS: &'static [SinkOption] = &[SinkOption::optional("skip"), SinkOption::optional("bad")];
    type Row = AnyRow;

    fn open(&mut self, target: &Target, mode: OutputMode) -> CallResult<bool> {
        let Target { query_id, partition, batch, options } = target;
        self.lines.push(format!("open {query_id} {partition} {batch} {mode:?} {options:?}"));
        if target.option("skip") == Some("refuse") {
            return Err(CallError::unavailable("the other side is closed"));
        }
        Ok(target.option("skip").is_none())
    }

    fn process(&mut self, rows: Vec<AnyRow>, failed: &mut FailedRows) -> CallResult<()> {
        self.calls += 1;
        for (number, row) in rows.iter().enumerate() {
            let mut line = String::new();
            row.write_json(&mut line);
            if line.contains("\"bad\"") {
                failed.add(number, "a bad row");
                continue;
            }
            #[allow(clippy::panic, reason = "a test is about it")]
            if line.contains("\"worse\"") {
                panic!("a worse row");
            }
            if line.contains("\"worst\"") {
                return Err(CallError::invalid_input("the worst row"));
            }
            self.lines.push(line);
        }
        Ok(())
    }

    fn close(&mut self, failure: Option<&str>) -> CallResult<()> {
        log(LogLevel::Info, &format!("close {failure:?}"));
        Ok(())
    }
}

impl TransactionalSink for Diary {
    fn prepare(&mut self) -> CallResult<Vec<u8>> {
        self.lines.push(format!("prepare after {} calls", self.calls));
        Ok(self.lines.join("\n").into_bytes())
    }

    fn commit(target: &Target, token: &[u8]) -> CallResult<()> {
        check(target, token)
    }

    fn abort(target: &Target, token: &[u8]) -> CallResult<()> {
        check(target, token)
    }
}

/// The token is of this target.
fn check(target: &Target, token: &[u8]) -> CallResult<()> {
    let begin = format!("open {} {} {} ", target.query_id, target.partition, target.batch);
    match String::from_utf8_lossy(token).starts_with(&begin) {
        true => Ok(()),
        false => Err(CallError::internal(std::fmt::Error)),
    }
}

plugin!(transactional_sinks: Diary);
