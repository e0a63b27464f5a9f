//! The heat of pages over the last minute, every ten seconds, of click files that come into a folder.
//!
//! A line is `page,level,visits,dwell,like`, as `041.html,7,5,0.9,-1`. Batches are five seconds long; each window goes on
//! from the one before it: what enters is added, what leaves is taken off. The folder `CHECKPOINT` keeps the window, so the
//! program can be stopped and goes on.
//!
//! ```text
//! cargo run -p millstream-dstream --example page_heat_window -- CLICKS CHECKPOINT
//! mv clicks-1.csv CLICKS/                                        # each file at once, by a rename
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

fn program(clicks: &str) -> Result<StreamingContext, DStreamError> {
    let context = StreamingContext::new(Duration::from_secs(5))?;
    let heats = context.text_file_stream(clicks)?.flat_map(|line: String| heat(&line));
    let minute = heats.reduce_by_key_and_window_inverse(
        |a, b| a + b,
        |a, b| a - b,
        Duration::from_secs(60),
        Duration::from_secs(10),
    );
    let hottest = minute.named("heat").transform(|rows| rows.sort_by(|(_, heat)| (heat * 1000.0) as i64, false));
    hottest.pprint(10)?;
    Ok(context)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [clicks, checkpoint] = &arguments[..] else { return Err("say the folders: CLICKS CHECKPOINT".into()) };

    let context = StreamingContext::get_or_create(checkpoint, || program(clicks))?;
    context.start()?;
    Ok(context.await_termination()?)
}
