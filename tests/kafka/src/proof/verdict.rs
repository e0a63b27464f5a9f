//! What came out, held against what must.

use super::{BEGIN_MS, KEYS, WINDOW_MS};
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Counts per window and key, as they came out.
#[derive(Debug, Default)]
pub struct Found {
    /// Start of the window in seconds and key, with all counts that were written for them.
    counts: BTreeMap<(u64, String), Vec<u64>>,
}

/// Records that are missing, and records that are counted too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Verdict {
    pub(super) lost: u64,
    pub(super) doubled: u64,
}

impl Found {
    /// Takes a count of the output: start of the window in seconds, `|`, count.
    ///
    /// # Errors
    /// When it is none.
    pub fn add(&mut self, key: &str, value: &str) -> Result<()> {
        let (start, count) = value.split_once('|').with_context(|| format!("the value `{value}` is not ours"))?;
        let (start, count) = (start.parse()?, count.parse()?);
        self.counts.entry((start, key.to_owned())).or_default().push(count);
        Ok(())
    }

    /// How many windows and keys came out.
    pub(super) fn len(&self) -> u64 {
        self.counts.len() as u64
    }

    /// Holds the counts against those of records with the numbers from 0 to `records`, each a millisecond after the one
    /// before, keys in turns.
    pub(super) fn judge(&self, records: u64) -> Verdict {
        let mut verdict = Verdict::default();
        let mut known = 0;
        for ((start, key), expected) in expected(records) {
            let found = self.counts.get(&(start, key)).map(Vec::as_slice).unwrap_or_default();
            known += u64::from(!found.is_empty());
            let sum: u64 = found.iter().sum();
            verdict.lost += expected.saturating_sub(sum);
            verdict.doubled += sum.saturating_sub(expected);
            // Two halves are as wrong as two wholes.
            if found.len() > 1 && sum == expected {
                verdict.doubled += 1;
            }
        }
        // What nobody has written.
        verdict.doubled += self.len() - known;
        verdict
    }
}

/// The windows and keys, with their counts.
fn expected(records: u64) -> impl Iterator<Item = ((u64, String), u64)> {
    (0..records.div_ceil(WINDOW_MS)).flat_map(move |window| {
        let (first, end) = (window * WINDOW_MS, ((window + 1) * WINDOW_MS).min(records));
        (0..KEYS).filter_map(move |key| {
            // Windows begin with key 0.
            let count = (end - first + KEYS - 1 - key) / KEYS;
            (count > 0).then(|| (((BEGIN_MS + first) / 1000, format!("k{key}")), count))
        })
    })
}

/// How many windows and keys come out of so many records.
pub(super) fn windows(records: u64) -> u64 {
    expected(records).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_too_much_is_counted_in_records() {
        let mut found = Found::default();
        assert_eq!((windows(10_000), windows(10_050)), (100, 150));
        for ((start, key), count) in expected(20_000) {
            found.add(&key, &format!("{start}|{count}")).unwrap();
        }
        assert_eq!(found.judge(20_000), Verdict::default());
        assert_eq!(found.judge(30_000), Verdict { lost: 10_000, doubled: 0 });
        found.add("k3", "1700000010|100").unwrap();
        found.add("stray", "1700000010|1").unwrap();
        assert_eq!(found.judge(20_000), Verdict { lost: 0, doubled: 101 });
        assert!(found.add("k", "nonsense").is_err());
    }
}
