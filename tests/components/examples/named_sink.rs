//! A sink of known columns that sends nothing anywhere.

use millstream_sdk::sink::prelude::*;

#[derive(Clone, Row)]
struct Pair {
    k: String,
    v: i64,
}

#[derive(Default)]
struct Named {
    sum: i64,
}

impl Sink for Named {
    const NAME: &'static str = "named";
    const MODES: &'static [OutputMode] = &[OutputMode::Append, OutputMode::Update];
    type Row = Pair;

    fn open(&mut self, _target: &Target, _mode: OutputMode) -> CallResult<bool> {
        Ok(true)
    }

    #[allow(clippy::panic, reason = "a test is about it")]
    fn process(&mut self, rows: Vec<Pair>, failed: &mut FailedRows) -> CallResult<()> {
        for (number, row) in rows.into_iter().enumerate() {
            match &*row.k {
                "bad" => failed.add(number, "no bad rows"),
                "panic" => panic!("what a row"),
                _ => self.sum += row.v,
            }
        }
        Ok(())
    }

    fn close(&mut self, _failure: Option<&str>) -> CallResult<()> {
        log(LogLevel::Info, &format!("the sum is {}", self.sum));
        Ok(())
    }
}

plugin!(sinks: Named);
