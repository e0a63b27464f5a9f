//! A summary of many numbers that answers percentiles within a given error of rank, after Greenwald and Khanna
//! ("Space-efficient online computation of quantile summaries", 2001).
//!
//! The summary of fewer than `1 / (2 * error)` numbers is exact. Merging widens the error of interleaved samples.

use super::bytes;
use super::ordering::normal_double;

/// Numbers that wait before they are sorted in.
const WAITING: usize = 50_000;
/// Samples from which on a summary is compressed when waiting numbers are sorted in.
const COMPRESS_FROM: usize = 10_000;
/// Samples from which on the rows of a batch are sorted in one by one rather than merged as a summary.
const KEPT_MERGED: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    value: f64,
    /// How far its lowest rank is above the one of the sample before.
    step: u64,
    /// How far its highest rank is above its lowest.
    span: u64,
}

/// A summary of the numbers seen.
#[derive(Debug, Clone)]
pub(super) struct Quantiles {
    error: f64,
    samples: Vec<Sample>,
    /// How many numbers the samples stand for.
    count: u64,
    waiting: Vec<f64>,
    /// Whether numbers were sorted in since the last compression.
    loose: bool,
}

impl Quantiles {
    /// A summary of nothing with this relative error of rank.
    pub(super) fn new(error: f64) -> Self {
        Self { error, samples: Vec::new(), count: 0, waiting: Vec::new(), loose: false }
    }

    /// Whether nothing was seen.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && self.waiting.is_empty()
    }

    /// Takes a number in.
    pub(super) fn insert(&mut self, value: f64) {
        self.waiting.push(normal_double(value));
        if self.waiting.len() >= WAITING {
            self.settle();
            if self.samples.len() >= COMPRESS_FROM {
                self.tighten();
            }
        }
    }

    fn tighten(&mut self) {
        self.samples = compressed(&self.samples, self.allowance());
        self.loose = false;
    }

    fn allowance(&self) -> f64 {
        2.0 * self.error * self.count as f64
    }

    /// Sorts the waiting numbers in.
    fn settle(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by(f64::total_cmp);
        let mut merged = Vec::with_capacity(self.samples.len() + waiting.len());
        let mut old = self.samples.iter().copied().peekable();
        let last = waiting.len() - 1;
        for (index, &value) in waiting.iter().enumerate() {
            while let Some(sample) = old.next_if(|sample| sample.value.total_cmp(&value).is_le()) {
                merged.push(sample);
            }
            self.count += 1;
            let is_end = merged.is_empty() || (index == last && old.peek().is_none());
            let span = if is_end { 0 } else { self.allowance().floor() as u64 };
            merged.push(Sample { value, step: 1, span });
        }
        merged.extend(old);
        self.samples = merged;
        self.loose = true;
    }

    /// Sorts waiting numbers in and drops the samples that the error allows to drop.
    pub(super) fn compress(&mut self) {
        self.settle();
        if self.loose {
            self.tighten();
        }
    }

    /// Takes the numbers of a new batch in.
    pub(super) fn join_rows(&mut self, mut rows: Self) {
        if self.samples.len() > KEPT_MERGED && rows.samples.is_empty() {
            // A merge would widen the error of every sample a little, until none can be dropped any more.
            self.waiting.append(&mut rows.waiting);
            self.compress();
        } else {
            rows.compress();
            self.merge(rows);
        }
    }

    /// Takes another summary in. Neither may have numbers waiting.
    pub(super) fn merge(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        let widen_self = (2.0 * other.error * other.count as f64).floor() as u64;
        let widen_other = self.allowance().floor() as u64;
        let mut merged = Vec::with_capacity(self.samples.len() + other.samples.len());
        let (mut left, mut right) = (0, 0);
        while let (Some(&mine), Some(&theirs)) = (self.samples.get(left), other.samples.get(right)) {
            let (mut sample, widen) = if mine.value.total_cmp(&theirs.value).is_lt() {
                left += 1;
                (mine, if right > 0 { widen_self } else { 0 })
            } else {
                right += 1;
                (theirs, if left > 0 { widen_other } else { 0 })
            };
            sample.span += widen;
            merged.push(sample);
        }
        merged.extend_from_slice(&self.samples[left..]);
        merged.extend_from_slice(&other.samples[right..]);
        self.count += other.count;
        self.samples = merged;
        self.tighten();
    }

    /// The values at these percentages, in their order; nothing for an empty summary. No numbers may be waiting.
    pub(super) fn query(&self, percentages: &[f64]) -> Option<Vec<f64>> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let widest = self.samples.iter().map(|sample| sample.step + sample.span).max()?;
        let tolerance = (widest / 2) as f64;
        let mut by_size: Vec<usize> = (0..percentages.len()).collect();
        by_size.sort_by(|&a, &b| percentages[a].total_cmp(&percentages[b]));
        let mut result = vec![0.0; percentages.len()];
        let (mut index, mut lowest) = (0, first.step);
        for place in by_size {
            let percentage = percentages[place];
            result[place] = if percentage <= self.error {
                first.value
            } else if percentage >= 1.0 - self.error {
                last.value
            } else {
                let rank = (percentage * self.count as f64).ceil();
                loop {
                    let sample = self.samples[index];
                    if index + 1 == self.samples.len() {
                        lowest = 0;
                        break sample.value;
                    }
                    let highest = lowest + sample.span;
                    if highest as f64 - tolerance <= rank && rank <= lowest as f64 + tolerance {
                        break sample.value;
                    }
                    index += 1;
                    lowest += self.samples[index].step;
                }
            };
        }
        Some(result)
    }

    /// The summary as bytes; no numbers may be waiting. The error is not part of it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(10 + self.samples.len() * 10);
        bytes::put(&mut out, self.count);
        for sample in &self.samples {
            out.extend_from_slice(&sample.value.to_le_bytes());
            bytes::put(&mut out, sample.step);
            bytes::put(&mut out, sample.span);
        }
        out
    }

    /// The summary that these bytes describe; nothing if they describe none.
    pub(super) fn from_bytes(error: f64, mut input: &[u8]) -> Option<Self> {
        let count = bytes::get(&mut input)?;
        let mut samples = Vec::with_capacity(input.len() / 10);
        let mut seen = 0_u64;
        while !input.is_empty() {
            let value = bytes::get_double(&mut input)?;
            let (step, span) = (bytes::get(&mut input)?, bytes::get(&mut input)?);
            seen = seen.checked_add(step)?;
            samples.push(Sample { value, step, span });
        }
        let ordered = samples.windows(2).all(|pair| pair[0].value.total_cmp(&pair[1].value).is_le());
        (seen == count && ordered).then_some(Self { error, samples, count, waiting: Vec::new(), loose: false })
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.samples.capacity() * size_of::<Sample>() + self.waiting.capacity() * size_of::<f64>()
    }
}

