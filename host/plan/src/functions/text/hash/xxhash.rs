//! XXH64, with Spark's short cuts for INT and BIGINT.
//!
//! Where it stands: the algorithm of `xxhash64`.
//!
//! Rule of its life: the state is the hash so far, the seed of the next value.

use super::running::Algorithm;

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

/// A running hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Xxh64(pub(super) u64);

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

fn mix_word(hash: u64, word: u64) -> u64 {
    (hash ^ round(0, word)).rotate_left(27).wrapping_mul(P1).wrapping_add(P4)
}

fn mix_half(hash: u64, half: u32) -> u64 {
    (hash ^ u64::from(half).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3)
}

fn finish(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(P2);
    hash = (hash ^ hash >> 29).wrapping_mul(P3);
    hash ^ hash >> 32
}

impl Algorithm for Xxh64 {
    fn int(self, value: i32) -> Self {
        Self(finish(mix_half(self.0.wrapping_add(P5).wrapping_add(4), value.cast_unsigned())))
    }

    fn long(self, value: i64) -> Self {
        Self(finish(mix_word(self.0.wrapping_add(P5).wrapping_add(8), value.cast_unsigned())))
    }

    fn bytes(self, value: &[u8]) -> Self {
        let seed = self.0;
        let (words, rest) = value.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut hash = if value.len() >= 32 {
            let mut lanes =
                [seed.wrapping_add(P1).wrapping_add(P2), seed.wrapping_add(P2), seed, seed.wrapping_sub(P1)];
            for _ in 0..value.len() / 32 {
                for lane in &mut lanes {
                    *lane = round(*lane, words.next().unwrap_or(0));
                }
            }
            let [a, b, c, d] = lanes;
            let merged = a
                .rotate_left(1)
                .wrapping_add(b.rotate_left(7))
                .wrapping_add(c.rotate_left(12))
                .wrapping_add(d.rotate_left(18));
            lanes.iter().fold(merged, |hash, lane| (hash ^ round(0, *lane)).wrapping_mul(P1).wrapping_add(P4))
        } else {
            seed.wrapping_add(P5)
        };
        hash = hash.wrapping_add(value.len() as u64);
        hash = words.fold(hash, mix_word);
        let (halves, rest) = rest.as_chunks::<4>();
        hash = halves.iter().fold(hash, |hash, half| mix_half(hash, u32::from_le_bytes(*half)));
        hash = rest
            .iter()
            .fold(hash, |hash, byte| (hash ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1));
        Self(finish(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_of_short_and_long_texts() {
        let seed = Xxh64(42);
        let signed = |hash: Xxh64| hash.0.cast_signed();
        assert_eq!(signed(seed.bytes(b"")), -7_444_071_767_201_028_348);
        assert_eq!(signed(seed.bytes(b"abc")), 1_423_657_621_850_124_518);
        assert_eq!(signed(seed.bytes(b"a longer string with more than 32 bytes in it")), 2_028_886_993_392_397_676);
        assert_eq!(signed(seed.long(7)), -2_864_211_556_195_259_663);
    }
}
