//! Sources that do as they should: a script, the clock, and one that needs to be told by the plugin's own options.

mod script;

use millstream_sdk::source::prelude::*;
use millstream_sdk::{clock, config, random};

#[derive(Clone, Debug, PartialEq, Row)]
struct Event {
    at: Timestamp,
    k: String,
}

/// What the option `script` says.
struct Script(Vec<script::Step>);

impl Source for Script {
    const NAME: &'static str = "script";
    const OPTIONS: &'static [SourceOption] = &[SourceOption::required("script")];
    type Offset = usize;
    type Row = Event;

    fn open(options: &Options) -> CallResult<Self> {
        script::steps(options).map(Self)
    }

    fn initial_offset(&self) -> CallResult<usize> {
        Ok(0)
    }

    fn latest_offset(&self, start: usize, limits: Limits<usize>) -> CallResult<usize> {
        Ok(script::latest(&self.0, start, limits))
    }

    fn read(&self, range: OffsetRange<usize>, cursor: Option<&str>) -> CallResult<Page<Event>> {
        script::page(&self.0, range, cursor, |at, k| Event { at: Timestamp(at * 1_000_000), k: k.to_owned() })
    }
}

/// One row per second since the query began, with a random number that comes again with its batch.
struct Seconds;

#[derive(Clone, Debug, PartialEq, Row)]
struct Second {
    tick: i64,
    dice: i32,
    is_odd: Option<bool>,
}

impl Source for Seconds {
    const NAME: &'static str = "seconds";
    type Offset = i64;
    type Row = Second;

    fn open(_options: &Options) -> CallResult<Self> {
        Ok(Self)
    }

    fn initial_offset(&self) -> CallResult<i64> {
        Ok(clock::batch_time_ms() / 1000)
    }

    fn latest_offset(&self, start: i64, limits: Limits<i64>) -> CallResult<i64> {
        let now = limits.until.unwrap_or(clock::batch_time_ms() / 1000);
        let most = limits.max_rows.and_then(|rows| i64::try_from(rows).ok()).unwrap_or(i64::MAX);
        Ok(now.min(start.saturating_add(most)).max(start))
    }

    fn read(&self, range: OffsetRange<i64>, _cursor: Option<&str>) -> CallResult<Page<Second>> {
        let dice = i32::from(random::bytes(1)[0]);
        let second = |tick: i64| Second { tick, dice, is_odd: (tick % 3 > 0).then_some(tick % 2 > 0) };
        Ok(Page::last((range.start + 1..=range.end).map(second)))
    }
}

/// One row with an option of the plugin.
struct Told;

impl Source for Told {
    const NAME: &'static str = "told";
    const COLUMN: &'static str = "what";
    type Offset = String;
    type Row = Option<String>;

    fn open(_options: &Options) -> CallResult<Self> {
        Ok(Self)
    }

    fn initial_offset(&self) -> CallResult<String> {
        Ok("nothing".to_owned())
    }

    fn latest_offset(&self, _start: String, _limits: Limits<String>) -> CallResult<String> {
        Ok("all".to_owned())
    }

    fn read(&self, _range: OffsetRange<String>, _cursor: Option<&str>) -> CallResult<Page<Option<String>>> {
        Ok(Page::last([config::get("what")]))
    }
}

plugin!(sources: Script, Seconds, Told);
