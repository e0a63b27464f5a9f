//! The streams of a story as files behind a web server, and the plugin that reads them.

use crate::{TextServer, component};
use anyhow::{Context, Result};
use millstream_common::Options;
use millstream_runtime::PluginSpec;
use millstream_source::SourceSpec;
use millstream_wasm::{FaultPolicy, HttpGrant, Permissions, PluginLimits};
use std::sync::Arc;
use std::time::Duration;

/// The plugin's name in the query.
const PLUGIN: &str = "tail";

/// Writes rows at the end of the stream's file.
pub(crate) fn add(server: &TextServer, stream: &str, rows: &[Vec<Option<String>>]) -> Result<()> {
    let mut lines = String::new();
    for row in rows {
        let (time, rest) = row.split_first().context("a row has a time")?;
        lines.push_str(&format!("1970-01-01T{}Z", time.as_deref().unwrap_or_default()));
        for cell in rest {
            lines.push(' ');
            lines.push_str(cell.as_deref().unwrap_or_default());
        }
        lines.push('\n');
    }
    server.append(stream, lines.as_bytes());
    Ok(())
}

/// The stream as a query names it.
pub(crate) fn source(server: &TextServer, stream: &str) -> SourceSpec {
    let options = Options::new().with("plugin", PLUGIN).with("url", server.url(stream)).with("chunkBytes", "64");
    SourceSpec { name: stream.to_owned(), format: "plugin".into(), schema: None, options }
}

/// The plugin, which may reach the server.
pub(crate) fn plugin(server: &TextServer, fresh_instances: bool) -> Result<PluginSpec> {
    let hosts = vec![server.host().parse().map_err(anyhow::Error::msg)?];
    let http = Some(HttpGrant { hosts, private: true, response_bytes: 1 << 20 });
    let limits = PluginLimits {
        deadline: Duration::from_secs(30),
        permissions: Arc::new(Permissions { http, ..Permissions::default() }),
        recycle_every_call: fresh_instances,
        ..PluginLimits::default()
    };
    Ok(PluginSpec { name: PLUGIN.into(), component: component("tail_plugin")?, limits, on_fault: FaultPolicy::Fail })
}
