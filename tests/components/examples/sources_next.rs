//! Another edition of `sources`: the same script, whose keys come out loud: other rows for the same ranges.

mod script;

use millstream_sdk::source::prelude::*;

#[derive(Clone, Debug, PartialEq, Row)]
struct Event {
    at: Timestamp,
    k: String,
}

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
        script::page(&self.0, range, cursor, |at, k| Event { at: Timestamp(at * 1_000_000), k: k.to_uppercase() })
    }
}

plugin!(sources: Script);
