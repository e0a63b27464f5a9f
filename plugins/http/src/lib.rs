//! The sink `http`: rows of any columns, as JSON, in requests that the other side can tell apart.
//!
//! ```toml
//! [plugin.web]
//! component = "http_plugin.wasm"
//! deadline = "30 seconds"
//!
//! [sink]
//! format = "plugin"
//! options = { plugin = "web", url = "https://orders.example/rows", partitions = 4 }
//! ```
//!
//! The host file grants the hosts: `[grants.web]` with `http = ["orders.example"]`.
//!
//! | option | default | |
//! |---|---|---|
//! | `url` | | where the rows go |
//! | `method` | `POST` | |
//! | `format` | `lines` | `lines`: one JSON object per line; `array`: one JSON array |
//! | `rows_per_request` | 1000 | a partition with more rows is sent in several requests |
//! | `attempts` | 3 | how often a request is sent before the batch fails |
//! | `timeout_ms` | 10000 | how long an answer is waited for; the deadline of the plugin comes first |
//! | `headers` | | `Name: value`, several in lines of their own |
//!
//! Each request has the header `Idempotency-Key: QUERY-PARTITION-BATCH-NUMBER` and, for people, `Millstream-Batch`. A batch
//! that comes again, because a request failed or the process died, has the same requests with the same keys, byte by
//! byte: the rows of a partition are sorted by their text. A server that takes a key once has each row once.
//!
//! Statuses 2xx are success; 408, 409, 425, 429 and 5xx, and a server that is not there, are tried again and then fail the
//! batch as something outside; any other status fails it as a mistake in the query. Rows are sent when a partition is
//! complete, so all rows of a partition must have room in the plugin's `memory`.

mod options;
mod requests;

use millstream_sdk::sink::prelude::*;
use options::Options;

/// Sends the rows of one partition of a batch.
#[derive(Debug, Default)]
pub struct Http {
    options: Options,
    target: Option<Target>,
    rows: Vec<String>,
}

impl Sink for Http {
    const NAME: &'static str = "http";
    const OPTIONS: &'static [SinkOption] = &[
        SinkOption::required("url"),
        SinkOption::optional("method"),
        SinkOption::optional("format"),
        SinkOption::optional("rows_per_request"),
        SinkOption::optional("attempts"),
        SinkOption::optional("timeout_ms"),
        SinkOption::optional("headers"),
    ];
    type Row = AnyRow;

    fn open(&mut self, target: &Target, _mode: OutputMode) -> CallResult<bool> {
        self.options = Options::of(target)?;
        self.target = Some(target.clone());
        Ok(true)
    }

    fn process(&mut self, rows: Vec<AnyRow>, _failed: &mut FailedRows) -> CallResult<()> {
        self.rows.extend(rows.iter().map(|row| {
            let mut text = String::new();
            row.write_json(&mut text);
            text
        }));
        Ok(())
    }

    fn close(&mut self, failure: Option<&str>) -> CallResult<()> {
        match &self.target {
            Some(target) if failure.is_none() => requests::send(&self.options, target, std::mem::take(&mut self.rows)),
            _ => Ok(()),
        }
    }
}

plugin!(sinks: Http);
