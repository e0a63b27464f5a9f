//! An estimate of how many distinct hashes were seen, after HyperLogLog++ (Heule, Nunkesser, Hall, 2013).
//!
//! Registers are kept as a sorted list while few are set and as an array later. Both forms give the same estimate
//! and one stored form, which depends on the registers only.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::bytes;

/// Up to which number of distinct values linear counting is the better estimate, for precision 4 to 18.
const LINEAR_UP_TO: [f64; 15] = [
    10.0, 20.0, 40.0, 80.0, 220.0, 400.0, 900.0, 1_800.0, 3_100.0, 6_500.0, 15_500.0, 20_000.0, 50_000.0, 120_000.0,
    350_000.0,
];
/// How many neighbours in the table the bias is averaged over.
const NEIGHBOURS: usize = 6;
const LIST: u8 = 0;
const ARRAY: u8 = 1;

struct Biases {
    raw: Vec<f64>,
    bias: Vec<f64>,
}

static BIASES: LazyLock<Vec<Biases>> = LazyLock::new(|| {
    let numbers = |line: &str| line.split(' ').skip(2).filter_map(|number| number.parse().ok()).collect();
    let lines: Vec<&str> = include_str!("hll_bias.txt").lines().filter(|line| !line.starts_with('#')).collect();
    lines.chunks_exact(2).map(|pair| Biases { raw: numbers(pair[0]), bias: numbers(pair[1]) }).collect()
});

/// The precisions that can be asked for.
pub(super) const PRECISIONS: std::ops::RangeInclusive<u32> = 4..=24;

/// The bits of a hash that choose a register, for this relative standard deviation.
pub(super) fn precision(deviation: f64) -> Option<u32> {
    let bits = (2.0 * (1.106 / deviation).ln() / std::f64::consts::LN_2).ceil();
    let wanted = f64::from(*PRECISIONS.start())..=f64::from(*PRECISIONS.end());
    wanted.contains(&bits).then_some(bits as u32)
}

#[derive(Debug, Clone)]
enum Registers {
    List(BTreeMap<u32, u8>),
    Array(Vec<u8>),
}

/// The registers of one set.
#[derive(Debug, Clone)]
pub(super) struct HyperLogLog {
    precision: u32,
    registers: Registers,
}

impl HyperLogLog {
    /// The empty set.
    pub(super) fn new(precision: u32) -> Self {
        Self { precision, registers: Registers::List(BTreeMap::new()) }
    }

    fn size(&self) -> usize {
        1 << self.precision
    }

    /// Takes the hash of a value in.
    pub(super) fn insert(&mut self, hash: u64) {
        let index = (hash >> (64 - self.precision)) as u32;
        let rest = (hash << self.precision) | (1 << (self.precision - 1));
        self.raise(index, rest.leading_zeros() as u8 + 1);
    }

    fn raise(&mut self, index: u32, value: u8) {
        match &mut self.registers {
            Registers::Array(array) => {
                let register = &mut array[index as usize];
                *register = value.max(*register);
            }
            Registers::List(list) => {
                let register = list.entry(index).or_insert(0);
                *register = value.max(*register);
                if list.len() > (1 << self.precision) / 4 {
                    let mut array = vec![0; 1 << self.precision];
                    list.iter().for_each(|(&index, &value)| array[index as usize] = value);
                    self.registers = Registers::Array(array);
                }
            }
        }
    }

    fn each(&self, mut apply: impl FnMut(u32, u8)) {
        match &self.registers {
            Registers::List(list) => list.iter().for_each(|(&index, &value)| apply(index, value)),
            Registers::Array(array) => {
                (0..).zip(array).filter(|(_, value)| **value > 0).for_each(|(index, &value)| apply(index, value));
            }
        }
    }

    /// Takes another set in. Its precision must be the same.
    pub(super) fn merge(&mut self, other: &Self) {
        other.each(|index, value| self.raise(index, value));
    }

    /// The estimated number of distinct hashes.
    pub(super) fn estimate(&self) -> i64 {
        let size = self.size() as f64;
        let (mut set, mut inverse) = (0_usize, 0.0);
        self.each(|_, value| {
            set += 1;
            inverse += 1.0 / (1_u64 << value) as f64;
        });
        let unset = (self.size() - set) as f64;
        let alpha = match self.precision {
            4 => 0.673,
            5 => 0.697,
            6 => 0.709,
            _ => 0.7213 / (1.0 + 1.079 / size),
        };
        let raw = alpha * size * size / (inverse + unset);
        let table = BIASES.get(self.precision as usize - 4);
        let corrected = match table {
            Some(table) if raw < 5.0 * size => raw - bias(table, raw),
            _ => raw,
        };
        let linear = size * (size / unset).ln();
        let threshold = LINEAR_UP_TO.get(self.precision as usize - 4);
        let use_linear = unset > 0.0 && (threshold.is_some_and(|threshold| linear <= *threshold) || raw <= 2.5 * size);
        // Half up, also for the negative zero of an empty set.
        (if use_linear { linear } else { corrected } + 0.5).floor() as i64
    }

