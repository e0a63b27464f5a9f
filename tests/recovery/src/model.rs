//! What a count must give per batch, by Spark's rules, in plain collections.
//!
//! It shares no code with the engine: windows are arithmetic on whole seconds, state is a map, the watermark two
//! numbers.

use std::collections::{BTreeMap, BTreeSet};

/// A row: seconds since 1970, and a key.
pub type Event = (i64, String);

/// What is counted, and how it goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Per window and key; each window once, when it is closed.
    WindowedAppend(Windows),
    /// Per window and key; what changed.
    WindowedUpdate(Windows),
    /// Per key; everything, each time.
    Complete,
}

/// Windows and lateness, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// How long a window is.
    pub size: i64,
    /// How far apart windows begin.
    pub slide: i64,
    /// How long late rows are waited for.
    pub delay: i64,
}

impl Windows {
    /// The starts of the windows over a time.
    fn over(&self, time: i64) -> impl Iterator<Item = i64> + use<> {
        let (size, slide) = (self.size, self.slide);
        let newest = time.div_euclid(slide) * slide;
        (0..).map(move |k| newest - k * slide).take_while(move |start| start + size > time)
    }
}

/// A query as the model sees it.
#[derive(Debug)]
pub struct Model {
    count: Count,
    /// By (start, key); the start is 0 without windows.
    state: BTreeMap<(i64, String), i64>,
    /// What the next batch evicts by.
    watermark: i64,
    /// What the last batch evicted by: the next one judges late rows by it.
    late: i64,
    is_first: bool,
}

impl Model {
    /// A query that has run no batch.
    pub fn new(count: Count) -> Self {
        Self { count, state: BTreeMap::new(), watermark: 0, late: 0, is_first: true }
    }

    /// Whether a batch without rows is due.
    pub fn wants_no_data(&self) -> bool {
        self.count != Count::Complete && !self.is_first && self.watermark > self.late
    }

    /// Runs a batch; answers its rows as text, sorted.
    pub fn batch(&mut self, events: &[Event]) -> Vec<String> {
        self.is_first = false;
        let windows = match self.count {
            Count::Complete => {
                for (_, key) in events {
                    *self.state.entry((0, key.clone())).or_insert(0) += 1;
                }
                let rows = self.state.iter().map(|((_, key), n)| format!("{key} | {n}"));
                return sorted(rows.collect());
            }
            Count::WindowedAppend(windows) | Count::WindowedUpdate(windows) => windows,
        };
        let (late, evict) = (self.late, self.watermark);
        let mut changed = BTreeSet::new();
        for (time, key) in events {
            for start in windows.over(*time) {
                if start + windows.size > late {
                    *self.state.entry((start, key.clone())).or_insert(0) += 1;
                    changed.insert((start, key.clone()));
                }
            }
            self.watermark = self.watermark.max(time - windows.delay);
        }
        let closed: Vec<_> = self.state.keys().filter(|(start, _)| start + windows.size <= evict).cloned().collect();
        let out: Vec<_> = match self.count {
            Count::WindowedAppend(_) => closed.clone(),
            _ => changed.into_iter().collect(),
        };
        let rows = out.iter().map(|(start, key)| {
            let n = self.state.get(&(*start, key.clone())).copied().unwrap_or(0);
            format!("{start} | {key} | {n}")
        });
        let rows = sorted(rows.collect());
        for group in closed {
            self.state.remove(&group);
        }
        self.late = evict;
        rows
    }
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(times: &[i64]) -> Vec<Event> {
        times.iter().map(|time| (*time, "k".to_owned())).collect()
    }

    #[test]
    fn the_model_gives_the_known_vectors() {
        let mut model = Model::new(Count::WindowedAppend(Windows { size: 10, slide: 10, delay: 5 }));
        assert!(model.batch(&events(&[1, 12])).is_empty());
        assert!(model.wants_no_data());
        assert!(model.batch(&[]).is_empty());
        assert!(!model.wants_no_data());
        assert!(model.batch(&events(&[3, 16])).is_empty());
        assert_eq!(model.batch(&[]), ["0 | k | 2"]);
        assert!(model.batch(&events(&[4])).is_empty());
        assert!(!model.wants_no_data());
    }

    #[test]
    fn sliding_windows_are_all_those_over_a_time() {
        let windows = Windows { size: 10, slide: 4, delay: 0 };
        assert_eq!(windows.over(13).collect::<Vec<_>>(), [12, 8, 4]);
        assert_eq!(windows.over(-1).collect::<Vec<_>>(), [-4, -8]);
    }
}
