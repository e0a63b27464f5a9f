//! The sink `ledger` without its transaction.

use millstream_sdk::sink::prelude::*;
use test_components::web_rows::Rows;

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

plugin!(sinks: Ledger);
