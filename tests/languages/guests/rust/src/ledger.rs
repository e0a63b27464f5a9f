//! The source.

use millstream_sdk::source::prelude::*;

/// Rows of a page.
const PAGE: u64 = 1000;

/// As many rows as an option says.
pub(crate) struct Ledger {
    rows: u64,
    away: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Row)]
pub(crate) struct Entry {
    n: i64,
    label: Option<String>,
    at: Timestamp,
}

impl Source for Ledger {
    const NAME: &'static str = "ledger";
    const OPTIONS: &'static [SourceOption] = &[SourceOption::required("rows"), SourceOption::optional("away")];
    type Offset = u64;
    type Row = Entry;

    fn open(options: &Options) -> CallResult<Self> {
        let away = options.get("away").map(str::parse).transpose()?;
        Ok(Self { rows: options.parse("rows")?, away })
    }

    fn initial_offset(&self) -> CallResult<u64> {
        Ok(0)
    }

    fn latest_offset(&self, start: u64, limits: Limits<u64>) -> CallResult<u64> {
        let end = limits.until.unwrap_or(self.rows);
        Ok(end.min(start.saturating_add(limits.max_rows.unwrap_or(u64::MAX))))
    }

    fn read(&self, range: OffsetRange<u64>, cursor: Option<&str>) -> CallResult<Page<Entry>> {
        let begin = cursor.map_or(Ok(range.start), str::parse)?;
        let end = range.end.min(begin + PAGE);
        if let Some(away) = self.away.filter(|away| (begin..end).contains(away)) {
            return Err(CallError::unavailable(format!("row {away} is away")));
        }
        let entry = |n: u64| Entry {
            n: n as i64,
            label: (n % 3 != 0).then(|| format!("row {n}")),
            at: Timestamp(n as i64 * 1_000_000),
        };
        let rows = (begin..end).map(entry);
        Ok(if end < range.end { Page::before(end, rows) } else { Page::last(rows) })
    }

    fn commit(&self, offset: u64) -> CallResult<()> {
        if offset > self.rows {
            return Err(CallError::invalid_input(format!("there are {} rows, not {offset}", self.rows)));
        }
        Ok(())
    }
}
