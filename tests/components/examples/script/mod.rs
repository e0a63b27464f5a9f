//! A source that gives what its options say, step by step; shared by the editions of a plugin.

use millstream_sdk::source::prelude::*;

/// Rows that one call gives.
const PAGE: usize = 2;

/// One step: second and key of each row.
pub(crate) type Step = Vec<(i64, String)>;

/// The steps of a script `1 a, 2 b; 7 c`: rows between commas, steps between semicolons.
pub(crate) fn steps(options: &Options) -> CallResult<Vec<Step>> {
    let script = options.require("script")?;
    let row = |row: &str| -> CallResult<(i64, String)> {
        let (second, key) = row.trim().split_once(' ').ok_or_else(|| CallError::invalid_input(format!("`{row}`")))?;
        Ok((second.parse::<i64>()?, key.to_owned()))
    };
    script.split(';').map(|step| step.split(',').filter(|row| !row.trim().is_empty()).map(row).collect()).collect()
}

/// The offset after as many whole steps as the limits let, at least one if there is one.
pub(crate) fn latest(steps: &[Step], start: usize, limits: Limits<usize>) -> usize {
    let until = limits.until.unwrap_or(steps.len()).min(steps.len());
    let (mut end, mut rows) = (start, 0);
    while end < until {
        rows += steps[end].len() as u64;
        if end > start && limits.max_rows.is_some_and(|most| rows > most) {
            break;
        }
        end += 1;
    }
    end
}

/// A page of the rows of some steps.
pub(crate) fn page<T>(
    steps: &[Step],
    range: OffsetRange<usize>,
    cursor: Option<&str>,
    row: impl Fn(i64, &str) -> T,
) -> CallResult<Page<T>> {
    let first: usize = cursor.map_or(Ok(0), str::parse)?;
    let steps = steps.get(range.start..range.end).ok_or_else(|| CallError::internal("no such range"))?;
    let rows: Vec<T> = steps.iter().flatten().skip(first).take(PAGE).map(|(at, key)| row(*at, key)).collect();
    let all: usize = steps.iter().map(Vec::len).sum();
    Ok(if first + PAGE < all { Page::before(first + PAGE, rows) } else { Page::last(rows) })
}
