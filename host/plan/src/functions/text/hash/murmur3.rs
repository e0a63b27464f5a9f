//! Murmur3 for 32 bits as Spark runs it: whole words first, then every trailing byte as a signed word of its own.
//!
//! Where it stands: the algorithm of `hash`.
//!
//! Rule of its life: the state is the hash so far, the seed of the next value.

use super::running::Algorithm;

/// A running hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Murmur3(pub(super) u32);

impl Murmur3 {
    fn mix(self, word: u32) -> Self {
        let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        Self((self.0 ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64))
    }

    fn finish(self, length: u32) -> Self {
        let mut hash = self.0 ^ length;
        hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
        Self(hash ^ hash >> 16)
    }
}

impl Algorithm for Murmur3 {
    fn int(self, value: i32) -> Self {
        self.mix(value.cast_unsigned()).finish(4)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the word")]
    fn long(self, value: i64) -> Self {
        let value = value.cast_unsigned();
        self.mix(value as u32).mix((value >> 32) as u32).finish(8)
    }

    fn bytes(self, value: &[u8]) -> Self {
        let (words, rest) = value.as_chunks::<4>();
        let hash = words.iter().fold(self, |hash, word| hash.mix(u32::from_le_bytes(*word)));
        let hash = rest.iter().fold(hash, |hash, byte| hash.mix(i32::from(byte.cast_signed()).cast_unsigned()));
        hash.finish(u32::try_from(value.len()).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(hash: Murmur3) -> i32 {
        hash.0.cast_signed()
    }

    #[test]
    fn known_values_of_each_width() {
        let seed = Murmur3(42);
        assert_eq!(signed(seed.long(1)), -1_712_319_331);
        assert_eq!(signed(seed.long(-1)), -939_490_007);
        assert_eq!(signed(seed.int(1)), -559_580_957);
        assert_eq!(signed(seed.bytes(b"abc")), 1_322_437_556);
        assert_eq!(signed(seed.bytes("日本".as_bytes())), -336_983_209);
        assert_eq!(signed(seed.bytes(b"")), 142_593_372);
    }
}
