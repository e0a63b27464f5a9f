//! What the editions do, written a second time: the state of all keys, and what a batch makes of it.

use super::Shape;
use std::collections::{BTreeMap, BTreeSet};

/// The editions by their place among all: one, two, three, four.
fn form(edition: usize) -> u8 {
    [1, 2, 3, 2][edition]
}

/// The state of a group of `ledger`, with everything that any form has.
#[derive(Debug, Clone, Default)]
struct Group {
    total: i64,
    count: i64,
    greatest: Option<i64>,
}

/// The state of a key of `tracker`.
#[derive(Debug, Clone, Default)]
struct Key {
    sum: i64,
    calls: i64,
    last: Vec<i64>,
    seen: BTreeMap<i64, (i64, i64)>,
    timers: BTreeSet<i64>,
}

/// All state.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    groups: BTreeMap<(i64, i64), Group>,
    keys: BTreeMap<i64, Key>,
}

/// What a batch read: numbers from `first` up to, and without, `end`, all of one time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input {
    pub(super) first: i64,
    pub(super) end: i64,
    pub(super) at_ms: i64,
    pub(super) watermark_ms: i64,
}

impl Model {
    /// State in the form of one edition becomes state in the form of another.
    pub(super) fn migrate(&mut self, from: usize, to: usize) {
        let (from, to) = (form(from), form(to));
        for group in self.groups.values_mut() {
            if from == 1 || to == 1 {
                group.count = 0;
            }
            if from < 3 || to < 3 {
                group.greatest = None;
            }
        }
        for key in self.keys.values_mut() {
            if from == 1 || to == 1 {
                key.calls = 0;
                key.seen.values_mut().for_each(|(_, last)| *last = -1);
            }
        }
    }

    /// The rows of a batch, as the sink has them.
    pub(super) fn batch(&mut self, shape: Shape, edition: usize, input: Input) -> Vec<serde_json::Value> {
        match shape {
            Shape::Ledger => self.ledger(edition, input),
            Shape::Tracker => self.tracker(edition, input),
        }
    }

    fn ledger(&mut self, edition: usize, input: Input) -> Vec<serde_json::Value> {
        let second = (input.at_ms / 1000).div_euclid(8) * 8;
        for v in input.first..input.end {
            let group = self.groups.entry((second, v % 5)).or_default();
            group.total += v;
            if form(edition) >= 2 {
                group.count += 1;
            }
            if form(edition) == 3 {
                group.greatest = Some(group.greatest.map_or(v, |greatest| greatest.max(v)));
            }
        }
        let mut rows = Vec::new();
        self.groups.retain(|(second, k), Group { total, count, greatest }| {
            if (*second + 8) * 1000 > input.watermark_ms {
                return true;
            }
            let shown = match edition {
                0 => *total,
                1 => *total * 1000 + *count,
                2 => *total * 1_000_000 + *count * 1000 + greatest.map_or(-1, |greatest| greatest % 1000),
                _ => -(*total * 1000 + *count),
            };
            rows.push(serde_json::json!({ "second": second, "k": k, "total": shown }));
            false
        });
        rows
    }

    fn tracker(&mut self, edition: usize, input: Input) -> Vec<serde_json::Value> {
        let mut rows = Vec::new();
        let mut numbers: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for v in input.first..input.end {
            numbers.entry(v % 6).or_default().push(v);
        }
        let (counts, weighs) = (form(edition) >= 2, form(edition) == 3);
        for (k, numbers) in numbers {
            let key = self.keys.entry(k).or_default();
            key.sum += numbers.iter().sum::<i64>();
            if counts {
                key.calls += 1;
            }
            for v in numbers {
                key.last.push(v);
                let seen = key.seen.entry(v % 4).or_insert((0, -1));
                seen.0 += 1;
                if counts {
                    seen.1 = v;
                }
            }
            key.last.drain(..key.last.len().saturating_sub(3));
            if key.timers.is_empty() {
                key.timers.insert(input.at_ms + 3000);
            }
            let last = match weighs {
                true => format!("{:?}", key.last.iter().map(|v| (*v, v % 10)).collect::<Vec<_>>()),
                false => format!("{:?}", key.last),
            };
            let text = match counts {
                true => {
                    let seen: Vec<_> = key.seen.iter().map(|(of, (n, last))| (*of, *n, *last)).collect();
                    format!("{last} {seen:?} {} calls", key.calls)
                }
                false => {
                    let seen: Vec<_> = key.seen.iter().map(|(of, (n, _))| (*of, *n)).collect();
                    format!("{last} {seen:?}")
                }
            };
            let n = if edition == 3 { -key.sum } else { key.sum };
            rows.push(serde_json::json!({ "k": k, "what": "rows", "n": n, "text": text }));
        }
        for (k, key) in &mut self.keys {
            let due: Vec<i64> = key.timers.iter().copied().filter(|due| *due <= input.watermark_ms).collect();
            for due in due {
                key.timers.remove(&due);
                key.last.clear();
                let text = if counts { format!("{} in {} calls", key.sum, key.calls) } else { key.sum.to_string() };
                rows.push(serde_json::json!({ "k": k, "what": "timer", "n": due / 1000, "text": text }));
            }
        }
        rows
    }
}