/// Joins samples, from the largest down, as long as the joint uncertainty stays below `allowance`.
/// The smallest and the largest value always stay.
fn compressed(samples: &[Sample], allowance: f64) -> Vec<Sample> {
    let [first, inner @ .., last] = samples else { return samples.to_vec() };
    let mut kept = Vec::new();
    let mut head = *last;
    for sample in inner.iter().rev() {
        if ((sample.step + head.step + head.span) as f64) < allowance {
            head.step += sample.step;
        } else {
            kept.push(head);
            head = *sample;
        }
    }
    kept.push(head);
    kept.push(*first);
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(error: f64, values: impl IntoIterator<Item = f64>) -> Quantiles {
        let mut summary = Quantiles::new(error);
        values.into_iter().for_each(|value| summary.insert(value));
        summary.compress();
        summary
    }

    #[test]
    fn small_summaries_are_exact() {
        let summary = summary(1e-4, [10.0, 1.0]);
        assert_eq!(summary.query(&[0.5, 0.0, 1.0]), Some(vec![1.0, 1.0, 10.0]));
        assert_eq!(Quantiles::new(0.1).query(&[0.5]), None);
    }

    #[test]
    fn many_batches_stay_within_the_error_and_do_not_grow_without_end() {
        let error = 0.01;
        let values: Vec<f64> = (0..100_000_u64).map(|i| ((i * 7_919) % 100_000) as f64).collect();
        for size in [100, 3_333] {
            let mut whole = Quantiles::new(error);
            for part in values.chunks(size) {
                let mut rows = Quantiles::new(error);
                part.iter().for_each(|value| rows.insert(*value));
                whole.join_rows(rows);
                assert!(whole.samples.len() <= KEPT_MERGED + size, "{} samples", whole.samples.len());
            }
            let percentages = [0.05, 0.25, 0.5, 0.75, 0.95];
            for (percentage, value) in percentages.iter().zip(whole.query(&percentages).unwrap()) {
                assert!((value / 100_000.0 - percentage).abs() <= 2.0 * error, "{size}, {percentage}: {value}");
            }
        }
    }

    #[test]
    fn bytes_bring_the_same_summary_back_and_damaged_bytes_none() {
        let summary = summary(0.01, (0..5_000).map(|i| f64::from(i % 977)));
        let bytes = summary.to_bytes();
        let back = Quantiles::from_bytes(0.01, &bytes).unwrap();
        assert_eq!(back.samples, summary.samples);
        assert_eq!(back.to_bytes(), bytes);
        assert!(Quantiles::from_bytes(0.01, &bytes[..bytes.len() - 1]).is_none());
        assert!(Quantiles::from_bytes(0.01, &[1]).is_none());
    }
}
