//! A transactional sink over HTTP.

use millstream_sdk::sink::prelude::*;
use test_components::web_rows::{Rows, settle};

#[derive(Default)]
struct Ledger(Rows);

impl Sink for Ledger {
    const NAME: &'static str = "ledger";
    const OPTIONS: &'static [SinkOption] = &[SinkOption::required("url")];
    type Row = AnyRow;

    fn open(&mut self, target: &Target, _mode: OutputMode) -> CallResult<bool> {
        Ok(self.0.open(target, "ledger")? == "yes")
    }

    fn process(&mut self, rows: Vec<AnyRow>, _failed: &mut FailedRows) -> CallResult<()> {
        self.0.take(&rows);
        Ok(())
    }

    fn close(&mut self, _failure: Option<&str>) -> CallResult<()> {
        Ok(())
    }
}

impl TransactionalSink for Ledger {
    fn prepare(&mut self) -> CallResult<Vec<u8>> {
        self.0.send("prepare").map(String::into_bytes)
    }

    fn commit(target: &Target, token: &[u8]) -> CallResult<()> {
        settle(target, "commit", token)
    }

    fn abort(target: &Target, token: &[u8]) -> CallResult<()> {
        settle(target, "abort", token)
    }
}

plugin!(transactional_sinks: Ledger);
