//! The heat of pages since the beginning, every second, of clicks that a server sends over a socket.
//!
//! A line is `page,level,visits,dwell,like`, as `041.html,7,5,0.9,-1`. The folder `CHECKPOINT` keeps the heats, so the
//! program can be stopped and goes on.
//!
//! ```text
//! nc -lk 9999                                                    # in one terminal; type lines
//! cargo run -p millstream-dstream --example page_heat_state -- localhost 9999 CHECKPOINT
//! ```

use millstream_dstream::{DStreamError, StreamingContext};
use std::error::Error;
use std::time::Duration;

/// Page and heat of a line; nothing for a line that is none.
fn heat(line: &str) -> Option<(String, f64)> {
    let mut parts = line.split(',');
    let page = parts.next()?.to_owned();
    let mut number = || parts.next()?.trim().parse::<f64>().ok();
    let (level, visits, dwell, like) = (number()?, number()?, number()?, number()?);
    Some((page, 0.1 * level + 0.9 * visits + 0.4 * dwell + like))
}

fn program(host: &str, port: u16) -> Result<StreamingContext, DStreamError> {
    let context = StreamingContext::new(Duration::from_secs(1))?;
    let heats = context.socket_text_stream(host, port)?.flat_map(|line: String| heat(&line));
    let totals = heats
        .update_state_by_key(|new: Vec<f64>, total: Option<f64>| Some(new.iter().sum::<f64>() + total.unwrap_or(0.0)));
    totals.named("heat").print()?;
    Ok(context)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, checkpoint] = &arguments[..] else {
        return Err("say where the server is, and the folder: HOST PORT CHECKPOINT".into());
    };

    let port = port.parse()?;
    let context = StreamingContext::get_or_create(checkpoint, || program(host, port))?;
    context.start()?;
    Ok(context.await_termination()?)
}
