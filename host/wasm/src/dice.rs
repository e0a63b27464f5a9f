//! Random numbers that are the same whenever a batch is run again: SHA-256 over a seed and a counter.
//!
//! A store makes one when its guest first asks during a call, from the call's stamp.
//!
//! Rule of its life: one call. The stream of bytes for a seed never changes, also not with a new release.
//!
//! They are no secrets: whoever knows the stamp knows the numbers.

use millstream_common::Digest;

/// A stream of bytes grown from a seed.
#[derive(Debug)]
pub(crate) struct Dice {
    seed: [u8; 32],
    block: u64,
    left: std::vec::IntoIter<u8>,
}

impl Dice {
    pub(crate) fn new(seed: Digest) -> Self {
        Self { seed: seed.into_bytes(), block: 0, left: Vec::new().into_iter() }
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let missing = length - bytes.len();
            bytes.extend(self.left.by_ref().take(missing));
            if bytes.len() < length {
                self.next_block();
            }
        }
        bytes
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.bytes(8).into_iter().rev().fold(0, |number, byte| number << 8 | u64::from(byte))
    }

    fn next_block(&mut self) {
        let mut text = [0; 40];
        text[..32].copy_from_slice(&self.seed);
        text[32..].copy_from_slice(&self.block.to_le_bytes());
        self.block += 1;
        self.left = Digest::of(&text).into_bytes().to_vec().into_iter();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{BatchStamp, CallStamp};
    use millstream_common::BatchId;

    fn stamp(batch: u64, row: u64) -> CallStamp {
        CallStamp {
            batch: BatchStamp { batch: Some(BatchId(batch)), ..BatchStamp::default() },
            row,
            ..Default::default()
        }
    }

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let mut dice = Dice::new(Digest::of(b"seed"));
        let first: Vec<u8> = dice.bytes(4);
        assert_eq!(
            first,
            Digest::of(&[Digest::of(b"seed").into_bytes().as_slice(), &[0; 8]].concat()).into_bytes()[..4]
        );
        assert_eq!(first.len() + dice.bytes(100).len(), 104);
        let (mut whole, mut parts) = (Dice::new(Digest::of(b"s")), Dice::new(Digest::of(b"s")));
        let pieces: Vec<u8> = [1, 31, 33, 0, 35].into_iter().flat_map(|n| parts.bytes(n)).collect();
        assert_eq!(whole.bytes(100), pieces);
    }

    #[test]
    fn another_batch_call_or_plugin_has_other_numbers() {
        let seeds = [
            stamp(1, 0).seed("a"),
            stamp(2, 0).seed("a"),
            stamp(1, 1).seed("a"),
            stamp(1, 0).seed("b"),
            CallStamp { invocation: 1, ..stamp(1, 0) }.seed("a"),
            CallStamp { partition: 1, ..stamp(1, 0) }.seed("a"),
        ];
        let distinct: std::collections::HashSet<_> = seeds.iter().collect();
        assert_eq!(distinct.len(), seeds.len());
        assert_eq!(stamp(1, 0).seed("a"), stamp(1, 0).seed("a"));
    }
}
