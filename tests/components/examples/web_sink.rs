//! A sink over HTTP that writes at least once, the first edition: rows are posted when the partition is closed.

use millstream_sdk::sink::prelude::*;
use test_components::web_rows::Rows;

#[derive(Default)]
struct Web {
    rows: Rows,
    is_wanted: bool,
}

impl Sink for Web {
    const NAME: &'static str = "web";
    const OPTIONS: &'static [SinkOption] = &[SinkOption::required("url")];
    type Row = AnyRow;

    fn open(&mut self, target: &Target, _mode: OutputMode) -> CallResult<bool> {
        self.is_wanted = self.rows.open(target, "first")? == "yes";
        Ok(self.is_wanted)
    }

    fn process(&mut self, rows: Vec<AnyRow>, _failed: &mut FailedRows) -> CallResult<()> {
        self.rows.take(&rows);
        Ok(())
    }

    fn close(&mut self, failure: Option<&str>) -> CallResult<()> {
        match failure.is_none() && self.is_wanted {
            true => self.rows.send("rows").map(drop),
            false => Ok(()),
        }
    }
}

plugin!(sinks: Web);