    /// The registers as bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match &self.registers {
            Registers::List(list) => {
                let mut out = vec![LIST];
                let mut before = 0;
                for (&index, &value) in list {
                    bytes::put(&mut out, u64::from(index - before));
                    out.push(value);
                    before = index;
                }
                out
            }
            Registers::Array(array) => {
                let mut out = Vec::with_capacity(1 + array.len() / 4 * 3);
                out.push(ARRAY);
                for four in array.chunks_exact(4) {
                    let packed = four.iter().fold(0_u32, |packed, &value| packed << 6 | u32::from(value));
                    out.extend_from_slice(&packed.to_be_bytes()[1..]);
                }
                out
            }
        }
    }

    /// The registers that these bytes describe; nothing if they describe none of this precision.
    pub(super) fn from_bytes(precision: u32, input: &[u8]) -> Option<Self> {
        let (&form, mut input) = input.split_first()?;
        let mut set = Self::new(precision);
        let highest = (64 - precision + 1) as u8;
        match form {
            LIST => {
                let mut index = 0_u64;
                while !input.is_empty() {
                    index = index.checked_add(bytes::get(&mut input)?)?;
                    let (&value, rest) = input.split_first()?;
                    input = rest;
                    if index >= set.size() as u64 || value > highest {
                        return None;
                    }
                    set.raise(index as u32, value);
                }
            }
            ARRAY if input.len() == set.size() / 4 * 3 => {
                let mut array = Vec::with_capacity(set.size());
                for three in input.chunks_exact(3) {
                    let packed = u32::from_be_bytes([0, three[0], three[1], three[2]]);
                    array.extend([18, 12, 6, 0].map(|shift| (packed >> shift & 0x3f) as u8));
                }
                if array.iter().any(|value| *value > highest) {
                    return None;
                }
                set.registers = Registers::Array(array);
            }
            _ => return None,
        }
        Some(set)
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        match &self.registers {
            Registers::List(list) => list.len() * 16,
            Registers::Array(array) => array.len(),
        }
    }
}

/// The mean bias of the raw estimates nearest to this one.
fn bias(table: &Biases, raw: f64) -> f64 {
    let nearest = table.raw.partition_point(|estimate| *estimate < raw);
    let distance = |index: usize| (raw - table.raw[index]).powi(2);
    let mut low = (nearest + 1).saturating_sub(NEIGHBOURS);
    let mut high = (low + NEIGHBOURS).min(table.raw.len());
    while high < table.raw.len() && distance(high) < distance(low) {
        low += 1;
        high += 1;
    }
    table.bias[low..high].iter().sum::<f64>() / (high - low) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scattered(number: u64) -> u64 {
        let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    #[test]
    fn the_table_has_as_many_biases_as_estimates_for_every_precision() {
        assert_eq!(BIASES.len(), 15);
        for table in BIASES.iter() {
            assert_eq!(table.raw.len(), table.bias.len());
            assert!(table.raw.len() > 70 && table.raw.is_sorted_by(|a, b| a <= b || (a - b).abs() < 100.0));
        }
    }

    #[test]
    fn the_default_deviation_takes_nine_bits() {
        assert_eq!(precision(0.05), Some(9));
        assert_eq!(precision(0.01), Some(14));
        assert_eq!(precision(0.39), Some(4));
        assert_eq!(precision(0.5), None);
        assert_eq!(precision(f64::NAN), None);
        assert_eq!(precision(0.0), None);
        assert_eq!(precision(-1.0), None);
    }

    #[test]
    fn estimates_stay_within_a_few_deviations_over_the_whole_range() {
        for bits in [4, 6, 9, 12, 14, 20] {
            let mut set = HyperLogLog::new(bits);
            let mut seen = 0_u64;
            for goal in [0_u64, 1, 3, 10, 100, 500, 3_000, 20_000, 200_000] {
                while seen < goal {
                    set.insert(scattered(seen));
                    seen += 1;
                }
                let deviation = 1.04 / f64::from(1_u32 << bits).sqrt();
                let error = (set.estimate() - goal as i64).abs() as f64;
                assert!(error <= 1.0 + 4.0 * deviation * goal as f64, "{bits} bits, {goal}: {}", set.estimate());
            }
        }
    }

    #[test]
    fn bytes_bring_the_same_set_back_and_damaged_bytes_none() {
        for count in [0_u64, 1, 100, 127, 129, 5_000] {
            let mut set = HyperLogLog::new(9);
            (0..count).for_each(|number| set.insert(scattered(number)));
            let bytes = set.to_bytes();
            let back = HyperLogLog::from_bytes(9, &bytes).unwrap();
            assert_eq!(back.to_bytes(), bytes);
            assert_eq!(back.estimate(), set.estimate());
            assert!(HyperLogLog::from_bytes(9, &[]).is_none());
            assert!(count == 0 || HyperLogLog::from_bytes(9, &bytes[..bytes.len() - 1]).is_none());
        }
        assert!(HyperLogLog::from_bytes(4, &[LIST, 16, 1]).is_none());
        assert!(HyperLogLog::from_bytes(4, &[LIST, 1, 62]).is_none());
    }
}
